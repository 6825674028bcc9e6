"""The end of one epoch as the guides' trainers write it: N batches of 16 x 500 x 20 predictions and targets, then metrics.

    python bench/memory/epoch_end.py MODE N      MODE: concatenate | first | reservoir | online

concatenate keeps every batch and joins them (their `np.concatenate(all_preds)`); first keeps the first 1000 batches, as
their fix does; reservoir keeps 1000 drawn uniformly; online keeps sums. Prints JSON. Needs numpy.
"""
import json
import random
import resource
import sys
import time

import numpy as np

SHAPE, KEPT = (16, 500, 20), 1000


def peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def sums(prediction, target):
    error = prediction - target
    return np.array([error.size, np.square(error).sum(dtype=np.float64), np.abs(error).sum(dtype=np.float64),
                     target.sum(dtype=np.float64), np.square(target).sum(dtype=np.float64)])


def main():
    mode, batches = sys.argv[1], int(sys.argv[2])
    make, draw = np.random.default_rng(0), random.Random(0)
    kept, total, seconds = [], np.zeros(5), 0.0
    before = peak_bytes()
    for i in range(batches):
        # The later half of an epoch is predicted better: what a sample of the first batches does not see.
        target = make.standard_normal(SHAPE, dtype=np.float32)
        prediction = target + np.float32(1.5 - i / batches) * make.standard_normal(SHAPE, dtype=np.float32)
        start = time.monotonic()
        if mode == "online":
            total += sums(prediction, target)
        elif mode == "concatenate" or len(kept) < KEPT:
            kept.append((prediction, target))
        elif mode == "reservoir" and (place := draw.randrange(i + 1)) < KEPT:
            kept[place] = (prediction, target)
        seconds += time.monotonic() - start
    start = time.monotonic()
    if mode != "online":
        total = sums(np.concatenate([p for p, _ in kept]), np.concatenate([t for _, t in kept]))
    seconds += time.monotonic() - start
    print(json.dumps({"peak_bytes": peak_bytes() - before, "mse": total[1] / total[0], "seconds": seconds}))


if __name__ == "__main__":
    main()
