"""A dataset as users write it, of the standard library alone. Each process that reads keeps `keep_mib` from its tenth sample on."""

import array
import random

KEPT = []


class Points:
    def __init__(self, samples=128, floats=4096, keep_mib=0):
        self.samples, self.floats, self.keep_mib, self.read = samples, floats, keep_mib, 0

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        self.read += 1
        if self.read == 10 and self.keep_mib:
            KEPT.append(b"k" * (self.keep_mib << 20))
        own = random.Random(index)
        some = [own.gauss(0, 1) for _ in range(64)]
        return {"x": array.array("f", some) * (self.floats // 64), "y": array.array("f", [sum(some) / 8])}
