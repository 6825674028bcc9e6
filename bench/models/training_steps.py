"""What the benches of whole training steps share: contenders that take turns, each run a process of its own; what they took.

A run gives {"seconds", and where steps are measured and no evaluation "cpu_seconds", "faults" (of pages) of each step, "first_step_seconds" from the process's start to its first
step's end, "peak_bytes" of its process, LibTorch or Python included, and perhaps "losses"}.
"""
import csv
import glob
import itertools
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench", "data"))
import process_tree  # noqa: E402
MIB = 1 << 20
# What a patient user sets outside the program for speed: glibc keeps memory.
KEEPS_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "17179869184", "MALLOC_TOP_PAD_": "67108864"}
WARM_UP = 2  # steps of each run that are not counted


def process(words, folder, environment=None, heard=lambda pid, line: None):
    """(standard output, the largest resident size of whatever ran); `heard` gets each line of standard error as it comes."""
    # Neither the user's cache nor the reservations of other runs of this machine belong into a measurement.
    environment = {**os.environ, "XDG_CACHE_HOME": os.path.join(folder, "cache"),
                   "HEADROOM_RESERVATIONS": os.path.join(folder, "reservations"), **(environment or {})}
    with tempfile.TemporaryFile("w+") as out:
        child, log = subprocess.Popen(words, stdout=out, stderr=subprocess.PIPE, text=True, env=environment), []
        for line in child.stderr:
            heard(child.pid, line)
            log.append(line)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            hint = "\n.venv/bin/pip install torch numpy h5py brings it: bench/README.md" if "ModuleNotFoundError" in "".join(log) else ""
            raise SystemExit(f"{' '.join(words)} ended with {child.returncode}:\n{''.join(log[-30:])}{hint}")
        out.seek(0)
        return out.read(), usage.ru_maxrss * 1024


class Headroom:
    """`headroom run` of an experiment; `settings` as --set has them."""

    def __init__(self, build, folder, experiment, window, steps):
        """`window`: samples of a step."""
        self.program = os.path.join(ROOT, build, "bin", "headroom")
        if not os.path.exists(self.program):
            raise SystemExit(f"{self.program} is not built: build the target headroom_app, or name the folder with --build")
        self.folder, self.experiment, self.window, self.steps = folder, experiment, window, steps
        self.planned, self.trained = [], None

    def command(self, out, settings):
        words = [self.program, "run", self.experiment, "--out", out]
        return words + [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]

    def run(self, steps, settings, keep=None):
        """(rows of metrics.csv of training; at each step's end the seconds since the start, CPU seconds and faults so far; peak).
        `keep`: where the last weights go."""
        out, ends, began = tempfile.mkdtemp(prefix="out-", dir=self.folder), [], time.monotonic()

        def heard(pid, line):
            if re.search(r" train: \d+/\d+ ", line):
                ends.append((time.monotonic() - began, *process_tree.usage(pid)))

        _, peak_bytes = process(self.command(out, {**settings, "train.max_steps": steps}), self.folder, heard=heard)
        run_folder = glob.glob(os.path.join(out, "*", "*", ""))[0]
        with open(os.path.join(run_folder, "metrics.csv")) as file:
            rows = [row for row in csv.DictReader(file) if row["split"] == "train"]
        if keep:
            shutil.copyfile(os.path.join(run_folder, "checkpoints", "last", "model.safetensors"), keep)
        self.ended(run_folder)
        shutil.rmtree(out)
        return rows, ends, peak_bytes

    def evaluation(self, split):
        """`headroom evaluate` of a split with the weights of one step; seconds of a sample."""
        if self.trained is None:
            out = tempfile.mkdtemp(prefix="trained-", dir=self.folder)
            process(self.command(out, {"train.max_steps": 1, "train.micro_batch": "auto"}), self.folder)
            self.trained = glob.glob(os.path.join(out, "*", "*", ""))[0]
        found, peak_bytes = process([self.program, "evaluate", self.trained, "--split", split, "--json"], self.folder)
        found = json.loads(found)
        return {"seconds": found["seconds"] / found["samples"], "peak_bytes": peak_bytes}

    def ended(self, run_folder):
        """For whoever wants to know more of a run."""

    def initial_weights(self, path):
        self.run(1, {"train.optimizer.lr": 1e-30, "train.optimizer.weight_decay": 0.0}, keep=path)
        return path

    def __call__(self, **settings):
        """Of an experiment whose epoch has more than so many steps, with train.log_every = 1."""
        if settings not in self.planned:  # a first step is timed with data planned and cached, as in any run but the first
            self.run(1, settings)
            self.planned.append(settings)
        rows, ends, peak_bytes = self.run(self.steps, settings)

        def column(metric):
            return [float(row["value"]) for row in rows if row["metric"] == metric]

        def of_steps(which):
            return [0] + [after[which] - before[which] for before, after in itertools.pairwise(ends)]

        return {"seconds": [self.window / rate for rate in column("samples_per_second")], "peak_bytes": peak_bytes,
                "cpu_seconds": of_steps(1), "faults": of_steps(2), "first_step_seconds": ends[0][0], "losses": column("loss_step")}


def peer(words, folder, environment=None):
    """What it printed; {"cannot": why} where its PyTorch cannot run at all what it was asked to."""
    began = time.time()
    result = json.loads(process(words, folder, environment)[0])
    return result if "cannot" in result else {**result, "first_step_seconds": result.pop("first_ended") - began}


def beside_modules(headroom, words, folder):
    """Headroom, the nn.Module that `words` start, and the same tuned."""
    return {"headroom": headroom, "nn.Module": lambda: peer(words, folder),
            "nn.Module tuned": lambda: peer([*words, "--tuned"], folder, KEEPS_MEMORY)}


def evaluations(headroom, split, words, folder, batch, tuned_batch):
    """Seconds a sample, reading included: `headroom evaluate`; the nn.Module in inference mode with batches as in training; the same
    tuned, with the batches of a patient user."""
    def of_samples(words, batch, environment=None):
        result = peer([*words, "--evaluate"], folder, environment)
        return {"seconds": [seconds / batch for seconds in result["seconds"]], "peak_bytes": result["peak_bytes"]}

    batches = ["--batch", str(tuned_batch)] if tuned_batch != batch else []
    return {"headroom": lambda: headroom.evaluation(split), "nn.Module": lambda: of_samples(words, batch),
            "nn.Module tuned": lambda: of_samples([*words, "--tuned", *batches], tuned_batch, KEEPS_MEMORY)}


def take_turns(contenders, rounds):
    """{name: its runs}; each round has every contender once, in an order that rotates. One that cannot run is left out."""
    results, order = {name: [] for name in contenders}, list(contenders.items())
    for number in range(rounds):
        first = number % len(order)
        for name, run in order[first:] + order[:first]:
            if name not in results:
                continue
            print(f"round {number + 1} of {rounds}: {name}", file=sys.stderr, flush=True)
            result = run()
            if "cannot" in result:
                print(f"{name} is left out: {result['cannot']}")
                del results[name]
            else:
                results[name].append(result)
    return results


def of_rounds(runs, key):
    """Each round's figure: the median step, or what is one of the whole run; [] where it is not measured."""
    figures = [run[key] for run in runs if key in run]
    return [statistics.median(figure[WARM_UP:]) if isinstance(figure, list) else figure for figure in figures]


def print_table(results):
    print(f"on {process_tree.processor()}")
    for name, runs in results.items():
        cells, steps = [], "faults" in runs[0]
        for key, unit, digits, scale in (("seconds", "s", 3 if steps else 5, 1), ("cpu_seconds", "CPU s", 3, 1), ("faults", "faults", 0, 1),
                                        ("peak_bytes", "MiB", 0, MIB)):
            values = [value / scale for value in of_rounds(runs, key)]
            if values:
                cells.append(f"{statistics.median(values):.{digits}f} {unit} ({min(values):.{digits}f} to {max(values):.{digits}f})")
        print(f"{name:28} a {'step' if steps else 'sample'} {', '.join(cells[:-1])}; peak {cells[-1]}")


def ratio(results, key, above, below):
    return statistics.median(of_rounds(results[above], key)) / statistics.median(of_rounds(results[below], key))


def print_ratios(results):
    for name in results:
        if not name.startswith("headroom"):
            continue
        for rival in results:
            if not rival.startswith("headroom"):
                by_cpu = f"{ratio(results, 'cpu_seconds', rival, name):.2f} x by CPU seconds, " if "cpu_seconds" in results[name][0] else ""
                print(f"{name} against {rival}: {ratio(results, 'seconds', rival, name):.2f} x its speed, {by_cpu}"
                      f"{ratio(results, 'peak_bytes', name, rival):.2f} of its peak")


def largest_loss_difference(results):
    """Of any step, relative, between the first runs of all contenders."""
    columns = zip(*(runs[0]["losses"] for runs in results.values()))
    return max((max(losses) - min(losses)) / max(losses) for losses in columns)
