"""What grows in Python while a run steps."""

import collections
import gc
import os
import sys

import torch


class Growth:
    """Names what grows from look to look in Python: a list, dict or set of the module or of the user's files, or else
    a type of which there are ever more objects."""

    looks, windows_a_look = 10, 10
    _registries = ("_parameters", "_buffers", "_modules")
    _most_entries = 64  # of a container whose own entries are looked into

    def __init__(self, module):
        self.module, self.named = module, set()
        self.window, self.since = None, 0
        self.begin({})

    def begin(self, sizes):
        self.first, self.last, self.rises = sizes, sizes, 0
        self.rising = set(sizes)

    def after_window(self, window):
        """A sentence, or ""."""
        if window == self.window:
            return ""
        self.window, self.since = window, self.since + 1
        if self.since % self.windows_a_look != 0:
            return ""
        sizes = self.sizes()
        if not self.first:
            self.begin(sizes)
            return ""
        self.rising = {name for name in self.rising if sizes.get(name, 0) > self.last[name]}
        self.last, self.rises = sizes, self.rises + 1
        if self.rises < self.looks:
            return ""
        containers = sorted(name for name in self.rising - self.named if not name.startswith("<"))
        types = sorted(name for name in self.rising - self.named if name.startswith("<"))
        if types and not containers:  # garbage grows too until it is collected
            gc.collect()
            sizes = self.sizes()
            types = [name for name in types if sizes.get(name, 0) >= self.first[name] + self.looks]
        found = containers[:1] or types[:1]
        sentence = ""
        if found:
            name = found[0]
            # Its entries have a type that grows with it.
            self.named |= {name} | (set(types) if containers else set())
            more = sizes[name] - self.first[name]
            windows = self.looks * self.windows_a_look
            what = f"{name} holds {more} entries more"
            if not containers:
                what = f"there are {more} objects of type {name[1:-1]} more"
            sentence = (
                f"leak: {what} than {windows} steps ago, and grew all the time; now {sizes[name]}: what a step of the "
                "Python module keeps stays in memory, and is in no checkpoint"
            )
        self.begin(sizes)
        return sentence

    def sizes(self):
        found, seen = {}, set()

        def visit(name, value, depth):
            if id(value) in seen:
                return
            if isinstance(value, (list, dict, set, collections.deque)):
                seen.add(id(value))
                if getattr(value, "maxlen", None) is None:
                    found[name] = len(value)
                if depth > 0 and len(value) <= self._most_entries:
                    items = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
                    for key, entry in items:
                        visit(f"{name}[{key!r}]", entry, depth - 1)
            elif type(value).__module__ in _own_modules and not isinstance(value, torch.nn.Module):
                seen.add(id(value))
                visit_all(name + ".", getattr(value, "__dict__", {}), depth - 1)

        def visit_all(prefix, values, depth):
            if depth < 0:
                return
            for key, value in list(values.items()):
                if key not in self._registries and not key.startswith("__"):
                    visit(prefix + str(key), value, depth)

        for path, module in self.module.named_modules():
            kind = type(module)
            visit_all(f"{path} ({kind.__name__})." if path else f"{kind.__name__}.", vars(module), 2)
            for base in kind.__mro__:
                if base.__module__ in _own_modules:
                    visit_all(f"{base.__name__}.", vars(base), 2)
        for name in sorted(_own_modules):
            module = sys.modules.get(name)
            if module is not None:
                visit_all(os.path.basename(module.__file__) + ": ", vars(module), 2)
        for value in gc.get_objects():
            name = f"<{type(value).__name__}>"
            found[name] = found.get(name, 0) + 1
        return found
