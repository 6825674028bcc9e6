#!/usr/bin/env python3
"""Two builds of Headroom beside each other: what a change made faster or slower, in training steps, loading and bookkeeping.

    python3 bench/before_after.py --python VENV/bin/python OLD/build/release NEW/build/release [--rounds 5] [--folder FOLDER]

VENV needs torch, numpy and h5py. Builds what it needs in both folders. The two take turns, each run a process of its own; each figure is
the new one over the old one of the same round: the median, with the smallest and the largest. Below 1 the new one needs less. Cases of
training are those of bench/models with their settings there, cases of loading those of bench/data (in CPU seconds a sample, by the clock in
brackets); the last lines are those of bench/memory/cost.py. --folder keeps the files of bench/data (2.6 GB).
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "models"), os.path.join(HERE, "data")]
import act_policy  # noqa: E402
import cases  # noqa: E402
import compare  # noqa: E402
import process_tree  # noqa: E402
import spike_vrt  # noqa: E402
import tds_lstm  # noqa: E402
from training_steps import Headroom, of_rounds, take_turns  # noqa: E402

TRAINING = {
    "tds quick, batch 16, 1 thread": (tds_lstm, ["--batch", "16", "--threads", "1"]),
    "tds quick, batch 64, 2 threads": (tds_lstm, ["--batch", "64"]),
    "act 120x160, batch 2": (act_policy, ["--batch", "2"]),
    "vrt reduced": (spike_vrt, ["--steps", "6"]),
}


def ratios(before, after):
    found = [new / old for old, new in zip(before, after) if old]
    return f"{statistics.median(found):.2f} ({min(found):.2f} to {max(found):.2f})" if found else "-"


def training(builds, words):
    for name, (bench, settings) in TRAINING.items():
        args = bench.parser().parse_args(["--python", words.python, "--rounds", str(words.rounds), *settings])
        with tempfile.TemporaryDirectory(prefix="headroom-bench-") as folder:
            samples = bench.prepare(args, folder)
            path = os.path.join(folder, "bench.toml")
            runs = take_turns({which: Headroom(build, folder, path, samples, args.steps) for which, build in builds.items()}, words.rounds)
        cells = [f"{what} {ratios(of_rounds(runs['before'], key), of_rounds(runs['after'], key))}"
                 for what, key in (("time", "seconds"), ("CPU", "cpu_seconds"), ("peak", "peak_bytes"), ("to first step", "first_step_seconds"))]
        print(f"{name:36} {', '.join(cells)}", flush=True)


def loading(builds, words, folder):
    subprocess.run([words.python, os.path.join(HERE, "data", "make_files.py"), folder], check=True)
    for case in cases.CASES:
        settings, found = cases.contenders(case)["headroom"], {which: [] for which in builds}
        for number in range(words.rounds):
            for which in (builds, reversed(builds))[number % 2]:
                bench = compare.Bench(argparse.Namespace(python=words.python, build=builds[which], quick=False, seconds=words.seconds), folder)
                found[which].append(bench.headroom(case, settings))
        cpu, clock, memory = ([[figure(run) for run in found[which]] for which in builds] for figure in (
            lambda run: 1 / run["samples_per_cpu_s"], lambda run: 1 / run["samples_per_s"], lambda run: run["memory_bytes"]))
        print(f"{case['title']:36} CPU {ratios(*cpu)} (time {ratios(*clock)}), memory {ratios(*memory)}", flush=True)


def bookkeeping(builds, words):
    found = {which: [] for which in builds}
    for _ in range(words.rounds):
        for which, build in builds.items():
            with tempfile.TemporaryDirectory(prefix="headroom-cost-") as folder:
                program = os.path.join(build, "bench", "bench_memory_cost")
                found[which].append(json.loads(subprocess.run([program, folder], check=True, capture_output=True, text=True).stdout))
    for key, what in (("allocation_on_ledger_ns", "an allocation on the ledger"), ("look_ns", "a look of the monitor"),
                      ("event_ns", "an event of the black box")):
        print(f"{what:36} {ratios(*([run[key] for run in found[which]] for which in builds))}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="with torch, numpy and h5py")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="measured of each case of loading in each round")
    parser.add_argument("--folder", help="keeps the files of bench/data for the next time")
    parser.add_argument("before")
    parser.add_argument("after")
    words = parser.parse_args()
    builds = {"before": os.path.abspath(words.before), "after": os.path.abspath(words.after)}
    for build in builds.values():
        subprocess.run(["ninja", "-C", build, "headroom_app", "loader_bench", "bench_memory_cost"], check=True, stdout=subprocess.DEVNULL)
    print(f"on {process_tree.processor()}; the new build over the old one, {words.rounds} rounds", flush=True)
    training(builds, words)
    with tempfile.TemporaryDirectory(prefix="headroom-bench-") as temporary:
        loading(builds, words, words.folder or temporary)
    bookkeeping(builds, words)


if __name__ == "__main__":
    main()
