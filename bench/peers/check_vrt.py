"""vrt.py and vrt_tuned.py against golden numbers of the reference: flows, outputs, losses, gradients.

    python bench/peers/check_vrt.py ../shared/golden/spike_vrt [--write-float64 tests/golden/spike_vrt/a_vrt_tiny_float64.safetensors]

Prints the largest difference relative to the largest value of each; exits 1 where one is beyond its limit. With
--write-float64 the gradients of the first golden file are written as vrt.py has them in float64, once they are within their
limits in float32. Needs torch, and numpy to write.
"""
import argparse
import json
import os
import sys

import safetensors_file
import torch
import vrt
import vrt_tuned

OUTPUTS, GRADIENTS = 5e-5, 5e-4  # limits, as the golden files' README suggests
PLACES = 2e-3  # of gradients through places in images, which jump where rounding takes a place over a whole pixel
DERIVED = ("relative_position_index", "position_bias", "spynet.mean", "spynet.std")


class Check:
    def __init__(self, folder):
        self.folder, self.failed = folder, False
        with open(os.path.join(folder, "cases.json")) as file:
            self.cases = json.load(file)

    def load(self, name):
        return safetensors_file.load(os.path.join(self.folder, name + ".safetensors"))

    def close(self, what, found, expected, limit):
        difference = ((found - expected).abs().max() / expected.abs().max()).item()
        self.failed |= not difference <= limit
        print(f"{what:96} {difference:.1e}{'' if difference <= limit else f'  BEYOND {limit:.0e}'}", flush=True)

    def network(self, golden, config):
        model = vrt.Vrt({"drop_path_rate": 0.0, **config})
        weights = {name[2:]: values for name, values in golden.items() if name.startswith("w.")}
        weights.update({"spynet." + name: values for name, values in self.load("d_spynet_weights").items()})
        missing, unknown = model.load_state_dict(weights, strict=False)
        assert not unknown and all(name.endswith(DERIVED) for name in missing), (missing, unknown)
        return model

    def tiny(self, way, change):
        golden = self.load("a_vrt_tiny")
        model = change(self.network(golden, self.cases["a_vrt_tiny"]["cfg"]))
        with torch.no_grad():
            for name, flows in zip(("backward", "forward"), model.flows(golden["x"])):
                for level, flow in enumerate(flows):
                    self.close(f"{way}: flow {name}, level {level}", flow, golden[f"flow_{name}_l{level}"], 1e-5)
        y = model(golden["x"])
        loss = ((y - golden["gt"]) ** 2 + 1e-9).sqrt().mean()
        loss.backward()
        self.close(f"{way}: y", y.detach(), golden["y"], OUTPUTS)
        self.close(f"{way}: loss", loss.detach(), golden["loss"], OUTPUTS)
        for name, parameter in model.named_parameters():
            if "grad." + name in golden:
                limit = PLACES if "spynet" in name or "conv_offset" in name else GRADIENTS
                self.close(f"{way}: gradient of {name}", parameter.grad, golden["grad." + name], limit)

    def write_float64(self, path):
        golden = self.load("a_vrt_tiny")
        model = self.network(golden, self.cases["a_vrt_tiny"]["cfg"]).double()
        loss = ((model(golden["x"].double()) - golden["gt"].double()) ** 2 + 1e-9).sqrt().mean()
        loss.backward()
        safetensors_file.save(path, {"grad." + name: parameter.grad for name, parameter in model.named_parameters()
                                     if "grad." + name in golden})

    def concatenated(self, way, change):
        golden = self.load("h_concat35")
        model = change(self.network(golden, self.cases["h_concat35"]["cfg"]))
        with torch.no_grad():
            y = model(torch.cat([golden["rgb"], torch.log1p(golden["voxel_counts_u8"].float())], 2))
        self.close(f"{way}: y of colours and 32 bins", y, golden["y"], OUTPUTS)

    def block(self, way, change, name):
        golden, config = self.load("b_tmsa"), self.cases["b_tmsa"][name + ".cfg"]
        block = vrt.Block(config["dim"], config["window"], config["shift"], config["heads"], config["mut"], 2.0, 0.0)
        weights = {key[len(name) + 3:]: values for key, values in golden.items() if key.startswith(name + ".w.")}
        block.load_state_dict(weights, strict=False)
        block = change(block)
        x = golden[name + ".x"].clone().requires_grad_()
        window, shift = vrt.effective(x.shape[1:4], block.window, block.shift)
        mask = vrt.attention_mask(tuple(n + -n % w for n, w in zip(x.shape[1:4], window)), window, shift)
        y = block(x, mask)
        self.close(f"{way}: {name}", y.detach(), golden[name + ".y"], OUTPUTS)
        self.close(f"{way}: {name}, attention", block.attention_part(x, mask).detach(), golden[name + ".part1"], OUTPUTS)
        y.mul(torch.linspace(-1, 1, y.numel()).view_as(y)).sum().backward()
        for key, found in (("x", x), ("rpb", block.attn.relative_position_bias_table), ("qkv_self", block.attn.qkv_self.weight),
                           ("fc12", block.mlp.fc12.weight)):
            self.close(f"{way}: {name}, gradient of {key}", found.grad, golden[f"{name}.grad_{key}"], GRADIENTS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--write-float64", metavar="FILE")
    args = parser.parse_args()
    check = Check(args.folder)
    torch.set_num_threads(1)
    for way, change in (("nn.Module", lambda model: model), ("tuned", vrt_tuned.tuned),
                        ("recomputed", lambda model: vrt_tuned.recomputing(vrt_tuned.tuned(model)))):
        check.tiny(way, change)
        check.concatenated(way, change)
        for name in ("mut_shift", "mut_noshift", "self_shift3d", "self_small"):
            check.block(way, change, name)
    if args.write_float64 and not check.failed:
        check.write_float64(args.write_float64)
    sys.exit(check.failed)


if __name__ == "__main__":
    main()
