#!/usr/bin/env python3
"""Step time, page faults and peak with three allocators under the same training, for every model plugin.

    bench/memory/allocators.py [--rounds 5] [--steps 60] [--jemalloc FILE]

Headroom's own arena; glibc's malloc (a build with HEADROOM_SYSTEM_ALLOCATOR=ON, made in build/system); and that build
with jemalloc preloaded, tuned as PyTorch's performance guide says. The rounds are interleaved; medians over rounds and,
behind them, the smallest and largest. Ratios are to Headroom's arena, round by round.
"""
import argparse
import ctypes.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "data"))
import process_tree  # noqa: E402

root = pathlib.Path(__file__).resolve().parents[2]
tuned = "oversize_threshold:1,background_thread:true,metadata_thp:auto,dirty_decay_ms:9000000000,muzzy_decay_ms:9000000000"

linear = """[experiment]
name = "linear"
[model]
plugin = "linear_model"
[data]
source = "toy_source"
num_workers = 0
[data.options]
samples = 20000
inputs = 1000
[train]
batch_size = 256
epochs = 4
"""


def quick_demo(**sets):
    return [root / "experiments/quick_demo.toml"] + [f"{key}={value}" for key, value in sets.items()]


def build_system():
    folder = root / "build/system"
    torch = (root / "build/torch-dir").read_text().strip()
    subprocess.run(["cmake", "--preset", "release", "-B", folder, "-DHEADROOM_SYSTEM_ALLOCATOR=ON", "-DHEADROOM_TESTS=OFF",
                    f"-DLIBTORCH_DIR={torch}"], cwd=root, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", folder, "headroom_app", "linear_model", "toy_source"], check=True, stdout=subprocess.DEVNULL)
    return folder


def run(build, environment, words, steps, data):
    with tempfile.TemporaryDirectory(prefix="headroom-allocators-") as folder:
        command = [build / "bin/headroom", "run", words[0], "--no-plan", "--out", folder, "--plugin-dir", build / "examples"]
        for setting in list(words[1:]) + [f"train.max_steps={steps}", "experiment.threads=2", "data.num_workers=0"] + data:
            command += ["--set", setting]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stderr}")
        summary = json.loads(next(pathlib.Path(folder).glob("*/*/summary.json")).read_text())
    return summary["memory"]["step"] | {"peak_mib": summary["memory"]["measured_peak_bytes"] / 2**20}


def spread(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}..{max(values):.{digits}f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--jemalloc", default=ctypes.util.find_library("jemalloc") or "libjemalloc.so.2")
    words = parser.parse_args()
    system = build_system()
    ways = {"Headroom's arena": (root / "build/release", {}),
            "glibc": (system, {}),
            "jemalloc, preloaded and tuned": (system, {"LD_PRELOAD": words.jemalloc, "MALLOC_CONF": tuned})}
    with tempfile.TemporaryDirectory(prefix="headroom-allocators-") as folder:
        line = pathlib.Path(folder) / "linear.toml"
        line.write_text(linear)
        path = [f"data.options.path={folder}/data", "data.synth.seconds=6.0"]
        cases = {"tds_lstm, batch 8": (quick_demo(**{"train.batch_size": 8}), path),
                 "tds_lstm, batch 64": (quick_demo(**{"train.batch_size": 64}), path),
                 "linear_model, batch 256": ([line], [])}
        for name, (experiment, data) in cases.items():
            if words.only not in name:
                continue
            seen = {way: [] for way in ways}
            for _ in range(words.rounds):
                for way, (build, environment) in ways.items():
                    seen[way].append(run(build, environment, experiment, words.steps, data))
            print(f"\n{name}: {words.rounds} rounds of {words.steps} steps, on {process_tree.processor()}")
            print(f"{'':<31} {'CPU ms a step':>24} {'ratio':>20} {'page faults a step':>26} {'peak MiB':>24}")
            base = [r["median_cpu_ms"] for r in seen["Headroom's arena"]]
            for way, runs in seen.items():
                cpu = [r["median_cpu_ms"] for r in runs]
                print(f"{way:<31} {spread(cpu, 2):>24} {spread([a / b for a, b in zip(cpu, base)], 2):>20} "
                      f"{spread([r['median_minor_faults'] for r in runs], 0):>26} "
                      f"{spread([r['peak_mib'] for r in runs], 0):>24}", flush=True)


if __name__ == "__main__":
    main()
