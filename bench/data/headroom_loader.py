#!/usr/bin/env python3
"""headroom.Loader over one of the datasets, measured as python_loader.py measures a DataLoader: one JSON object.

    PYTHON bench/data/headroom_loader.py '{"source": "build/release/lib/headroom/hdf5.so", "options": {...}, ...}'

compare.py starts it; cases.py has the settings.
"""
import json
import os
import sys

import process_tree
import python_loader

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import headroom  # noqa: E402


class Measurement(python_loader.Measurement):
    def __init__(self, settings):
        self.settings, self.batches = settings, None
        self.baseline = process_tree.memory_bytes(os.getpid())
        self.loader = headroom.Loader(settings["source"], settings["options"], batch_size=settings["batch"], num_workers=2,
                                      shuffle=settings["order"], chunk_cache_size=settings["chunk_cache_bytes"],
                                      settings={"data.split": {"train": 1.0}, "data.memory_map": settings["memory_map"]})
        self.order = python_loader.Order(self.loader.samples, settings["order"])  # of its length

    def next(self):
        batch = next(self.batches, None)
        if batch is None:
            self.batches = iter(self.loader)
            batch = next(self.batches)
        return next(iter(batch.values())).shape[0]

    def boundary(self):
        return None  # an epoch of these files is long, and the loader does not cut one short


if __name__ == "__main__":
    print(json.dumps(Measurement(json.loads(sys.argv[1])).run()), flush=True)
