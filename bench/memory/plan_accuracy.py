#!/usr/bin/env python3
"""What `headroom plan` predicts against what short runs measure.

    bench/memory/plan_accuracy.py                         # the EMG presets x batch sizes x precisions
    bench/memory/plan_accuracy.py PRESET --vary data.options.clip_length=2,3,4 --vary data.options.crop_size=48,64
                                  [--set KEY=VALUE] [--steps 6] [--headroom build/release/bin/headroom]

Each run writes its data and its folder below a temporary folder. Prints a line a run and, at the end, how many
predictions were too low by more than 2 % or too high by more than 15 %; exits with 1 where more than 1 % were too low
or any was too high.
"""
import argparse
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parents[2]
emg_presets = [f"experiments/emg/{name}.toml" for name in ("quick_demo", "low_memory", "default", "high_performance")]
emg_sets = ["data.options.stride=25", "data.synth.sessions=8", "data.synth.seconds=6.0", "data.normalize=off"]
emg_varied = ["train.precision=fp32,fp64", "train.batch_size=1,2,4,8,16,32,64"]


def run(headroom, preset, sets, out):
    words = [headroom, "run", str(root / preset), "--out", str(out)]
    for word in sets:
        words += ["--set", word]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        return None, done.stderr.strip().splitlines()[-1:]
    summaries = list(out.glob("*/*/summary.json"))
    return json.loads(summaries[0].read_text()), []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("presets", nargs="*")
    parser.add_argument("--headroom", default=str(root / "build/release/bin/headroom"))
    parser.add_argument("--vary", action="append", default=[], metavar="KEY=V,V,...")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="sets")
    parser.add_argument("--steps", type=int, default=6)
    words = parser.parse_args()
    presets, sets, varied = words.presets, words.sets, words.vary
    if not presets:
        presets, sets, varied = emg_presets, emg_sets + sets, varied or emg_varied
    keys = [word.split("=", 1)[0] for word in varied]
    combinations = list(itertools.product(*(word.split("=", 1)[1].split(",") for word in varied)))

    errors, failures = [], 0
    print(f"{'preset':<20} {' '.join(key.rsplit('.', 1)[-1] for key in keys)}: predicted, measured, error")
    with tempfile.TemporaryDirectory(prefix="headroom-plan-") as folder:
        always = [f"train.max_steps={words.steps}", "train.gradient_accumulation_steps=1", "train.micro_batch=auto",
                  "memory.limit=off"]
        for preset, values in itertools.product(presets, combinations):
            out = pathlib.Path(tempfile.mkdtemp(dir=folder))
            data = f"data.options.path={pathlib.Path(folder) / pathlib.Path(preset).stem}"
            chosen = [f"{key}={value}" for key, value in zip(keys, values)]
            summary, problem = run(words.headroom, preset, always + [data] + sets + chosen, out)
            name = f"{pathlib.Path(preset).stem:<20} {' '.join(values)}:"
            if summary is None:
                failures += 1
                print(f"{name} failed: {' '.join(problem)}", flush=True)
                continue
            memory = summary["memory"]
            measured, predicted = memory["measured_peak_bytes"], memory["predicted_peak_bytes"]
            errors.append(predicted / measured - 1)
            print(f"{name} {predicted / 2**20:.1f} MiB, {measured / 2**20:.1f} MiB, {errors[-1]:+.1%}", flush=True)
    low, high = sum(e < -0.02 for e in errors), sum(e > 0.15 for e in errors)
    if errors:
        print(f"{len(errors)} runs: {low} predicted more than 2 % too low, {high} more than 15 % too high; "
              f"from {min(errors):+.1%} to {max(errors):+.1%}")
    return 1 if failures or not errors or low > 0.01 * len(errors) or high else 0


if __name__ == "__main__":
    sys.exit(main())
