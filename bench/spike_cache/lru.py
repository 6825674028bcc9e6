"""The cache of the users' guides: least recently used, a byte limit, and a clone of what it gives."""
import collections


class Lru:
    def __init__(self, limit_bytes, clone=lambda value: value):
        self.limit_bytes, self.clone, self.used_bytes = limit_bytes, clone, 0
        self.entries, self.hits, self.misses = collections.OrderedDict(), 0, 0

    def get(self, key):
        if key not in self.entries:
            self.misses += 1
            return None
        self.hits += 1
        self.entries.move_to_end(key)
        return self.clone(self.entries[key][0])

    def put(self, key, value, size_bytes):
        while self.entries and self.used_bytes + size_bytes > self.limit_bytes:
            self.used_bytes -= self.entries.popitem(last=False)[1][1]
        if size_bytes <= self.limit_bytes:
            self.entries[key] = (value, size_bytes)
            self.used_bytes += size_bytes
