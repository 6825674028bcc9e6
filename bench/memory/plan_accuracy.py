#!/usr/bin/env python3
"""What `headroom plan` predicts against what whole runs measure: epochs with validation, checkpoints and all.

    bench/memory/plan_accuracy.py                         # every preset and quick demo that ends within minutes, on small data
    bench/memory/plan_accuracy.py PRESET --vary data.options.clip_length=2,3,4 --vary data.options.crop_size=48,64
                                  [--set KEY=VALUE] [--epochs 3] [--steps N] [--build build/release]
    sudo bench/memory/plan_accuracy.py --cgroup           # also against the kernel's count of the run's anonymous memory
    bench/memory/plan_accuracy.py --limits 8 --jobs 2     # also under limits of 0.5 to 1.2 of each plan, three seeds each

Each run writes its data and its folder below a temporary folder. Prints a line a run and, at the end, how many predictions were
too low by more than 2 % or too high by more than 15 % of measured_peak_bytes. The kernel's count is that of the whole cgroup: beside the
trainer the `headroom` that waits for it and the processes that read HDF5 files; plans are probed before, outside of it. A run under a
limit is admitted when it began to train; then it must not end with 5, nor hold more than its limit. One that was refused must not have more
than 1.1 times the least limit that another seed or limit of the same experiment finished in. Exits with 1 where more than 1 % of predictions
were too low, any was too high, a run failed, an admitted one broke its promise, or one was refused that fits.
"""
import argparse
import concurrent.futures
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

from cgroup import Cgroup, Unavailable, read
from headroom_runs import MIB, ROOT, summary_of

SEEDS = (1, 2, 3)
SMALL = {  # what makes a preset's data small
    "emg": ["data.options.stride=100", "data.synth.sessions=6", "data.synth.seconds=4.0", "data.max_samples_for_normalize=64",
            "train.schedule.warmup_epochs=0"],
    "act_dual_arm": ["data.options.samples_per_episode=4", "data.synth.episodes=6", "data.synth.steps=40", "data.synth.cameras=2",
                     "data.synth.height=60", "data.synth.width=80", "data.max_samples_for_normalize=16"],
    "spike_vrt": ["data.synth.sequences=6", "data.synth.frames=6", "data.synth.height=64", "data.synth.width=64",
                  "data.options.crop_size=64"],
}
PRESETS = [f"experiments/emg/{name}.toml" for name in ("quick_demo", "low_memory", "default", "high_performance")]
PRESETS += [f"experiments/act_dual_arm/{name}.toml" for name in ("quick_demo", "minimal", "train_reduced")]
PRESETS += ["experiments/spike_vrt/quick_demo.toml", "experiments/quick_demo.toml"]


def mib(size):
    return f"{size / MIB:.1f} MiB"


class Anonymous:
    """A cgroup without a limit and the largest anonymous memory that was seen in it, looked at every few milliseconds."""

    def __enter__(self):
        self.group, self.peak_bytes, self.over = Cgroup().__enter__(), 0, threading.Event()
        self.watch = threading.Thread(target=self._look)
        self.watch.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.watch.join()
        self.group.__exit__()

    def enter(self):
        self.group.write("cgroup.procs", str(os.getpid()))

    def _look(self):
        name = "rss" if self.group.version_1 else "anon"
        while not self.over.wait(0.005):
            for line in read(self.group.folder, "memory.stat").splitlines():
                key, value = line.split()
                if key == name:
                    self.peak_bytes = max(self.peak_bytes, int(value))


class Runs:
    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache"),
                            "HEADROOM_RESERVATIONS": str(self.folder / "reservations")}

    def run(self, preset, sets):
        """(exit code, summary or None, the kernel's peak or 0, the last line it said)"""
        with tempfile.TemporaryDirectory(dir=self.folder) as out:  # checkpoints of many runs would fill a disk
            return self._run(preset, sets, out)

    def _run(self, preset, sets, out):
        data = self.folder / preset.replace("/", "-")
        always = [f"train.epochs={self.options.epochs}", f"train.max_steps={self.options.steps}", f"data.options.path={data}"]
        program, more = os.path.join(ROOT, self.options.build, "bin", "headroom"), []
        for word in always + SMALL[family_of(preset)] + self.options.sets + sets:
            more += ["--set", word]
        words = [program, "run", os.path.join(ROOT, preset), "--out", out, *more]
        if not self.options.cgroup:
            done, peak = self._process(words), 0
        else:
            self._process([program, "plan", os.path.join(ROOT, preset), *more])  # kept for the run
            with Anonymous() as anonymous:
                done = self._process(words, anonymous.enter)
            peak = anonymous.peak_bytes
        return done.returncode, summary_of(out), peak, (done.stderr.strip().splitlines() or [""])[-1]

    def _process(self, words, enter=None):
        return subprocess.run(words, capture_output=True, text=True, env=self.environment, preexec_fn=enter)


def family_of(preset):
    family = pathlib.Path(preset).parent.name
    return family if family in SMALL else "emg"


class Tally:
    def __init__(self):
        self.errors, self.kernel_saw, self.failures, self.admitted, self.broken = [], [], 0, 0, []
        self.finished_in, self.refused_in = {}, {}  # experiment: limits

    def whole(self, name, ended):
        """Judges a run without a limit; its predicted peak, or None."""
        exit_code, summary, kernel_peak, said = ended
        if exit_code != 0:
            self.failures += 1
            print(f"{name}: exit {exit_code}: {said}", flush=True)
            return None
        memory = summary["memory"]
        measured, predicted = memory["measured_peak_bytes"], memory["predicted_peak_bytes"]
        self.errors.append(predicted / measured - 1)
        self.kernel_saw.append(kernel_peak / measured)
        kernel = f", the kernel {mib(kernel_peak)}" if kernel_peak else ""
        print(f"{name}: predicted {mib(predicted)}, measured {mib(measured)}{kernel}, {self.errors[-1]:+.1%}", flush=True)
        return predicted

    def limited(self, experiment, seed, limit, ended):
        exit_code, summary, _, said = ended
        name = f"{experiment}, seed {seed}"
        peak = summary["memory"]["measured_peak_bytes"] if summary else 0
        self.admitted += summary is not None
        wrong = []
        if exit_code not in (0, 5) or (summary is not None and exit_code != 0):
            wrong.append(f"admitted, and ended with {exit_code}: {said[:200]}" if summary else f"exit {exit_code}: {said[:200]}")
        if peak > limit:
            wrong.append(f"held {mib(peak)}")
        print(f"{name} in {mib(limit)}: exit {exit_code}, peak {mib(peak)}{': ' * bool(wrong)}{'; '.join(wrong)}", flush=True)
        self.broken += [f"{name} in {mib(limit)}: {sentence}" for sentence in wrong]
        by_end = self.finished_in if exit_code == 0 else self.refused_in
        by_end.setdefault(experiment, []).append(limit)

    def refused_that_fit(self):
        for experiment, limits in self.refused_in.items():
            least = min(self.finished_in.get(experiment, [float("inf")]))
            for limit in sorted(limits):
                if limit > 1.1 * least:
                    yield f"{experiment} in {mib(limit)}: refused, and finished in {mib(least)}"

    def told(self):
        low, high = sum(e < -0.02 for e in self.errors), sum(e > 0.15 for e in self.errors)
        if self.errors:
            print(f"{len(self.errors)} runs: {low} predicted more than 2 % too low, {high} more than 15 % too high; "
                  f"from {min(self.errors):+.1%} to {max(self.errors):+.1%}")
        if max(self.kernel_saw, default=0) > 0:
            print(f"the kernel saw {min(self.kernel_saw):.2f} to {max(self.kernel_saw):.2f} of the measured peaks")
        if self.admitted:
            print(f"{self.admitted} admitted under a limit, {len(self.broken)} broken promises", *self.broken, sep="\n  ")
        refused = list(self.refused_that_fit())
        if self.refused_in:
            print(f"{sum(map(len, self.refused_in.values()))} refused, {len(refused)} of them in more than 1.1 times what they need",
                  *refused, sep="\n  ")
        return 1 if self.failures or not self.errors or low > 0.01 * len(self.errors) or high or self.broken or refused else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("presets", nargs="*")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--vary", action="append", default=[], metavar="KEY=V,V,...")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="sets")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=0, help="end after so many; 0: whole epochs")
    parser.add_argument("--cgroup", action="store_true", help="needs root")
    parser.add_argument("--limits", type=int, default=0, metavar="N")
    parser.add_argument("--jobs", type=int, default=1, help="runs under a limit at once")
    options = parser.parse_args()
    keys = [word.split("=", 1)[0] for word in options.vary]
    combinations = list(itertools.product(*(word.split("=", 1)[1].split(",") for word in options.vary)))
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="headroom-plan-") as folder:
        runs = Runs(options, folder)
        for preset, values in itertools.product(options.presets or PRESETS, combinations):
            chosen = [f"{key}={value}" for key, value in zip(keys, values, strict=True)]
            name = " ".join([preset.removeprefix("experiments/").removesuffix(".toml"), *values])
            predicted = tally.whole(name, runs.run(preset, ["memory.limit=off", *chosen]))
            cases = [(int(predicted * (0.5 + 0.7 * i / max(1, options.limits - 1))), seed)
                     for i, seed in itertools.product(range(options.limits if predicted else 0), SEEDS)]
            with concurrent.futures.ThreadPoolExecutor(options.jobs) as jobs:
                started = [jobs.submit(runs.run, preset, [f"memory.limit={limit}", f"experiment.seed={seed}", *chosen])
                           for limit, seed in cases]
                for (limit, seed), run in zip(cases, started):
                    tally.limited(name, seed, limit, run.result())
    return tally.told()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Unavailable as reason:
        sys.exit(f"{reason}; --cgroup needs root")
