"""VRT of vrt.py as model.plugin = "python" takes it (docs/python.md), on clips of spike_hdf5."""
import torch
from spike_vrt import CHARBONNIER_EPS, STAGES
from vrt import Vrt


def net(embed=48, depth=2, heads=6, deformable_groups=16, drop_path=0.0, window=(6, 8, 8)):
    return Vrt({"depths": [depth] * STAGES, "embed_dims": [embed] * STAGES, "num_heads": [heads] * STAGES, "window_size": list(window),
                "mul_attn_ratio": 0.75, "mlp_ratio": 2, "deformable_groups": deformable_groups, "indep_reconsts": [9, 10],
                "drop_path_rate": drop_path, "in_chans": 3})


def images(values, like):
    return values.to(like.dtype) / 255 if values.dtype == torch.uint8 else values


def forward(module, batch):
    return module(images(batch["blur"], module.conv_first.weight))


def loss(outputs, batch):
    error = ((outputs - images(batch["sharp"], outputs)) ** 2 + CHARBONNIER_EPS).sqrt()
    return error.sum(), error.numel()
