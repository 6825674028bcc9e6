"""What a process and its children have used, and on which processor, from /proc."""
import os
import platform

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def processor():
    """Its name, its instructions, how many of it this process may run on, and what holds libraries back from using it."""
    with open("/proc/cpuinfo") as file:
        lines = [line.partition(":") for line in file]
    fields = {key.strip(): value.strip() for key, _, value in reversed(lines)}
    flags = fields.get("flags", "").split()
    widest = [name for flag, name in (("avx512f", "AVX-512"), ("avx2", "AVX2"), ("sse4_2", "SSE4.2")) if flag in flags]
    limits = [f"{name}={os.environ[name]}" for name in ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "HEADROOM_MAX_CPU_ISA")
              if name in os.environ]
    return ", ".join([fields.get("model name", platform.machine()), *widest[:1], f"{len(os.sched_getaffinity(0))} processors", *limits])


def members(root):
    """The process and all below it that still run."""
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:
                    parent = int(file.read().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(name))
    found, left = [], [root]
    while left:
        found.append(left.pop())
        left += children.get(found[-1], [])
    return found


def usage(root):
    """(CPU seconds, minor faults), of processes that have ended too where their parent waited for them."""
    ticks = faults = 0
    for process in members(root):
        try:
            with open(f"/proc/{process}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        faults += int(fields[7]) + int(fields[8])
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / TICKS_PER_SECOND, faults


def rollup_bytes(root, kind):
    """A line of smaps_rollup, summed."""
    total = 0
    for process in members(root):
        try:
            with open(f"/proc/{process}/smaps_rollup") as file:
                total += sum(int(line.split()[1]) * 1024 for line in file if line.startswith(kind + ":"))
        except OSError:
            continue
    return total


def memory_bytes(root):
    """PSS, and batches on their way: shared memory that a worker holds by descriptor and nobody has mapped."""
    mapped, held = set(), {}
    for process in members(root):
        try:
            with open(f"/proc/{process}/maps") as file:
                mapped.update(int(line.split()[4]) for line in file if "/dev/shm/" in line)
            for name in os.listdir(f"/proc/{process}/fd"):
                path = f"/proc/{process}/fd/{name}"
                if os.readlink(path).startswith("/dev/shm/"):
                    found = os.stat(path)
                    held[found.st_ino] = found.st_blocks * 512
        except OSError:
            continue
    return rollup_bytes(root, "Pss") + sum(size for inode, size in held.items() if inode not in mapped)
