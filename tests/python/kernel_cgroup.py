"""A memory cgroup made for a test, v1 or v2: the kernel's own judge over a process."""

import os
import subprocess
import sys
import time
from pathlib import Path


def _controllers(folder):
    file = folder / "cgroup.controllers"
    return file.read_text().split() if file.exists() else []


def _own_folder():
    """(folder, is_v1) of this process's memory cgroup; None: none is mounted."""
    groups = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    for mount in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, behind = mount.partition(" - ")
        point, (kind, _, options) = before.split()[4], behind.split()[:3]
        if kind == "cgroup" and "memory" in options.split(","):
            path = next((path for _, names, path in groups if "memory" in names.split(",")), "/")
        elif kind == "cgroup2" and "memory" in _controllers(Path(point)):
            path = next((path for number, _, path in groups if number == "0"), "/")
        else:
            continue
        folder = point + path
        return (folder if os.path.isdir(folder) else point), kind == "cgroup"
    return None


class KernelCgroup:
    """`why_not`: "" where it is there, and limited. Needs root, or a delegated cgroup."""

    def __init__(self, limit_bytes):
        self.folder, self.why_not = None, ""
        own = _own_folder()
        if own is None:
            self.why_not = "no memory cgroup is mounted here"
            return
        parent, self.v1 = own
        try:
            if not self.v1:
                self._write(os.path.join(parent, "cgroup.subtree_control"), "+memory", may_fail=True)
            folder = os.path.join(parent, f"headroom-python-{os.getpid()}-{time.monotonic_ns()}")
            os.mkdir(folder)
            self.folder = folder
            self._write(os.path.join(folder, "memory.limit_in_bytes" if self.v1 else "memory.max"), str(limit_bytes))
        except OSError as problem:
            self.why_not = f"no limited cgroup can be made in {parent}: {problem}"
            self.close()
            return
        swap, most = ("memory.memsw.limit_in_bytes", str(limit_bytes)) if self.v1 else ("memory.swap.max", "0")
        if os.path.exists(os.path.join(self.folder, swap)):
            self._write(os.path.join(self.folder, swap), most, may_fail=True)

    @staticmethod
    def _write(path, text, may_fail=False):
        try:
            with open(path, "w") as file:
                file.write(text)
        except OSError:
            if not may_fail:
                raise

    def run(self, arguments, **more):
        """A Python program in it, to its end."""
        enter = lambda: self._write(os.path.join(self.folder, "cgroup.procs"), str(os.getpid()))
        return subprocess.run([sys.executable, *arguments], preexec_fn=enter, capture_output=True, text=True, timeout=900, **more)

    def oom_kills(self):
        with open(os.path.join(self.folder, "memory.oom_control" if self.v1 else "memory.events")) as file:
            return next((int(line.split()[1]) for line in file if line.startswith("oom_kill ")), 0)

    def close(self):
        for _ in range(100):
            try:
                if self.folder is not None:
                    os.rmdir(self.folder)
                self.folder = None
                return
            except OSError:
                time.sleep(0.05)
