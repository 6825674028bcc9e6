#!/usr/bin/env python3
"""act_policy against an nn.Module as a user runs it (bench/peers/act_policy.py), and against the same tuned: time and peak memory of
whole training steps, the three taking turns. --bf16: each also in mixed precision.

    python3 bench/models/act_policy.py --python .venv/bin/python --build build/release [--height 480 --width 640] [--rounds 5] [--bf16]

A step: read a batch of HDF5, forward, backward, AdamW. The tuned one also gets what a patient user sets outside the program: glibc told to
keep memory. Medians over all rounds, with the smallest and the largest, of each round's median
step and of its peak, the largest resident size of the whole process. --python names one with torch, numpy and h5py.
"""
import argparse
import os
import subprocess
import sys
import tempfile

from training_steps import KEEPS_MEMORY, ROOT, Headroom, beside_modules, evaluations, peer, print_ratios, print_table, take_turns

EXPERIMENT = """
[experiment]
name = "bench"
threads = {threads}
device = "cpu"
[model]
plugin = "act_policy"
[model.options]
chunk_size = {chunk}
[data]
source = "hdf5"
num_workers = 0
normalize = "off"
shuffle = "sequential"
split = {{ train = 1.0, val = 0.0, test = 0.0 }}
[data.options]
path = "data.hdf5"
fields = [
  {{ name = "image", dataset = "image", rows = "row" }},
  {{ name = "qpos", dataset = "qpos", rows = "row" }},
  {{ name = "action", dataset = "action", rows = "row" }},
  {{ name = "is_pad", dataset = "is_pad", rows = "row" }},
]
[train]
epochs = 1000
max_steps = {steps}
batch_size = {batch}
log_every = 1
optimizer = {{ name = "adamw", lr = 1e-5, weight_decay = 1e-4 }}
[checkpoint]
keep = 1
"""

MAKE_DATA = """
import sys, h5py, numpy
path, n, cameras, height, width, steps = sys.argv[1], *map(int, sys.argv[2:])
rng = numpy.random.default_rng(0)
with h5py.File(path, "w") as file:
    file["image"] = rng.integers(0, 256, (n, cameras, 3, height, width), dtype=numpy.uint8)
    file["qpos"] = rng.standard_normal((n, 14), dtype=numpy.float32)
    file["action"] = rng.standard_normal((n, steps, 14), dtype=numpy.float32)
    file["is_pad"] = numpy.zeros((n, steps), dtype=numpy.uint8)
"""


def parser():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--build", default="build/release")
    for name, default in (("batch", 2), ("cameras", 2), ("height", 120), ("width", 160), ("chunk", 20), ("threads", 2),
                          ("steps", 12), ("rounds", 5)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--evaluate", action="store_true", help="evaluations instead of steps: seconds are of a sample")
    return parser


def prepare(args, folder):
    """Writes data and experiment; the samples of a step."""
    samples = (args.steps + 1) * args.batch  # one batch more than steps
    subprocess.run([args.python, "-c", MAKE_DATA, os.path.join(folder, "data.hdf5"), str(samples), str(args.cameras), str(args.height),
                    str(args.width), "100"], check=True)
    with open(os.path.join(folder, "bench.toml"), "w") as file:
        file.write(EXPERIMENT.format(**vars(args)))
    return args.batch


def programs(args, folder):
    """Headroom, and the words that start the nn.Module."""
    words = [args.python, os.path.join(ROOT, "bench", "peers", "act_policy.py"), os.path.join(folder, "data.hdf5")]
    for name in ("batch", "steps", "chunk", "threads"):
        words += ["--" + name, str(getattr(args, name))]
    return Headroom(args.build, folder, os.path.join(folder, "bench.toml"), args.batch, args.steps), words


def measure(args):
    with tempfile.TemporaryDirectory(prefix="headroom-bench-") as folder:
        prepare(args, folder)
        headroom, words = programs(args, folder)
        if args.evaluate:
            return take_turns(evaluations(headroom, "train", words, folder, args.batch, max(8, args.batch)), args.rounds)
        contenders = beside_modules(headroom, words, folder)
        if args.bf16:
            contenders |= {"headroom bf16": lambda: headroom(**{"train.precision": "bf16"}),
                           "nn.Module bf16": lambda: peer([*words, "--bf16"], folder),
                           "nn.Module tuned bf16": lambda: peer([*words, "--tuned", "--bf16"], folder, KEEPS_MEMORY)}
        return take_turns(contenders, args.rounds)


def main():
    args = parser().parse_args()
    results = measure(args)
    print(f"{args.cameras} cameras of {args.height} x {args.width}, batch {args.batch}, chunk {args.chunk}, {args.threads} threads, "
          f"{args.rounds} rounds of {args.steps} steps")
    print_table(results)
    print_ratios(results)


if __name__ == "__main__":
    main()
