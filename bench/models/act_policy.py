#!/usr/bin/env python3
"""act_policy against an nn.Module as a user runs it (bench/peers/act_policy.py), and against the same tuned: time and peak memory of
whole training steps, the three taking turns.

    python3 bench/models/act_policy.py --python .venv/bin/python --build build/release [--height 480 --width 640] [--rounds 5]

A step: read a batch of HDF5, forward, backward, AdamW. Seconds are medians over all rounds of each round's median step; peaks are the
largest resident size of the whole process, LibTorch or Python included. --python names one with torch, numpy and h5py.
"""
import argparse
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MIB = 1 << 20

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


def measured(words, folder):
    """Standard output of a command, and the peak of whatever it ran."""
    environment = dict(os.environ, XDG_CACHE_HOME=os.path.join(folder, "cache"),
                       HEADROOM_RESERVATIONS=os.path.join(folder, "reservations"))
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as log:
        child = subprocess.Popen(words, stdout=out, stderr=log, env=environment)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            log.seek(0)
            raise SystemExit(f"{' '.join(words)} ended with {child.returncode}:\n{log.read()}")
        out.seek(0)
        return out.read(), usage.ru_maxrss * 1024


def ours(args, folder, number):
    out = os.path.join(folder, f"out-{number}")
    words = [os.path.join(ROOT, args.build, "bin", "headroom"), "run", os.path.join(folder, "bench.toml"), "--out", out]
    _, peak = measured(words, folder)
    with open(glob.glob(os.path.join(out, "*", "*", "metrics.csv"))[0]) as file:
        rates = [float(line.rsplit(",", 1)[1]) for line in file if ",train,samples_per_second," in line]
    shutil.rmtree(out)
    return [args.batch / rate for rate in rates], peak


def peer(args, folder, *more):
    words = [args.python, os.path.join(ROOT, "bench", "peers", "act_policy.py"), os.path.join(folder, "data.hdf5"), "--batch",
             str(args.batch), "--steps", str(args.steps), "--chunk", str(args.chunk), "--threads", str(args.threads), *more]
    told, _ = measured(words, folder)
    result = json.loads(told)
    return result["seconds"], result["peak_bytes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--build", default="build/release")
    for name, default in (("batch", 2), ("cameras", 2), ("height", 120), ("width", 160), ("chunk", 20), ("threads", 2),
                          ("steps", 12), ("rounds", 5)):
        parser.add_argument("--" + name, type=int, default=default)
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="headroom-bench-")
    try:
        subprocess.run([args.python, "-c", MAKE_DATA, os.path.join(folder, "data.hdf5"), str(8 * args.batch), str(args.cameras),
                        str(args.height), str(args.width), "100"], check=True)
        with open(os.path.join(folder, "bench.toml"), "w") as file:
            file.write(EXPERIMENT.format(**vars(args)))
        runs = {"headroom": lambda i: ours(args, folder, i), "nn.Module": lambda i: peer(args, folder),
                "nn.Module tuned": lambda i: peer(args, folder, "--tuned")}
        seconds, peaks = {name: [] for name in runs}, {name: [] for name in runs}
        for i in range(args.rounds):
            for name, run in runs.items():
                steps, peak = run(i)
                seconds[name].append(statistics.median(steps[3:]))  # the first are warm-up
                peaks[name].append(peak)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{args.cameras} cameras of {args.height} x {args.width}, batch {args.batch}, chunk {args.chunk}, {args.threads} threads, "
          f"{args.rounds} rounds of {args.steps} steps")
    base, base_peak = statistics.median(seconds["headroom"]), max(peaks["headroom"])
    for name in runs:
        time, peak = statistics.median(seconds[name]), max(peaks[name])
        spread = f"{min(seconds[name]):.3f} to {max(seconds[name]):.3f}"
        print(f"{name:16} {time:.3f} s a step ({spread}), peak {peak / MIB:.0f} MiB; headroom: {time / base:.2f} x its speed, "
              f"{base_peak / peak:.2f} of its peak")


if __name__ == "__main__":
    main()
