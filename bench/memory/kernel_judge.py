"""The kernel's judge: one experiment in cgroups that hold less and less of what it needs; who is killed, who finishes.

    .venv/bin/pip install torch numpy h5py
    sudo python3 bench/memory/kernel_judge.py --python .venv/bin/python [--build build/release]

Needs root (it makes memory cgroups, v1 or v2, and removes them) and the built headroom_app. The experiment is the quick
TDS-LSTM on synthetic data in float64, at a batch whose activations dominate. Four programs run it:

    pytorch         bench/peers/tds_lstm.py as it is
    pytorch retry   the same under `ulimit -d` of the cgroup's limit; on out of memory it begins again with half the batch
    headroom off    memory.limit = "off"
    headroom        memory.limit = "auto"

Each gets 100, 75, 50, 35 and 25 % of its own unlimited peak, counted in two ways: `above base`, base + share x (peak -
base), where base is a process that has loaded the libraries and does nothing, and `of whole`, share x peak. LibTorch's
own base does not shrink, so that the smaller shares of the whole may be less than any program can start in: those rows
are marked `< base`. With --limits every program gets the same limits in MiB instead. Peaks are the kernel's, of
the whole cgroup with its page cache. Samples per second count restarts and the final validation, relative to the
program's own unlimited run. Exits 1 when the kernel killed Headroom, when it ended with anything but 0 or 5, or when
its weights are off by more than 1e-8 of the largest.
"""
import argparse
import json
import os
import sys

from cgroup import Unavailable, run_in_cgroup
from headroom_runs import MIB, ROOT, Bench, largest_difference, last_weights, mib, print_table, summary_of

SHARES = (1.0, 0.75, 0.5, 0.35, 0.25)
TOLERANCE = 1e-8


class Result:
    def __init__(self, ended, samples_per_second=None, pieces=None, weights=None):
        self.ended, self.samples_per_second, self.pieces, self.weights = ended, samples_per_second, pieces, weights

    def verdict(self):
        if self.ended.oom_kills or self.ended.exit_code in (-9, 137):
            return f"killed (exit {self.ended.exit_code})"
        return "finished" if self.ended.exit_code == 0 else f"exit {self.ended.exit_code}"

    def reason(self):
        lines = self.ended.err.strip().splitlines()
        return lines[-1] if lines and self.ended.exit_code != 0 else ""


class Peer:
    def __init__(self, options, bench, retry):
        self.name, self.options, self.bench, self.retry = "pytorch retry" if retry else "pytorch", options, bench, retry

    def base(self):
        return run_in_cgroup([self.options.python, "-c", "import torch, h5py, numpy"]).peak_bytes

    def run(self, limit):
        words = [self.options.python, os.path.join(ROOT, "bench", "peers", "tds_lstm.py"), self.bench.data,
                 "--batch", str(self.options.batch), "--steps", str(self.options.steps), "--precision", "fp64"]
        environment = {"OMP_NUM_THREADS": "2"}
        ended = run_in_cgroup(words + ["--halve"] * self.retry, limit, limit if self.retry else None, environment)
        if ended.exit_code != 0:
            return Result(ended)
        said = json.loads(ended.out.splitlines()[-1])
        return Result(ended, said["samples_per_second"], said["batch"])


class Headroom:
    def __init__(self, options, bench, limit):
        self.name, self.options, self.bench, self.limit = "headroom" if limit == "auto" else "headroom off", options, bench, limit

    def base(self):
        return run_in_cgroup([self.bench.trainer, "describe", self.bench.plugin]).peak_bytes

    def run(self, limit):
        words, out = self.bench.words({"train.batch_size": self.options.batch, "train.max_steps": self.options.steps,
                                       "train.precision": "fp64", "memory.limit": f'"{self.limit}"'})
        ended = run_in_cgroup(words, limit, environment=self.bench.environment, folder=self.bench.folder)
        if ended.exit_code != 0:
            return Result(ended)
        summary = summary_of(out)
        return Result(ended, summary["steps"] * summary["window_samples"] / summary["train_seconds"],
                      summary["memory"]["retries"]["train"]["micro_batch"], last_weights(out))


def limits_of(options, base, peak):
    if options.limits:
        return [(f"{m} MiB", m * MIB) for m in options.limits]
    above = [(f"{share:.0%} above base", int(base + share * (peak - base))) for share in SHARES]
    return above + [(f"{share:.0%} of whole", int(share * peak)) for share in SHARES]


def judge(program, options, free, faults):
    rows = []
    base = program.base()
    unlimited = free.get(type(program)) or program.run(None)
    free[type(program)] = unlimited
    if unlimited.ended.exit_code != 0:
        raise SystemExit(f"{program.name} fails without a limit:\n{unlimited.ended.err}")
    peak = unlimited.ended.peak_bytes
    rows.append([program.name, "none", "-", "finished", "1.00", unlimited.pieces, 0, mib(peak), "-"])
    print(f"{program.name}: base {mib(base)} MiB, peak {mib(peak)} MiB, {unlimited.samples_per_second:.1f} samples/s", flush=True)
    for label, limit in limits_of(options, base, peak):
        result = program.run(limit)
        ended, difference, speed = result.ended, "-", "-"
        if result.samples_per_second is not None:
            speed = f"{result.samples_per_second / unlimited.samples_per_second:.2f}"
        if result.weights is not None:
            value = largest_difference(result.weights, unlimited.weights)
            difference = f"{value:.1e}"
            if value > TOLERANCE:
                faults.append(f"{program.name} at {label}: weights are off by {value:.1e}")
        if program.name == "headroom" and (ended.oom_kills or ended.exit_code not in (0, 5)):
            faults.append(f"headroom at {label}: {result.verdict()}\n{ended.err[-3000:]}")
        note = " (< base)" if limit < base else ""
        rows.append([program.name, label, mib(limit) + note, result.verdict(), speed, result.pieces or "-", ended.oom_kills,
                     mib(ended.peak_bytes), difference])
        print(f"  {label}: {result.verdict()} after {ended.seconds:.1f} s. {result.reason()[:600]}", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="a Python with torch, numpy, h5py")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--limits", type=int, nargs="*", metavar="MIB", help="the same limits for every program")
    parser.add_argument("--only", choices=["pytorch", "headroom"], help="judge only these")
    options = parser.parse_args()
    with Bench(options.build) as bench:
        words, _ = bench.words({"train.max_steps": 1})  # writes the data; brings the libraries into the page cache
        try:
            warm = run_in_cgroup(words, environment=bench.environment, folder=bench.folder)
        except Unavailable as reason:
            raise SystemExit(f"{reason}; this benchmark needs root") from None
        if warm.exit_code != 0:
            raise SystemExit(warm.err)
        programs = [Peer(options, bench, False), Peer(options, bench, True), Headroom(options, bench, "off"),
                    Headroom(options, bench, "auto")]
        rows, free, faults = [], {}, []
        for program in programs:
            if options.only is None or program.name.startswith(options.only):
                rows += judge(program, options, free, faults)
        print()
        print_table(["program", "limit", "MiB", "result", "speed", "batch", "oom_kill", "peak MiB", "weights off by"], rows)
        print("\n" + ("\n".join(faults) if faults else "Headroom was never killed; its weights agree."))
        sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
