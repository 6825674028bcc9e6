"""VRT trained as a PyTorch user runs it: nn.Modules, torch.optim.AdamW as it comes, h5py, a plain loop.

    python bench/peers/spike_vrt.py SEQUENCE.hdf5 --clip 3 --steps 10 [--fusion concat] [--weights model.safetensors]

The sequence holds blur and sharp [frames, height, width, 3] and voxel [frames, bins, height, width], float32; clips come in order, whole
frames. Prints one line of JSON when it ends. --evaluate: the loss in inference mode instead. --tuned: vrt_tuned.py, fused AdamW and float32 products as fast as they go.
--recompute: torch.utils.checkpoint as well. --weights: what to begin with, by name. Needs torch, numpy, h5py.
"""
import argparse

import h5py
import safetensors_file
import torch
import vrt
import vrt_tuned
from step_clock import StepClock

STAGES, BINS, FLOW_LR_SCALE, CHARBONNIER_EPS = 11, 32, 0.125, 1e-9


def network(args):
    model = vrt.Vrt({"depths": [args.depth] * STAGES, "embed_dims": [args.embed] * STAGES, "num_heads": [args.heads] * STAGES,
                     "window_size": [6, 8, 8], "mul_attn_ratio": 0.75, "mlp_ratio": 2, "deformable_groups": args.deformable_groups,
                     "indep_reconsts": [9, 10], "drop_path_rate": args.drop_path, "in_chans": 3 + BINS * (args.fusion == "concat")})
    if args.weights:
        missing, unknown = model.load_state_dict(safetensors_file.load(args.weights), strict=False)
        lacking = set(missing) & {name for name, _ in model.named_parameters()}
        if lacking or unknown:
            raise SystemExit(f"{args.weights}: lacks {sorted(lacking)}, has in vain {unknown}")
    if args.tuned:
        vrt_tuned.tuned(model)
    return vrt_tuned.recomputing(model) if args.recompute else model


def optimizer_of(model, args):
    slow = [p for name, p in model.named_parameters() if "spynet" in name or "deform" in name]
    rest = [p for name, p in model.named_parameters() if not ("spynet" in name or "deform" in name)]
    return torch.optim.AdamW([{"params": rest}, {"params": slow, "lr": args.lr * FLOW_LR_SCALE}], lr=args.lr, betas=(0.9, 0.99),
                             weight_decay=1e-4, fused=True if args.tuned else None)


def clips(path, length, voxels):
    def planes(values):
        return torch.from_numpy(values).permute(0, 3, 1, 2)[None]

    with h5py.File(path) as file:
        while True:
            for first in range(len(file["blur"]) - length + 1):
                frames = slice(first, first + length)
                x, target = planes(file["blur"][frames]), planes(file["sharp"][frames])
                if voxels:
                    x = torch.cat([x, torch.log1p(torch.from_numpy(file["voxel"][frames]))[None]], 2)
                yield x, target


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    for name, default in (("clip", 3), ("embed", 48), ("depth", 2), ("heads", 6), ("deformable-groups", 16), ("steps", 10),
                          ("threads", 2)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--fusion", choices=("none", "concat"), default="none")
    parser.add_argument("--drop-path", type=float, default=0.0)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--weights")
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--recompute", action="store_true")
    parser.add_argument("--evaluate", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    if args.tuned:
        torch.set_float32_matmul_precision("medium")
    model = network(args).train(not args.evaluate)
    optimizer = optimizer_of(model, args)
    data, clock, losses = clips(args.data, args.clip, args.fusion == "concat"), StepClock(), []
    for _ in range(args.steps):
        clock.start()
        x, target = next(data)
        with torch.inference_mode(args.evaluate):
            loss = ((model(x) - target) ** 2 + CHARBONNIER_EPS).sqrt().mean()
        if not args.evaluate:
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
        clock.stop()
    clock.print(parameters=sum(p.numel() for p in model.parameters()), losses=losses)


if __name__ == "__main__":
    main()
