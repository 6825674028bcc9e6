"""VRT of bench/peers, of the sizes of the reference's golden file a_vrt_tiny.

As a script: vrt_golden.py GOLDEN RUN exits with 1 where a step of SGD with a rate of 1 has not left the golden gradients."""
import os
import sys

import golden_run

import spike_vrt_module
import vrt

TINY = {"in_chans": 3, "window_size": [6, 8, 8], "depths": [4] * 7 + [2] * 2, "indep_reconsts": [8], "embed_dims": [16] * 7 + [24] * 2,
        "num_heads": [2] * 9, "mul_attn_ratio": 0.5, "mlp_ratio": 2.0, "deformable_groups": 4, "drop_path_rate": 0.0}


def weights_of(golden):
    weights = {name[2:]: values for name, values in golden_run.load(golden).items() if name.startswith("w.")}
    flow = golden_run.load(os.path.join(os.path.dirname(golden), "d_spynet_weights.safetensors"))
    return {**weights, **{"spynet." + name: values for name, values in flow.items()}}


def net(golden):
    module = vrt.Vrt(TINY)
    _, unknown = module.load_state_dict(weights_of(golden), strict=False)
    assert not unknown, unknown
    return module


forward, loss = spike_vrt_module.forward, spike_vrt_module.loss


def rows(golden):
    batch = golden_run.load(golden)
    return golden_run.Rows({"blur": batch["x"], "sharp": batch["gt"]})


def main():
    path, (weights, mean_loss) = sys.argv[1], golden_run.result_of(sys.argv[2])
    golden, before = golden_run.load(path), weights_of(path)
    expected = {name[len("grad."):]: values for name, values in golden.items() if name.startswith("grad.")}
    found = {name: before[name].double() - weights[name] for name in expected}
    found["the loss"], expected["the loss"] = golden["loss"].new_tensor([mean_loss]), golden["loss"]
    # A place in an image that rounding takes over a whole pixel has another gradient.
    golden_run.hold(found, expected, lambda name: 2e-3 if "spynet" in name or "conv_offset" in name else 5e-4)


if __name__ == "__main__":
    main()
