#!/usr/bin/env python3
"""What ledger, monitor and black box cost of a step of quick_demo: the cost of each, times how often a step asks.

    bench/memory/cost.py [--build build/release] [--steps 60] [EXPERIMENT]

Builds bench_memory_cost in the given build folder, trains EXPERIMENT for some steps and prints a table; exits with 1
where the sum is above 1 % of the step's median time.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import tomllib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "data"))
import process_tree  # noqa: E402

root = pathlib.Path(__file__).resolve().parents[2]
looks_per_second = 4
events_per_batch, events_per_step = 3, 4  # at most; see the calls of note() in runner/train/loop.cpp


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", nargs="?", default=str(root / "experiments/quick_demo.toml"))
    parser.add_argument("--build", default=str(root / "build/release"))
    parser.add_argument("--steps", type=int, default=60)
    words = parser.parse_args()
    build = pathlib.Path(words.build)
    subprocess.run(["ninja", "-C", build, "bench_memory_cost"], check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory(prefix="headroom-cost-") as folder:
        out = pathlib.Path(folder)
        each = json.loads(subprocess.run([build / "bench" / "bench_memory_cost", out], check=True, capture_output=True,
                                         text=True).stdout)
        subprocess.run([build / "bin" / "headroom", "run", words.experiment, "--no-plan", "--out", out / "runs",
                        "--set", f"train.max_steps={words.steps}"], check=True, capture_output=True)
        summary = json.loads(next(out.glob("runs/*/*/summary.json")).read_text())
        resolved = tomllib.loads(next(out.glob("runs/*/*/experiment.toml")).read_text())
        batches = resolved["train"]["gradient_accumulation_steps"]
    step = summary["memory"]["step"]
    seconds = step["median_ms"] / 1e3
    rows = [("ledger, per allocation", each["allocation_on_ledger_ns"] - each["allocation_ns"],
             step["median_tensor_allocations"]),
            ("monitor, per look (black box record included)", each["look_ns"], looks_per_second * seconds),
            ("black box, per event", each["event_ns"], events_per_batch * batches + events_per_step)]
    print(f"on {process_tree.processor()}")
    print(f"step: {step['median_ms']:.2f} ms (median of {step['windows']}), "
          f"{step['median_tensor_allocations']} tensor allocations, {step['median_minor_faults']} page faults")
    print(f"an allocation and its release in the arena: {each['allocation_ns']:.0f} ns")
    print(f"{'':<46} {'each':>10} {'a step':>8} {'of the step':>12}")
    total = 0.0
    for name, each_ns, count in rows:
        share = each_ns * count / (1e9 * seconds)
        total += share
        print(f"{name:<46} {each_ns:>7.0f} ns {count:>8.2f} {share:>12.4%}")
    print(f"{'together':<46} {'':>10} {'':>8} {total:>12.4%}")
    return 0 if total <= 0.01 else 1


if __name__ == "__main__":
    sys.exit(main())
