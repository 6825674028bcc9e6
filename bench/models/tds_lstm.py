#!/usr/bin/env python3
"""A TDS-LSTM against an nn.Module as a user runs it (bench/peers/tds_lstm.py), and against the same tuned: time and peak memory of whole
training steps, all taking turns. --bf16: each also in bf16.

    python3 bench/models/tds_lstm.py --python .venv/bin/python --build build/release [--network published --window 2290] [--rounds 5]

A step: read a batch of HDF5, forward, backward, clip, AdamW. The network is that of experiments/emg/quick_demo.toml, or the published one
of emg2pose. --accumulate: Headroom takes that many batches for a step, the nn.Module all their samples at once. The tuned one also
gets what a patient user sets outside the program: glibc told to keep memory. Medians over all rounds, with the smallest and the
largest, of each round's median step and of its peak, the largest resident size of the whole process. --python names one with torch,
numpy and h5py.
"""
import argparse
import os
import subprocess
import sys
import tempfile

from training_steps import ROOT, Headroom, beside_modules, evaluations, peer, print_ratios, print_table, ratio, take_turns

EXPERIMENT = """
extends = "{root}/experiments/emg/{base}.toml"
[experiment]
name = "bench"
threads = {threads}
device = "cpu"
[data]
num_workers = 0
max_samples_for_normalize = 200
[data.options]
path = "data"
window_size = {window}
stride = {stride}
[data.synth]
sessions = 6
seconds = {seconds}
{network}
[train]
epochs = 1000
batch_size = {batch}
micro_batch = {batch}
gradient_accumulation_steps = {accumulate}
log_every = 1
optimizer = {{ name = "adamw", lr = 5e-4, weight_decay = 0.01 }}
[memory]
log_every = 0
[checkpoint]
keep = 1
"""


PUBLISHED = """[model.options]
conv_blocks = [{out_channels = 256, kernel_size = 11, stride = 5}, {out_channels = 256, kernel_size = 5, stride = 2}]
tds_stages = [
  {in_conv_kernel_width = 17, in_conv_stride = 4, num_blocks = 2, channels = 16, feature_width = 16, kernel_width = 9},
  {in_conv_kernel_width = 9, in_conv_stride = 2, num_blocks = 2, channels = 16, feature_width = 16, kernel_width = 5, out_channels = 64},
]
decoder_hidden_size = 512
decoder_num_layers = 2
output_scale = 0.01
predict_vel = true
loss = "mae"
"""


def parser():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--network", choices=("quick", "published"), default="quick")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--evaluate", action="store_true", help="evaluations instead of steps: seconds are of a sample")
    for name, default in (("batch", 64), ("accumulate", 1), ("window", 500), ("stride", 25), ("threads", 2), ("steps", 40), ("rounds", 5)):
        parser.add_argument("--" + name, type=int, default=default)
    return parser


def experiment(args):
    published = args.network == "published"
    return EXPERIMENT.format(root=ROOT, base="common" if published else "quick_demo", network=PUBLISHED if published else "",
                             seconds=max(10.0, 2 * args.window / 2000), batch=args.batch, accumulate=args.accumulate, window=args.window,
                             stride=args.stride, threads=args.threads)


def prepare(args, folder):
    """Writes the experiment; the samples of a step."""
    with open(os.path.join(folder, "bench.toml"), "w") as file:
        file.write(experiment(args))
    return args.batch * args.accumulate


def programs(args, folder):
    """Headroom, which has made the data, and the words that start the nn.Module."""
    path, samples = os.path.join(folder, "bench.toml"), args.batch * args.accumulate
    headroom = Headroom(args.build, folder, path, samples, args.steps)
    subprocess.run([headroom.program, "data", "synth", path], check=True, stdout=subprocess.DEVNULL)
    words = [args.python, os.path.join(ROOT, "bench", "peers", "tds_lstm.py"), os.path.join(folder, "data"), "--no-validation", "--batch",
             str(samples)]
    for name in ("network", "window", "stride", "steps", "threads"):
        words += ["--" + name, str(getattr(args, name))]
    return headroom, words


def measure(args):
    with tempfile.TemporaryDirectory(prefix="headroom-bench-") as folder:
        samples = prepare(args, folder)
        headroom, words = programs(args, folder)
        if args.evaluate:
            return take_turns(evaluations(headroom, "val", words, folder, samples, max(64, samples)), args.rounds)
        contenders = beside_modules(headroom, words, folder)
        if args.bf16:
            contenders |= {"headroom bf16": lambda: headroom(**{"train.precision": "bf16"}),
                           "nn.Module bf16": lambda: peer([*words, "--precision", "bf16"], folder)}
        return take_turns(contenders, args.rounds)


def main():
    args = parser().parse_args()
    results = measure(args)
    print(f"{args.network} network, windows of {args.window}, batch {args.batch} x {args.accumulate}, {args.threads} threads, "
          f"{args.rounds} rounds of {args.steps} steps")
    print_table(results)
    print_ratios(results)
    for name in ("headroom", "nn.Module"):
        if name + " bf16" in results:
            seconds, peak = (ratio(results, key, name + " bf16", name) for key in ("seconds", "peak_bytes"))
            print(f"{name}: bf16 takes {seconds:.2f} of a step and {peak:.2f} of the peak of float32")


if __name__ == "__main__":
    main()
