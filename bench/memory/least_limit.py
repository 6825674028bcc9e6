"""The least memory in which a whole run finishes: Headroom with the C++ plugin and with the nn.Module of the same model, and the PyTorch
peer, each in smaller and smaller cgroups.

    sudo python3 bench/memory/least_limit.py --python .venv/bin/python [tds_lstm act_policy spike_vrt] [--steps 3] [--build build/release]

Needs root (memory cgroups, v1 or v2) and the built headroom_app; --python names a Python with torch, numpy and h5py. A run
finishes when it ends with 0 and the kernel killed nothing in its cgroup. Halves the span between a limit that is too small and one
that is enough until they are 2 % or 2 MiB apart; what the libraries alone take is the first that is too small.

The floor is arithmetic: parameters, gradients and optimizer state as the run's own memory.jsonl counts them, and one
sample's activations. These are the difference of the peaks of two free runs with micro-batches of 2 and 1; at batch 1 they are the peak
less the libraries and the rest of the floor. `base` is a process that has loaded the libraries and does nothing; no program
can be below base + floor unless it computes activations again.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

from cgroup import Unavailable, run_in_cgroup
from headroom_runs import MIB, ROOT, Bench, mib, print_table, run_folder, summary_of

sys.path.insert(0, os.path.join(ROOT, "bench", "models"))
import act_policy  # noqa: E402
import python_modules  # noqa: E402
import spike_vrt  # noqa: E402


class TdsLstm:
    """experiments/emg/quick_demo.toml on synthetic data."""

    name, plugin = "tds_lstm", "tds_lstm.so"

    def __init__(self, options, folder):
        self.batch, self.bench = options.batch or 32, Bench(options.build)
        words, _ = self.bench.words({"train.max_steps": 1})  # writes the data
        subprocess.run(words, check=True, capture_output=True, env={**os.environ, **self.bench.environment})
        self.experiment = os.path.join(self.bench.folder, "bench.toml")
        self.peer = [os.path.join(ROOT, "bench", "peers", "tds_lstm.py"), self.bench.data, "--batch", str(self.batch),
                     "--steps", str(options.steps), "--threads", "2"]
        self.module = python_modules.tds(argparse.Namespace(network="quick"))

    def close(self):
        self.bench.__exit__()


class ActPolicy:
    """The ACT of bench/models/act_policy.py, two cameras of 120 x 160."""

    name, plugin = "act_policy", "act_policy.so"

    def __init__(self, options, folder):
        self.batch, data = options.batch or 4, os.path.join(folder, "data.hdf5")
        subprocess.run([options.python, "-c", act_policy.MAKE_DATA, data, str(8 * self.batch), "2", "120", "160", "100"], check=True)
        self.experiment = os.path.join(folder, "bench.toml")
        with open(self.experiment, "w") as file:
            file.write(act_policy.EXPERIMENT.format(threads=2, chunk=20, steps=options.steps, batch=self.batch))
        self.peer = [os.path.join(ROOT, "bench", "peers", "act_policy.py"), data, "--batch", str(self.batch), "--steps",
                     str(options.steps), "--chunk", "20", "--threads", "2"]
        self.module = python_modules.act(argparse.Namespace(chunk=20))

    def close(self):
        pass


class SpikeVrt:
    """A reduced VRT as bench/models/spike_vrt.py builds it, smaller still: batch 1, whole frames of 64 x 64."""

    name, plugin, batch = "spike_vrt", "spike_vrt.so", 1

    def __init__(self, options, folder):
        sizes = {"clip": 3, "embed": 24, "depth": 2, "heads": 6, "deformable_groups": 4, "threads": 2, "fusion": "none",
                 "drop_path": 0.0}
        os.mkdir(os.path.join(folder, "data"))
        data = os.path.join(folder, "data", "sequence.hdf5")
        subprocess.run([options.python, "-c", spike_vrt.MAKE_DATA, data, "8", "64"], check=True)
        self.experiment = os.path.join(folder, "bench.toml")
        with open(self.experiment, "w") as file:
            file.write(spike_vrt.experiment(argparse.Namespace(**sizes)))
        self.peer = [os.path.join(ROOT, "bench", "peers", "spike_vrt.py"), data, "--steps", str(options.steps)]
        for name, value in sizes.items():
            self.peer += ["--" + name.replace("_", "-"), str(value)]
        self.module = python_modules.vrt(argparse.Namespace(**sizes))

    def close(self):
        pass


MODELS = {model.name: model for model in (TdsLstm, ActPolicy, SpikeVrt)}


class Sides:
    """One model's programs, each a function of a limit in bytes or None."""

    def __init__(self, model, options, folder):
        self.model, self.options, self.folder, self.runs = model, options, folder, 0
        self.environment = {"XDG_CACHE_HOME": os.path.join(folder, "cache"), "OMP_NUM_THREADS": "2",
                            "HEADROOM_RESERVATIONS": os.path.join(folder, "reservations")}
        self.with_module = os.path.join(os.path.dirname(model.experiment), "module.toml")
        with open(model.experiment) as given, open(self.with_module, "w") as file:
            file.write(python_modules.with_module(given.read(), os.path.abspath(options.python), model.module))

    def headroom(self, limit, settings=None, experiment=None):
        """(what the kernel saw, the run's output folder)"""
        self.runs += 1
        out = os.path.join(self.folder, f"out-{self.runs}")
        words = [os.path.join(ROOT, self.options.build, "bin", "headroom"), "run", experiment or self.model.experiment, "--out", out]
        chosen = {"train.max_steps": self.options.steps, "train.batch_size": self.model.batch, "memory.log_every": 1,
                  "memory.limit": '"auto"', **(settings or {})}
        for key, value in chosen.items():
            words += ["--set", f"{key}={value}"]
        return run_in_cgroup(words, limit, environment=self.environment), out

    def peer(self, limit):
        return run_in_cgroup([self.options.python, *self.model.peer], limit, environment=self.environment)

    def headroom_base(self):
        words = [os.path.join(ROOT, self.options.build, "libexec", "headroom-train"), "describe",
                 os.path.join(ROOT, self.options.build, "lib", "headroom", self.model.plugin)]
        return run_in_cgroup(words).peak_bytes

    def peer_base(self):
        return run_in_cgroup([self.options.python, "-c", "import torch, h5py, numpy"]).peak_bytes

    def free_peak(self, micro_batch):
        """measured_peak_bytes without a limit, and the bytes of parameters, gradients and optimizer."""
        ended, out = self.headroom(None, {"memory.limit": '"off"', "train.micro_batch": micro_batch})
        if ended.exit_code != 0:
            raise SystemExit(f"{self.model.name} fails without a limit:\n{ended.err}")
        with open(os.path.join(run_folder(out), "memory.jsonl")) as file:
            lines = [json.loads(line) for line in file]
        held = {owner: max(line[owner + "_bytes"] for line in lines) for owner in ("parameters", "gradients", "optimizer")}
        return summary_of(out)["memory"]["measured_peak_bytes"], held


def finishes(ended):
    return ended.exit_code == 0 and ended.oom_kills == 0


def least_limit(run, too_small, name):
    """The least limit that was enough, and the peak without one. `run` takes a limit."""
    free = run(None)
    if free.exit_code != 0:
        raise SystemExit(f"{name} fails without a limit:\n{free.err}")
    enough = free.peak_bytes
    while not finishes(run(enough)):
        too_small, enough = enough, enough * 5 // 4
    while enough - too_small > max(2 * MIB, enough // 50):
        middle = (too_small + enough) // 2
        ended = run(middle)
        print(f"  {name} in {mib(middle)} MiB: exit {ended.exit_code}, {ended.oom_kills} killed, {ended.seconds:.1f} s", flush=True)
        if finishes(ended):
            enough = middle
        else:
            too_small = middle
    return enough, free.peak_bytes


def floor_of(sides, base):
    """(bytes, how they add up)"""
    one, held = sides.free_peak(1)
    fixed = sum(held.values())
    activations = sides.free_peak(2)[0] - one if sides.model.batch > 1 else one - base - fixed
    activations = max(0, activations)
    parts = [f"{owner} {mib(size)}" for owner, size in held.items()] + [f"one sample's activations {mib(activations)}"]
    return fixed + activations, " + ".join(parts)


def judge(model, options, folder):
    sides = Sides(model, options, folder)
    sides.headroom(None)  # brings the libraries into the page cache
    base, peer_base = sides.headroom_base(), sides.peer_base()
    floor, parts = floor_of(sides, base)
    print(f"{model.name}, batch {model.batch}: floor {mib(floor)} MiB = {parts}", flush=True)
    ours, our_peak = least_limit(lambda limit: sides.headroom(limit)[0], base, "headroom")
    own, own_peak = least_limit(lambda limit: sides.headroom(limit, experiment=sides.with_module)[0], base, "headroom, nn.Module")
    theirs, their_peak = least_limit(sides.peer, peer_base, "pytorch")
    return [[model.name, "headroom", mib(ours), f"{ours / theirs:.2f}", mib(our_peak), mib(base), mib(floor), mib(ours - base - floor)],
            [model.name, "headroom, nn.Module", mib(own), f"{own / theirs:.2f}", mib(own_peak), "-", mib(floor), "-"],
            [model.name, "pytorch", mib(theirs), "1.00", mib(their_peak), mib(peer_base), mib(floor), mib(theirs - peer_base - floor)]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", choices=[*MODELS, []], default=[])
    parser.add_argument("--python", default=sys.executable, help="a Python with torch, numpy, h5py")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--batch", type=int, help="in place of 32 (tds_lstm) and 4 (act_policy)")
    options = parser.parse_args()
    rows = []
    for name in options.models or MODELS:
        with tempfile.TemporaryDirectory(prefix="headroom-bench-") as folder:
            model = MODELS[name](options, folder)
            try:
                rows += judge(model, options, folder)
            finally:
                model.close()
    print()
    print_table(["model", "program", "least MiB", "ratio", "peak MiB", "base", "floor", "above both"], rows)


if __name__ == "__main__":
    try:
        main()
    except Unavailable as reason:
        sys.exit(f"{reason}; this benchmark needs root")
