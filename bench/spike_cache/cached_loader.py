"""A DataLoader over frames that a Python LRU keeps, as the users' guides have it, measured from inside: one JSON object.

    PYTHON bench/spike_cache/cached_loader.py '{"files": [...], "workers": 2, "cache_bytes": 0, "epochs": 5, "order": "global"}'

Every worker has a cache of its own, of the whole limit: the dataset is copied into it. The first epoch, which fills it, is not among
those measured. sides.py starts it.
"""
import json
import multiprocessing
import os
import sys
import time

import torch
from torch.utils.data import DataLoader

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data"))
import plain_datasets  # noqa: E402
import process_tree  # noqa: E402
from python_loader import Order  # noqa: E402 - of bench/data
from lru import Lru  # noqa: E402


class Frames(plain_datasets.Spike):
    def __init__(self, paths, settings):
        super().__init__(paths, settings)
        self.cache = Lru(settings["cache_bytes"], clone=lambda frame: tuple(field.clone() for field in frame))
        self.hits, self.reads = multiprocessing.Value("q"), multiprocessing.Value("q")  # of all workers

    def __getitem__(self, index):
        frame = self.cache.get(index)
        with self.reads, self.hits:
            self.reads.value += 1
            self.hits.value += frame is not None
        if frame is None:
            frame = super().__getitem__(index)
            self.cache.put(index, frame, sum(field.nbytes for field in frame))
        return frame


def main():
    settings = json.loads(sys.argv[1])
    baseline = process_tree.memory_bytes(os.getpid())
    dataset = Frames(settings["files"], {"chunk_cache_bytes": 1 << 20, **settings})
    workers = {"num_workers": settings["workers"], "persistent_workers": True, "prefetch_factor": 2} if settings["workers"] else {}
    loader = DataLoader(dataset, 1, sampler=Order(len(dataset), settings["order"]), **workers)
    torch.set_num_threads(1)
    began = time.monotonic()
    for _ in loader:
        pass
    hits, reads = dataset.hits.value, dataset.reads.value
    (cpu, _), start = process_tree.usage(os.getpid()), time.monotonic()
    for _ in range(settings["epochs"]):
        for _ in loader:
            pass
    ended = time.monotonic()
    cpu, samples = process_tree.usage(os.getpid())[0] - cpu, settings["epochs"] * len(dataset)
    print(json.dumps({
        "samples_per_s": samples / (ended - start), "samples_per_cpu_s": samples / max(cpu, 0.01), "baseline_bytes": baseline,
        "hit_rate": (dataset.hits.value - hits) / (dataset.reads.value - reads), "began": began, "ended": ended}), flush=True)
    os._exit(0)  # workers end with their parent


if __name__ == "__main__":
    main()
