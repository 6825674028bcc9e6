#!/usr/bin/env python3
"""The guides' cache of big items, and Headroom's, on the same files: samples a second, hits, memory.

    python3 bench/spike_cache/guides_table.py --python VENV/bin/python [--build build/release] [--full] [--svg memory.svg]

Sequences of blurred and sharp frames and 32 voxel planes of float32, one frame a sample, in random order: three of four frames, 184 x 320
(8.5 MiB each), with --full 720 x 1280 (133.6 MiB each, 1.6 GB in all; they must fit the page cache and memory twice). Caches that hold
none, half and all of them; each run is an epoch that fills the cache and those that are measured, and contenders take turns. Builds
loader_bench and the datasource. VENV needs torch, numpy and h5py. Then the hit rates: see hit_rates.py, which it ends with.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile

import hit_rates
import sides
import process_tree
from memory_curve import MIB, svg

SEQUENCES, FRAMES = 3, 4
ITEMS, SLACK_BYTES = SEQUENCES * FRAMES, MIB // 2


def round_of(words, folder, cache_bytes, number):
    contenders = [("LRU, no worker", lambda: sides.theirs(words.python, 0, folder, cache_bytes, words.epochs)),
                  ("LRU, 2 workers", lambda: sides.theirs(words.python, 2, folder, cache_bytes, words.epochs)),
                  ("headroom", lambda: sides.ours(words.build, words.source, folder, ITEMS, cache_bytes, words.epochs))]
    first = number % len(contenders)
    return {name: run() for name, run in contenders[first:] + contenders[:first]}


def spread(values, digits=1):
    return f"{statistics.median(values):.{digits}f} [{min(values):.{digits}f}..{max(values):.{digits}f}]"


def once_full(curve):
    """Memory of the run's second half."""
    return [size for part, size in curve if part > 0.5] or [size for _, size in curve[-1:]]


def print_cache(title, rounds):
    print(f"\n{title}\n  {'':<16}{'samples/s':>24}{'samples/CPU s':>24}{'hits':>8}{'memory, MiB':>14}{'its range':>11}")
    for name in ("LRU, no worker", "LRU, 2 workers", "headroom"):
        runs = [each[name] for each in rounds]
        full = [once_full(run["curve"]) for run in runs if run["curve"]]
        peaks, ranges = [max(sizes) / MIB for sizes in full], [(max(sizes) - min(sizes)) / MIB for sizes in full]
        memory = f"{statistics.median(peaks):>14.0f}{statistics.median(ranges):>11.0f}" if full else f"{'too short':>14}"
        print(f"  {name:<16}{spread([run['samples_per_s'] for run in runs]):>24}{spread([run['samples_per_cpu_s'] for run in runs]):>24}"
              f"{100 * statistics.median(run['hit_rate'] for run in runs):>6.1f} %{memory}")
    for name in ("LRU, no worker", "LRU, 2 workers"):
        rates = {key: statistics.median(each["headroom"][key] / each[name][key] for each in rounds)
                 for key in ("samples_per_s", "samples_per_cpu_s")}
        print(f"  headroom against {name}: {rates['samples_per_s']:.1f} x by the clock, {rates['samples_per_cpu_s']:.1f} x per CPU second")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="with torch, numpy and h5py")
    parser.add_argument("--build", default=os.path.join(sides.ROOT, "build", "release"))
    parser.add_argument("--source", choices=("spike_hdf5", "hdf5"), default="spike_hdf5")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, help="measured; 20, or 5 with --full")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--folder", help="keeps the files for the next time")
    parser.add_argument("--svg", default="memory.svg", help="where the curves of memory go")
    words = parser.parse_args()
    words.build, words.epochs = os.path.abspath(words.build), words.epochs or (5 if words.full else 20)
    subprocess.run(["ninja", "-C", words.build, "loader_bench", words.source], check=True, stdout=subprocess.DEVNULL)
    height, width = (720, 1280) if words.full else (184, 320)
    item_bytes = height * width * 4 * (3 + 3 + 32)
    with tempfile.TemporaryDirectory(prefix="headroom-bench-") as temporary:
        folder = os.path.join(words.folder or temporary, f"{height}x{width}")
        sides.make(words.python, folder, SEQUENCES, FRAMES, height, width)
        limits = {f"a cache for {count} of {ITEMS} items": count and count * item_bytes + SLACK_BYTES for count in (0, ITEMS // 2, ITEMS)}
        rounds = {title: [] for title in limits}
        for number in range(words.rounds):
            for title, limit in limits.items():
                print(f"round {number + 1} of {words.rounds}: {title}", file=sys.stderr, flush=True)
                rounds[title].append(round_of(words, folder, limit, number))
        print(f"on {process_tree.processor()}")
        print(f"{ITEMS} items of {height} x {width}, {item_bytes / MIB:.1f} MiB each; {words.rounds} rounds of {words.epochs} epochs; "
              "memory above what the process held before its dataset, in the second half of a run: largest, and largest less smallest")
        for title in limits:
            print_cache(title, rounds[title])
        with open(words.svg, "w") as file:
            file.write(svg({title: (limits[title], {name: run["curve"] for name, run in sorted(rounds[title][-1].items())})
                            for title in limits}, words.epochs + 1))
        hit_rates.compare(words.python, words.build, words.source, words.folder or temporary)


if __name__ == "__main__":
    main()
