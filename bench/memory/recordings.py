#!/usr/bin/env python3
"""Small real recordings through every command, with 60, 100 and 110 % of the memory that their plans need at least.

    bench/memory/recordings.py FOLDER [--build build/release] [--only emg]

FOLDER has emg/, act/ and spike/ with recordings in the layouts of the datasources, as ../shared/real has where it is present. For each of
them: data inspect, validate, plan, run without a limit, run at each share of the least need (refused below it, finished from it on), a run
that SIGTERM ends and --resume goes on with (bit-equal), evaluate, predict. Prints a line for each; exits with 1 where one was not as it
should be. Last comes data of the same shape made by Headroom, plain and in gzip, which the source hdf5 reads as the experiment says.
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from headroom_runs import MIB, ROOT, last_weights, run_folder, summary_of

SHORT = ["experiment.device=cpu", "train.epochs=2", "train.schedule.warmup_epochs=0", "train.schedule.warmup_steps=0",
         "eval.every_epochs=1", "data.max_samples_for_normalize=32"]
EMG = "experiments/emg/quick_demo.toml"
ACT = "experiments/act_dual_arm/quick_demo.toml"
SPIKE = "experiments/spike_vrt/quick_demo.toml"

CASES = {  # experiment, what it reads below FOLDER, more settings, the recording to predict
    "emg_8ch": (EMG, "emg/duque_1734923885_8ch_angles.hdf5", ["data.options.parts=5", "data.options.stride=50"], None),
    "emg_16ch": (EMG, "emg/duque_1734156561_16ch_curl.hdf5", ["data.options.parts=8", "data.options.stride=100"], None),
    "act_g1": (ACT, "act/g1_pick_bottle_arms14", ["data.options.train_ratio=0.5", "data.options.samples_per_episode=32"],
               "episode_0.hdf5"),
    "act_aloha": (ACT, "act/aloha_sim_transfer_cube",
                  ["data.options.train_ratio=0.5", "data.options.samples_per_episode=16", "train.batch_size=4"], "episode_1.hdf5"),
    "spike_g1": (SPIKE, "spike/realvideo_simspike",
                 ["data.split={ train = 1.0, val = 0.0, test = 0.0 }", "data.options.clip_length=2", "train.epochs=6"], "seq_g1.hdf5"),
}


def least_limit(plan):
    """The limit whose bound (a 32nd of it, 3 MiB at least, stays free) has room for the smallest micro-batch."""
    batch = plan["as_written"]["batch_size"]
    need = min(row["least_bytes"] for row in plan["rows"] if row["works"] and row["batch_size"] == batch)
    return max(need + 3 * MIB, need * 32 / 31) + 1


MADE = """extends = "{root}/experiments/emg/quick_demo.toml"
[data.options]
path = "made"
[data.synth]
sessions = 6
seconds = 4.0
"""
DESCRIBED = """extends = "{root}/experiments/emg/quick_demo.toml"
remove = ["data.options"]
[data]
source = "hdf5"
split = {{ train = 0.7, val = 0.3, test = 0.0 }}
[data.options]
path = "made"
window_size = 500
stride = 100
sample_rate_hz = 2000.0
fields = [
  {{ name = "emg", dataset = "/emg2pose/timeseries", member = "emg", normalize = true, axes = ["time", "channel"] }},
  {{ name = "joint_angles", dataset = "/emg2pose/timeseries", member = "joint_angles", unit = "rad", axes = ["time", "joint"] }},
]
"""
DESCRIBED_CASES = {"hdf5_made": "made", "hdf5_gzip": "packed"}


class Checks:
    def __init__(self, options, folder):
        self.folder, self.failed = folder, 0
        self.program = os.path.join(ROOT, options.build, "bin", "headroom")
        self.environment = {**os.environ, "XDG_CACHE_HOME": os.path.join(folder, "cache"),
                            "HEADROOM_RESERVATIONS": os.path.join(folder, "reservations")}

    def start(self, *words):
        return subprocess.Popen([self.program, *words], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def call(self, name, words, allowed=(0,)):
        """The command's stdout; its failure is told and counted."""
        process = self.start(*words)
        out, err = process.communicate()
        self.judge(name, process.returncode in allowed, f"exit {process.returncode}", err)
        return out

    def judge(self, name, right, what, err=""):
        self.failed += not right
        said = (err.strip().splitlines() or [""])[-1]
        print(f"{name}: {what}{'' if right else ': WRONG: ' + said[:300]}", flush=True)

    def limited(self, name, words, share, least):
        limit = int(share * least)
        out = os.path.join(self.folder, f"{name}-{share}")
        process = self.start(*words, "--out", out, "--set", f"memory.limit={limit}")
        _, err = process.communicate()
        summary = summary_of(out)
        peak = summary["memory"]["measured_peak_bytes"] if summary else 0
        right = process.returncode == (0 if share >= 1 else 5) and peak <= limit and (share >= 1 or not summary)
        self.judge(f"{name} run at {share:.0%} of {least / MIB:.1f} MiB", right, f"exit {process.returncode}, peak {peak / MIB:.1f} MiB", err)

    def resumed(self, name, words, undisturbed):
        out = os.path.join(self.folder, f"{name}-resumed")
        process = self.start(*words, "--out", out)
        while process.poll() is None and not (run_folder(out) and os.path.exists(os.path.join(run_folder(out), "checkpoints/last"))):
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate()
        self.judge(f"{name} run, ended by SIGTERM", process.returncode in (0, 75), f"exit {process.returncode}", err)
        if process.returncode == 75:
            self.call(f"{name} run --resume", ["run", "--resume", run_folder(out)])
        same = last_weights(out) == last_weights(undisturbed)
        self.judge(f"{name} resumed", same, "bit-equal" if same else "other weights")

    def described(self, names):
        """Cases of made data that the source hdf5 reads, as it was made and compressed in small chunks."""
        folder = pathlib.Path(self.folder)
        for name, text in (("made", MADE), ("described", DESCRIBED)):
            (folder / f"{name}.toml").write_text(text.format(root=ROOT))
        self.call("made data synth", ["data", "synth", str(folder / "made.toml")])
        self.call("made data convert", ["data", "convert", str(folder / "made"), "--out", str(folder / "packed"),
                                        "--deflate", "4", "--shuffle", "--chunk", "4096"])
        first = sorted(path.name for path in (folder / "made").iterdir() if path.suffix == ".hdf5")[0]
        for name in names:
            self.case(name, (str(folder / "described.toml"), DESCRIBED_CASES[name], [], first), folder)

    def case(self, name, case, real):
        experiment, path, sets, recording = case
        words = [os.path.join(ROOT, experiment)]
        for word in [f"data.options.path={real / path}", *SHORT, *sets]:
            words += ["--set", word]
        self.call(f"{name} data inspect", ["data", "inspect", str(real / path)])
        self.call(f"{name} validate", ["validate", *words])
        plan = json.loads(self.call(f"{name} plan", ["plan", *words, "--json"]) or "{}")
        out = os.path.join(self.folder, name)
        self.call(f"{name} run", ["run", *words, "--out", out, "--set", "memory.limit=off"])
        if summary_of(out) is None:
            return
        for share in (0.6, 1.0, 1.1):
            self.limited(name, ["run", *words], share, least_limit(plan))
        self.resumed(name, ["run", *words, "--set", "memory.limit=off", "--set", "checkpoint.every_steps=2"], out)
        split = "val" if "data.split={ train = 1.0, val = 0.0, test = 0.0 }" not in sets else "train"
        self.call(f"{name} evaluate", ["evaluate", run_folder(out), "--split", split])
        file = real / path / recording if recording else real / path
        self.call(f"{name} predict", ["predict", run_folder(out), "--input", str(file)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--only", default="", help="cases whose names begin like this")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headroom-recordings-") as folder:
        checks = Checks(options, folder)
        for name, case in CASES.items():
            if name.startswith(options.only) and (options.folder / case[1]).exists():
                checks.case(name, case, options.folder.resolve())
        described = [name for name in DESCRIBED_CASES if name.startswith(options.only)]
        if described:
            checks.described(described)
        print(f"{checks.failed} not as they should be")
        return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
