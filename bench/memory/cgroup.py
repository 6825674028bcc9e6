"""Runs a command in a memory cgroup of its own (v1 or v2; needs root) and tells what the kernel saw."""
import contextlib
import os
import resource
import subprocess
import time


class Unavailable(Exception):
    pass


def memory_folder():
    """The folder of this process's memory cgroup, and whether it is v1."""
    with open("/proc/self/cgroup") as file:
        groups = [line.rstrip("\n").split(":", 2) for line in file]
    with open("/proc/self/mountinfo") as file:
        mounts = [line.split() for line in file]
    for version_1 in (True, False):
        for _, controllers, path in groups:
            if ("memory" in controllers.split(",")) if version_1 else controllers == "":
                for mount in mounts:
                    kind, options = mount[mount.index("-") + 1], mount[-1].split(",")
                    if (kind == "cgroup" and "memory" in options) if version_1 else kind == "cgroup2":
                        root, point = mount[3], mount[4]
                        inside = os.path.relpath(path, root) if path.startswith(root) else "."
                        folder = os.path.normpath(os.path.join(point, inside))
                        if version_1 or "memory" in read(folder, "cgroup.controllers").split():
                            return folder, version_1
    raise Unavailable("no memory cgroup is mounted here")


def read(folder, name):
    try:
        with open(os.path.join(folder, name)) as file:
            return file.read()
    except OSError:
        return ""


class Cgroup:
    """Limited to limit_bytes (None: unlimited). Removed, with every process left in it, at the end of the with."""

    count = 0

    def __init__(self, limit_bytes=None):
        parent, self.version_1 = memory_folder()
        Cgroup.count += 1
        self.folder = os.path.join(parent, f"headroom-bench-{os.getpid()}-{Cgroup.count}")
        try:
            if not self.version_1 and "memory" not in read(parent, "cgroup.subtree_control").split():
                self.write(os.path.join(parent, "cgroup.subtree_control"), "+memory")
            os.mkdir(self.folder)
        except OSError as error:
            raise Unavailable(f"no cgroup can be made in {parent}: {error}") from None
        if limit_bytes is not None:
            self.write("memory.limit_in_bytes" if self.version_1 else "memory.max", str(limit_bytes))
            if not self.version_1:
                with contextlib.suppress(OSError):
                    self.write("memory.swap.max", "0")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for _ in range(200):
            for pid in read(self.folder, "cgroup.procs").split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), 9)
            try:
                os.rmdir(self.folder)
                return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError(f"{self.folder} cannot be removed")

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w") as file:
            file.write(text)

    def peak_bytes(self):
        return int(read(self.folder, "memory.max_usage_in_bytes" if self.version_1 else "memory.peak") or 0)

    def oom_kills(self):
        text = read(self.folder, "memory.oom_control" if self.version_1 else "memory.events")
        return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("oom_kill ")), 0)


class Ended:
    def __init__(self, exit_code, out, err, peak_bytes, oom_kills, seconds):
        self.exit_code, self.out, self.err = exit_code, out, err  # exit_code below 0: ended by that signal
        self.peak_bytes, self.oom_kills, self.seconds = peak_bytes, oom_kills, seconds


def run_in_cgroup(words, limit_bytes=None, data_limit_bytes=None, environment=None, folder=None, timeout=600):
    """data_limit_bytes: RLIMIT_DATA, as `ulimit -d` sets it."""
    with Cgroup(limit_bytes) as group:
        def enter():
            group.write("cgroup.procs", str(os.getpid()))
            if data_limit_bytes is not None:
                resource.setrlimit(resource.RLIMIT_DATA, (data_limit_bytes, data_limit_bytes))

        start = time.monotonic()
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
                                   env={**os.environ, **(environment or {})}, preexec_fn=enter)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        return Ended(process.returncode, out, err, group.peak_bytes(), group.oom_kills(), time.monotonic() - start)
