#!/usr/bin/env python3
"""The quick TDS-LSTM against an nn.Module as a user runs it (bench/peers/tds_lstm.py), each in float32 and in bf16: time and peak memory
of whole training steps, all taking turns.

    python3 bench/models/tds_lstm.py --python .venv/bin/python --build build/release [--batch 64] [--rounds 5]

A step: read a batch of HDF5, forward, backward, clip, AdamW, of experiments/emg/quick_demo.toml. Medians over all rounds, with the
smallest and the largest, of each round's median step and of its peak, the largest resident size of the whole process. --python names one
with torch, numpy and h5py.
"""
import argparse
import os
import subprocess
import sys
import tempfile

from training_steps import ROOT, Headroom, peer, print_ratios, print_table, ratio, take_turns

EXPERIMENT = """
extends = "{root}/experiments/emg/quick_demo.toml"
[experiment]
name = "bench"
threads = {threads}
device = "cpu"
[data]
num_workers = 0
max_samples_for_normalize = 200
[data.options]
path = "data"
stride = 25
[data.synth]
sessions = 6
seconds = 10.0
[train]
epochs = 1000
batch_size = {batch}
micro_batch = {batch}
log_every = 1
optimizer = {{ name = "adamw", lr = 5e-4, weight_decay = 0.01 }}
[memory]
log_every = 0
[checkpoint]
keep = 1
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--build", default="build/release")
    for name, default in (("batch", 64), ("threads", 2), ("steps", 40), ("rounds", 5)):
        parser.add_argument("--" + name, type=int, default=default)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headroom-bench-") as folder:
        experiment, data = os.path.join(folder, "bench.toml"), os.path.join(folder, "data")
        with open(experiment, "w") as file:
            file.write(EXPERIMENT.format(root=ROOT, **vars(args)))
        headroom = Headroom(args.build, folder, experiment, args.batch, args.steps)
        subprocess.run([headroom.program, "data", "synth", experiment], check=True, stdout=subprocess.DEVNULL)
        words = [args.python, os.path.join(ROOT, "bench", "peers", "tds_lstm.py"), data, "--batch", str(args.batch), "--steps",
                 str(args.steps), "--threads", str(args.threads)]

        def module(precision):
            run = peer([*words, "--precision", precision], folder)
            return run if "cannot" in run else {**run, "seconds": run["step_seconds"]}

        results = take_turns({"headroom": headroom, "headroom bf16": lambda: headroom(**{"train.precision": "bf16"}),
                              "nn.Module": lambda: module("fp32"), "nn.Module bf16": lambda: module("bf16")}, args.rounds)
    print(f"windows of 500, batch {args.batch}, {args.threads} threads, {args.rounds} rounds of {args.steps} steps")
    print_table(results)
    print_ratios(results)
    for name in ("headroom", "nn.Module"):
        if name + " bf16" not in results:
            continue
        seconds, peak = (ratio(results, key, name + " bf16", name) for key in ("seconds", "peak_bytes"))
        print(f"{name}: bf16 takes {seconds:.2f} of a step and {peak:.2f} of the peak of float32")


if __name__ == "__main__":
    main()
