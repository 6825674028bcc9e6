#!/usr/bin/env python3
"""spike_vrt against an nn.Module as a user runs it (bench/peers/vrt.py), and against the same tuned (vrt_tuned.py), each with and
without recomputation: time and peak memory of whole training steps of a reduced VRT, all taking turns.

    python3 bench/models/spike_vrt.py --python .venv/bin/python --build build/release [--fusion concat] [--rounds 5]

A step: read a clip of HDF5, forward, backward, AdamW, batch 1. All begin with Headroom's initial weights and see the same clips in the
same order; told is how far their losses lie apart. Medians over all rounds, with the smallest and the largest, of each round's median
step and of its peak, the largest resident size of the whole process. The tuned one without recomputation also gets what a patient user
sets outside the program for speed: glibc told to keep memory. --contenders: some of them. --python names one with torch, numpy and h5py.
"""
import argparse
import os
import subprocess
import sys
import tempfile

from training_steps import KEEPS_MEMORY, ROOT, Headroom, evaluations, largest_loss_difference, peer, print_ratios, print_table, take_turns

EXPERIMENT = """
[experiment]
name = "bench"
threads = {threads}
device = "cpu"
[model]
plugin = "spike_vrt"
[model.options]
fusion = "{fusion}"
depths = {depths}
embed_dims = {embeds}
num_heads = {heads}
window_size = [6, 8, 8]
mul_attn_ratio = 0.75
mlp_ratio = 2.0
pa_frames = 2
deformable_groups = {deformable_groups}
indep_reconsts = [9, 10]
drop_path_rate = {drop_path}
charbonnier_eps = 1e-9
flow_lr_scale = 0.125
fix_iters = 0
[data]
source = "spike_hdf5"
num_workers = 0
normalize = "off"
shuffle = "sequential"
split = {{ train = 1.0, val = 0.0, test = 0.0 }}
[data.options]
path = "data"
clip_length = {clip}
random_flip = false
use_voxel = {use_voxel}
[train]
epochs = 1000
batch_size = 1
log_every = 1
optimizer = {{ name = "adamw", lr = 1e-4, weight_decay = 1e-4, betas = [0.9, 0.99] }}
[checkpoint]
keep = 1
"""

# Textures that move, as far in every frame as blur is long; counts that follow brightness.
MAKE_DATA = """
import sys, h5py, numpy
path, frames, size = sys.argv[1], *map(int, sys.argv[2:])
rng = numpy.random.default_rng(0)
rows, columns, times = numpy.arange(size)[:, None, None], numpy.arange(size)[None, :, None], numpy.arange(4 * frames) / 4
sharp = numpy.zeros((len(times), size, size, 3), numpy.float32)
for _ in range(12):
    angle, period, speed, phase = rng.uniform(0, numpy.pi), rng.uniform(8, 48), rng.uniform(-3, 3), rng.uniform(0, 6.3, 3)
    along = rows * numpy.sin(angle) + columns * numpy.cos(angle)
    for i, time in enumerate(times):
        sharp[i] += numpy.sin(2 * numpy.pi * (along - speed * time) / period + phase)
sharp = numpy.clip(0.5 + sharp / 12, 0, 1)
with h5py.File(path, "w") as file:
    file["blur"] = sharp.reshape(frames, 4, size, size, 3).mean(1)
    file["sharp"] = sharp[2::4]
    file["voxel"] = rng.poisson(3 * sharp[2::4].mean(3)[:, None], (frames, 32, size, size)).astype(numpy.float32)
"""

STAGES = 11


def experiment(args):
    return EXPERIMENT.format(depths=[args.depth] * STAGES, embeds=[args.embed] * STAGES, heads=[args.heads] * STAGES, threads=args.threads,
                             fusion=args.fusion, clip=args.clip, deformable_groups=args.deformable_groups, drop_path=args.drop_path,
                             use_voxel=str(args.fusion != "none").lower())


def programs(args, folder):
    """Headroom, and the words that start the nn.Module."""
    words = [args.python, os.path.join(ROOT, "bench", "peers", "spike_vrt.py"), os.path.join(folder, "data", "sequence.hdf5")]
    for name in ("clip", "embed", "depth", "heads", "deformable_groups", "steps", "threads", "fusion", "drop_path"):
        words += ["--" + name.replace("_", "-"), str(getattr(args, name))]
    return Headroom(args.build, folder, os.path.join(folder, "bench.toml"), 1, args.steps), words


def evaluated(args, folder):
    headroom, words = programs(args, folder)
    return evaluations(headroom, "train", words, folder, 1, 1)


def contenders(args, folder):
    headroom, words = programs(args, folder)
    if not args.contenders or any(name.startswith("headroom") for name in args.contenders):
        words += ["--weights", headroom.initial_weights(os.path.join(folder, "start.safetensors"))]
    all_of_them = {
        "headroom": lambda: headroom(**{"memory.recompute": "none"}),
        "headroom, recomputing": lambda: headroom(**{"memory.recompute": args.recompute}),
        "nn.Module": lambda: peer(words, folder),
        "nn.Module, recomputing": lambda: peer([*words, "--recompute"], folder),
        "tuned": lambda: peer([*words, "--tuned"], folder, KEEPS_MEMORY),
        "tuned, recomputing": lambda: peer([*words, "--tuned", "--recompute"], folder),
    }
    return {name: run for name, run in all_of_them.items() if not args.contenders or name in args.contenders}


def parser():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--fusion", choices=("none", "concat"), default="none")
    parser.add_argument("--recompute", default='["warping", "attention", "mlp"]', help="memory.recompute of the recomputing Headroom")
    parser.add_argument("--drop-path", type=float, default=0.0)
    parser.add_argument("--contenders", nargs="*", default=[])
    parser.add_argument("--evaluate", action="store_true", help="evaluations instead of steps: seconds are of a sample")
    for name, default in (("clip", 3), ("size", 128), ("embed", 48), ("depth", 2), ("heads", 6), ("deformable-groups", 16), ("threads", 2),
                          ("steps", 6), ("rounds", 5)):
        parser.add_argument("--" + name, type=int, default=default)
    return parser


def prepare(args, folder):
    """Writes data and experiment; the samples of a step."""
    os.mkdir(os.path.join(folder, "data"))
    frames = args.steps + args.clip  # one clip more than steps
    subprocess.run([args.python, "-c", MAKE_DATA, os.path.join(folder, "data", "sequence.hdf5"), str(frames), str(args.size)], check=True)
    with open(os.path.join(folder, "bench.toml"), "w") as file:
        file.write(experiment(args))
    return 1


def measure(args):
    with tempfile.TemporaryDirectory(prefix="headroom-bench-") as folder:
        prepare(args, folder)
        return take_turns((evaluated if args.evaluate else contenders)(args, folder), args.rounds)


def main():
    args = parser().parse_args()
    results = measure(args)
    print(f"VRT of {args.embed} channels, depths {args.depth}, fusion {args.fusion}; clips of {args.clip} x {args.size} x {args.size}, "
          f"batch 1, {args.threads} threads, {args.rounds} rounds of {args.steps} steps")
    print_table(results)
    print_ratios(results)
    if not args.evaluate:
        print(f"losses of the same step differ by at most {largest_loss_difference(results):.1e} of the larger")


if __name__ == "__main__":
    main()
