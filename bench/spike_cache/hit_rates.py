#!/usr/bin/env python3
"""What part of frames a cache has, by the order of reading: the guides' numbers of frames and slots, frames of 16 x 16 pixels.

    python3 bench/spike_cache/hit_rates.py --python VENV/bin/python [--build build/release]

22 sequences of 101 frames, room for 374 of the 2,222, six epochs, the first with an empty cache. Of Headroom the hits are counted by
its loader over these files under each data.cache_policy; of Python by the guides' cache over the same kinds of order, in one process
and with its room divided among four workers. VENV needs numpy and h5py.
"""
import argparse
import json
import os
import random
import tempfile

import sides
from lru import Lru

SEQUENCES, FRAMES, ROOM, EPOCHS, CLIP, SIZE, GROUP, WORKERS = 22, 101, 374, 6, 6, 16, 3, 4
FRAME_BYTES, ENTRY_BYTES = SIZE * SIZE * 4 * (3 + 3 + 32), 320  # of a kept frame; of its entry, at most
STARTS = FRAMES - CLIP + 1

ORDERS = {  # name: frames a sample, Headroom's order, the simulation's
    "frames, random": (1, {"shuffle": "global"}, "random"),
    "frames, sequential": (1, {"shuffle": "sequential"}, "sequential"),
    "clips of 6, random": (CLIP, {"shuffle": "global"}, "random"),
    "clips of 6, sequence order": (CLIP, {"shuffle": "sequential"}, "sequential"),
    "clips of 6, random in groups of 3 sequences": (CLIP, {"shuffle": "grouped", "runs": GROUP, "run_length": STARTS}, "grouped"),
}


def samples(clip, order, epoch):
    """First frames, in the order of an epoch."""
    shuffle, sequences = random.Random(epoch), list(range(SEQUENCES))
    if order == "grouped":
        shuffle.shuffle(sequences)
    group, result = GROUP if order == "grouped" else SEQUENCES, []
    for first in range(0, SEQUENCES, group):
        mixed = [FRAMES * s + start for s in sequences[first:first + group] for start in range(FRAMES - clip + 1)]
        if order != "sequential":
            shuffle.shuffle(mixed)
        result += mixed
    return result


def python_rate(clip, order, workers):
    caches = [Lru(ROOM // workers) for _ in range(workers)]
    for epoch in range(EPOCHS):
        for number, first in enumerate(samples(clip, order, epoch)):
            cache = caches[number % workers]
            for frame in range(first, first + clip):
                if cache.get(frame) is None:
                    cache.put(frame, True, 1)
    hits, misses = sum(cache.hits for cache in caches), sum(cache.misses for cache in caches)
    return hits / (hits + misses)


def headroom_rate(build, source, folder, clip, order, policy):
    samples_an_epoch = SEQUENCES * (FRAMES - clip + 1)
    out, _ = sides.loader_bench(build, {
        "plugin": sides.plugin_of(build, source), "batch_size": 1, "num_workers": sides.WORKERS, "normalize": "off", "warm_up": 0,
        "cache_size": ROOM * (FRAME_BYTES + ENTRY_BYTES), "cache_policy": policy, "seconds": 1e9, "measure_waits": False,
        "most_samples": EPOCHS * samples_an_epoch, **order, "options": sides.options_of(source, folder, clip)})
    return json.loads(out.splitlines()[-1])["cache"]["hit_rate"]


def compare(python, build, source, folder):
    folder = os.path.join(folder, "hits")
    sides.make(python, folder, SEQUENCES, FRAMES, SIZE, SIZE)
    print(f"\nhits: {SEQUENCES * FRAMES} frames, room for {ROOM}, {EPOCHS} epochs\n  {'':<46}{'python LRU':>12}{'in 4 workers':>14}"
          f"{'headroom lru':>14}{'planned':>10}")
    for name, (clip, order, simulated) in ORDERS.items():
        rates = [python_rate(clip, simulated, 1), python_rate(clip, simulated, WORKERS),
                 *(headroom_rate(build, source, folder, clip, order, policy) for policy in ("lru", "planned"))]
        print("  {:<46}{:>10.1f} %{:>12.1f} %{:>12.1f} %{:>8.1f} %".format(name, *(100 * rate for rate in rates)), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True)
    parser.add_argument("--build", default=os.path.join(sides.ROOT, "build", "release"))
    parser.add_argument("--source", choices=("spike_hdf5", "hdf5"), default="spike_hdf5")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headroom-bench-") as folder:
        compare(words.python, os.path.abspath(words.build), words.source, folder)


if __name__ == "__main__":
    main()
