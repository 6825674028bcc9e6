"""The sweep of batch size x accumulation with Headroom, with Optuna + PyTorch, and with SMAC + pynisher, each in a memory cgroup
of the same size.

    sudo python3 bench/sweep/compare.py --python .venv/bin/python

Needs root, a build, and for the peers a Python with torch, numpy, h5py, optuna, smac, pynisher. What cannot be imported is left
out, and said. A program that the kernel kills is begun again until it has tried every point.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "..", "memory"))
from cgroup import Unavailable, run_in_cgroup  # noqa: E402
from headroom_runs import MIB, mib, print_table  # noqa: E402

EXPERIMENT = os.path.join(ROOT, "experiments", "sweeps", "batch_x_accumulation.toml")
TRIALS = 16
PROGRAMS = ["headroom", "optuna", "smac"]


class Tally:
    """What a program made of the sixteen trials."""

    def __init__(self):
        self.completed, self.kills, self.starts, self.seconds, self.peak_bytes, self.said = 0, 0, 0, 0.0, 0, ""

    def add(self, ended):
        self.starts += 1
        self.kills += ended.oom_kills
        self.seconds += ended.seconds
        self.peak_bytes = max(self.peak_bytes, ended.peak_bytes)
        return ended

    def row(self, name):
        return [name, self.completed, TRIALS - self.completed, self.kills, self.starts, f"{self.seconds:.0f}",
                mib(self.peak_bytes), self.said]


def peer(words, options):
    """Begun again after every kill, as somebody would who watches it."""
    tally, lines = Tally(), []
    while tally.starts < TRIALS + 1:
        ended = tally.add(run_in_cgroup([options.python, *words], options.limit * MIB, timeout=options.timeout))
        lines += [line for line in ended.out.splitlines() if line.startswith("{")]
        if ended.exit_code >= 0:
            break
    tally.completed = len({tuple(json.loads(line)["point"]) for line in lines})
    if ended.exit_code != 0:
        tally.said = (ended.err.strip().splitlines() or [f"exit code {ended.exit_code}"])[-1][:80]
    return tally


def headroom(folder, data, options):
    tally = Tally()
    words = [os.path.join(ROOT, options.build, "bin", "headroom"), "sweep", EXPERIMENT, "--out", os.path.join(folder, "runs"),
             "--set", "memory.limit=auto", "--set", f"data.options.path={data}"]
    environment = {"XDG_CACHE_HOME": os.path.join(folder, "cache"), "HEADROOM_RESERVATIONS": os.path.join(folder, "held")}
    ended = tally.add(run_in_cgroup(words, options.limit * MIB, environment=environment, timeout=options.timeout))
    for root, _, files in os.walk(os.path.join(folder, "runs")):
        if "results.json" in files:
            with open(os.path.join(root, "results.json")) as file:
                counts = json.load(file)["counts"]
            tally.completed = counts.pop("finished", 0)
            tally.said = ", ".join(f"{number} {state}" for state, number in counts.items())
    if ended.exit_code != 0:
        tally.said = (ended.err.strip().splitlines() or [""])[-1][:80]
    return tally


def can_import(python, *names):
    can = subprocess.run([python, "-c", "import " + ", ".join(names)], capture_output=True).returncode == 0
    if not can:
        print(f"{python} cannot import {', '.join(names)}: what needs them is left out")
    return can


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="a Python with the peers' packages")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--limit", type=int, default=640, metavar="MIB", help="of each program's cgroup")
    parser.add_argument("--trial-limit", type=int, default=2048, metavar="MIB",
                        help="of address space, under pynisher, beside the cgroup's own size")
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=PROGRAMS)
    parser.add_argument("--timeout", type=int, default=1800, metavar="S", help="of one start of a program")
    options = parser.parse_args()
    rows, began = [], time.monotonic()
    with tempfile.TemporaryDirectory(prefix="headroom-bench-") as folder:
        data = os.path.join(folder, "data")
        subprocess.run([os.path.join(ROOT, options.build, "bin", "headroom"), "data", "synth", EXPERIMENT, "--set",
                        f"data.options.path={data}"], check=True, stdout=subprocess.DEVNULL)
        if "headroom" in options.programs:
            rows.append(headroom(folder, data, options).row("Headroom"))
        if "optuna" in options.programs and can_import(options.python, "torch", "h5py", "optuna"):
            words = [os.path.join(HERE, "optuna_sweep.py"), data, os.path.join(folder, "study.db")]
            rows.append(peer(words, options).row("Optuna + PyTorch"))
        if "smac" in options.programs and can_import(options.python, "torch", "h5py", "smac", "pynisher"):
            for limit in dict.fromkeys([options.limit, options.trial_limit]):
                words = [os.path.join(HERE, "smac_sweep.py"), data, os.path.join(folder, f"smac-{limit}"), str(limit)]
                rows.append(peer(words, options).row(f"SMAC + pynisher, trials of {limit} MiB"))
    print_table([f"in {options.limit} MiB", "completed", "not", "killed", "starts", "wall s", "peak MiB", ""], rows)
    print(f"\n{time.monotonic() - began:.0f} s in all")


if __name__ == "__main__":
    try:
        main()
    except Unavailable as reason:
        sys.exit(str(reason))
