"""One DataLoader over one of the datasets, measured from inside as loader.cpp measures Headroom: one JSON object.

    PYTHON bench/data/python_loader.py '{"data": "emg", "style": "plain", "workers": 2, "files": [...], ...}'

compare.py starts it; cases.py has the settings.
"""
import json
import os
import sys
import time

import h5py  # noqa: F401 - a part of the baseline
import numpy as np
import torch
from torch.utils.data import DataLoader, Sampler

import plain_datasets
import process_tree
import tuned_datasets

RUNS, RUN_LENGTH = 32, 2048  # of the grouped order, as Headroom's


class Order(Sampler):
    """A permutation of all samples each epoch; an epoch may be cut short."""

    def __init__(self, length, kind):
        self.length, self.kind, self.epoch, self.most = length, kind, 0, None

    def __len__(self):
        return min(self.length, self.most or self.length)

    def __iter__(self):
        self.epoch += 1
        if self.kind == "global":
            generator = torch.Generator().manual_seed(self.epoch)
            return iter(torch.randperm(self.length, generator=generator).tolist()[:self.most])
        return iter(self.grouped())

    def grouped(self):
        random, left = np.random.default_rng(self.epoch), self.most or self.length
        runs = random.permutation(-(-self.length // RUN_LENGTH))
        for first in range(0, len(runs), RUNS):
            starts = runs[first:first + RUNS, None] * RUN_LENGTH
            mixed = random.permutation((starts + np.arange(RUN_LENGTH)).reshape(-1))
            for index in mixed[mixed < self.length].tolist():
                if left == 0:
                    return
                left -= 1
                yield index


def drop_from_page_cache(paths):
    for path in paths:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Measurement:
    def __init__(self, settings):
        self.settings = settings
        self.baseline = process_tree.memory_bytes(os.getpid())
        datasets, options = plain_datasets, {}
        if settings["style"] == "tuned":
            datasets, options["collate_fn"] = tuned_datasets, lambda batch: batch
        if settings["workers"]:
            options.update(persistent_workers=True, prefetch_factor=2)
        dataset = {"emg": datasets.Emg, "act": datasets.Act, "spike": datasets.Spike}[settings["data"]](
            settings["files"], settings)
        self.order = Order(len(dataset), settings["order"])
        self.loader = DataLoader(dataset, settings["batch"], sampler=self.order, num_workers=settings["workers"],
                                 **options)
        self.batches = None

    def next(self):
        """Samples of the next batch, across the ends of epochs."""
        batch = next(self.batches, None)
        if batch is None:
            self.batches = iter(self.loader)
            batch = next(self.batches)
        return batch[0].shape[0]

    def run(self):
        cold = self.settings["cold"]
        if cold:
            drop_from_page_cache(self.settings["files"])
        start = time.perf_counter()
        self.batches = iter(self.loader)
        self.next()
        result = {"first_batch_ms": 1e3 * (time.perf_counter() - start)}
        for _ in range(0 if cold else self.settings["warm_up"]):
            self.next()
        result.update(self.speed())
        result["samples_per_epoch"] = self.order.length
        result["anonymous_bytes"] = process_tree.rollup_bytes(os.getpid(), "Anonymous")
        result["memory_bytes"] = process_tree.memory_bytes(os.getpid()) - self.baseline
        if not cold:
            result["epoch_boundary_ms"] = self.boundary()
        return result

    def speed(self):
        most, samples = self.settings["most_samples"], 0
        cpu, faults = process_tree.usage(os.getpid())
        start = time.perf_counter()
        while time.perf_counter() - start < self.settings["seconds"] and (most == 0 or samples < most):
            samples += self.next()
        seconds = time.perf_counter() - start
        cpu_after, faults_after = process_tree.usage(os.getpid())
        return {"samples": samples, "samples_per_s": samples / seconds,
                "samples_per_cpu_s": samples / max(cpu_after - cpu, 0.01), "minor_faults": faults_after - faults}

    def boundary(self):
        """The wait for the first batch of an epoch, by a consumer that leaves time to read ahead."""
        self.order.most, waits = min(10, len(self.loader)) * self.settings["batch"], []
        for _ in range(4):
            start = time.perf_counter()
            for i, _ in enumerate(self.loader):
                if i == 0:
                    waits.append(1e3 * (time.perf_counter() - start))
                time.sleep(2e-3)
        return sorted(waits[1:])[1]


if __name__ == "__main__":
    print(json.dumps(Measurement(json.loads(sys.argv[1])).run()), flush=True)
    os._exit(0)  # workers end with their parent
