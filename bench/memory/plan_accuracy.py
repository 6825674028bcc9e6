#!/usr/bin/env python3
"""What `headroom plan` predicts against what short runs measure: presets x batch sizes x precisions.

    bench/memory/plan_accuracy.py [--headroom build/release/bin/headroom] [--batches 1,2,4,8,16,32,64]
                                  [--precisions fp32,fp64] [--steps 6] [PRESET ...]

Each run writes its data and its folder below a temporary folder. Prints a line a run and, at the end, how many
predictions were too low by more than 2 % or too high by more than 15 %; exits with 1 where more than 1 % were too low
or any was too high.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parents[2]
presets = ["experiments/emg/quick_demo.toml", "experiments/emg/low_memory.toml", "experiments/emg/default.toml",
           "experiments/emg/high_performance.toml"]


def run(headroom, preset, batch, precision, steps, data, out):
    sets = [f"train.batch_size={batch}", "train.gradient_accumulation_steps=1", f"train.precision={precision}",
            f"train.max_steps={steps}", "train.micro_batch=auto", "data.options.stride=25",
            f"data.options.path={data}", "data.synth.sessions=8", "data.synth.seconds=6.0",
            "memory.limit=off", "data.normalize=off"]
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
    parser.add_argument("presets", nargs="*", default=presets)
    parser.add_argument("--headroom", default=str(root / "build/release/bin/headroom"))
    parser.add_argument("--batches", default="1,2,4,8,16,32,64")
    parser.add_argument("--precisions", default="fp32,fp64")
    parser.add_argument("--steps", type=int, default=6)
    words = parser.parse_args()

    errors, failures = [], 0
    print(f"{'preset':<20} {'precision':<9} {'batch':>5} {'predicted':>11} {'measured':>11} {'error':>7}")
    with tempfile.TemporaryDirectory(prefix="headroom-plan-") as folder:
        data = pathlib.Path(folder) / "data"
        for preset in words.presets:
            for precision in words.precisions.split(","):
                for batch in words.batches.split(","):
                    out = pathlib.Path(tempfile.mkdtemp(dir=folder))
                    summary, problem = run(words.headroom, preset, batch, precision, words.steps, data, out)
                    name = f"{pathlib.Path(preset).stem:<20} {precision:<9} {batch:>5}"
                    if summary is None:
                        failures += 1
                        print(f"{name} failed: {' '.join(problem)}", flush=True)
                        continue
                    memory = summary["memory"]
                    measured, predicted = memory["measured_peak_bytes"], memory["predicted_peak_bytes"]
                    errors.append(predicted / measured - 1)
                    print(f"{name} {predicted / 2**20:>7.1f} MiB {measured / 2**20:>7.1f} MiB {errors[-1]:>+7.1%}",
                          flush=True)
    low, high = sum(e < -0.02 for e in errors), sum(e > 0.15 for e in errors)
    if errors:
        print(f"{len(errors)} runs: {low} predicted more than 2 % too low, {high} more than 15 % too high; "
              f"from {min(errors):+.1%} to {max(errors):+.1%}")
    return 1 if failures or not errors or low > 0.01 * len(errors) or high else 0


if __name__ == "__main__":
    sys.exit(main())
