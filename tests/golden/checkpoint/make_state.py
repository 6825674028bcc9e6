"""Writes state.ckpt, what torch.save makes of a checkpoint: python3 make_state.py [FILE] (PyTorch 2.13 made the one here)."""

import collections
import sys

import torch

weight = (torch.arange(12, dtype=torch.float32) * 0.5 - 1).reshape(3, 4)
state = collections.OrderedDict()
state["layer.weight"] = weight
state["layer.bias"] = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
state["tied.weight"] = weight
state["transposed"] = weight.t()
state["every_second"] = weight[:, 1::2]
state["row"] = weight[1]
state["empty"] = weight[:0]
state["scalar"] = torch.tensor(2.5, dtype=torch.float64)
state["half"] = torch.tensor([0.5, -2.0], dtype=torch.float16)
state["bfloat"] = torch.tensor([0.5, -2.0], dtype=torch.bfloat16)
state["counter"] = torch.tensor(7, dtype=torch.int64)
state["bytes"] = torch.tensor([1, 255], dtype=torch.uint8)
state["mask"] = torch.tensor([True, False])
state._metadata = collections.OrderedDict(version=1)
torch.save({"model": state, "ema": {"shadow": {"w": weight}}, "epoch": 3}, sys.argv[1] if len(sys.argv) > 1 else "state.ckpt")
