"""A hard limit on the memory of this process: a tensor that would take it above the limit is a torch.OutOfMemoryError and not
the end of the process.

    headroom.limit("8 GiB")              # once, before the model is made
    with headroom.limit("auto"): ...     # or for a block
    print(headroom.postmortem())         # what was held when a tensor was refused last

The library headroom_guard takes the place of PyTorch's allocator on the CPU. What Python, numpy and libraries hold is measured;
it cannot be refused, so it leaves that much less to tensors."""

from __future__ import annotations

import atexit
import ctypes
import re
import time
from dataclasses import dataclass
from os import PathLike, fsencode
from typing import Optional, Union

from .installation import library
from .sizes import size_bytes, size_text

__all__ = ["limit", "postmortem", "Limit", "Held", "Postmortem"]


class _Reading(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("time_ms", "asked_bytes", "limit_bytes", "bound_bytes", "held_bytes",
                                                    "peak_bytes", "tensor_bytes", "kept_bytes", "other_bytes")]


class _Box(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_int64), ("began_ms", ctypes.c_int64), ("ended", ctypes.c_int64), ("last", _Reading), ("most", _Reading)]


_loaded: Optional[ctypes.CDLL] = None
_in_force: Optional["Limit"] = None  # the limit that was set last
_wanted = "off"
_NO_LIMIT = 2**63 - 1  # of hr_guard_room()


def _same_release(one: str, other: str) -> bool:
    return one.split("+")[0] == other.split("+")[0]


def _library() -> ctypes.CDLL:
    """Loaded once. ImportError where torch is missing or not the one that the library was built with."""
    global _loaded
    if _loaded is not None:
        return _loaded
    try:
        import torch
    except ImportError as problem:
        raise ImportError("headroom.limit needs torch, and none can be imported: " + str(problem)) from problem
    path = library("headroom_guard")
    try:
        guard = ctypes.CDLL(path)
    except OSError as problem:  # symbols that this torch lacks
        raise ImportError(f"{path} does not load beside torch {torch.__version__}, so it was built with another one: {problem}") from problem
    guard.hr_guard_torch.restype = ctypes.c_char_p
    built = guard.hr_guard_torch().decode()
    if not _same_release(built, torch.__version__):
        raise ImportError(f"this Headroom was built with torch {built}, and torch {torch.__version__} is imported: "
                          f"install torch {built}, or build Headroom with yours")
    for name in ("refusals", "room", "give_back", "recent_tensor_peak", "allocations"):
        getattr(guard, "hr_guard_" + name).restype = ctypes.c_int64
    guard.hr_guard_limit.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
    guard.hr_guard_read_box.argtypes = [ctypes.c_char_p, ctypes.POINTER(_Box), ctypes.c_char_p, ctypes.c_size_t]
    guard.hr_guard_now.argtypes = guard.hr_guard_refused.argtypes = [ctypes.POINTER(_Reading)]
    guard.hr_guard_fail.argtypes = [ctypes.c_int64]
    guard.hr_guard_end.restype = None
    _loaded = guard
    return guard


def _text_of(wanted: Union[int, str]) -> str:
    """What the library takes: "auto", "80%", or bytes in digits. ValueError for anything else."""
    if isinstance(wanted, int) and not isinstance(wanted, bool) and wanted > 0:
        return str(wanted)
    if isinstance(wanted, str):
        text = wanted.strip()
        share = re.fullmatch(r"(\d+(?:\.\d+)?)%", text)
        if text == "auto" or (share and 0 < float(share[1]) <= 100):
            return text
        if (size := size_bytes(text)) is not None:
            return str(size)
    raise ValueError(f'headroom.limit({wanted!r}): a limit is a size such as "8 GiB", a share such as "80%", a number of bytes above 0, or "auto"')


def _set(wanted: str, box: Optional[str]) -> str:
    """The rule that decided."""
    global _wanted
    guard = _library()
    text = ctypes.create_string_buffer(1000)
    if guard.hr_guard_limit(wanted.encode(), fsencode(box) if box is not None else None, text, len(text)) != 0:
        raise RuntimeError(text.value.decode(errors="replace"))
    atexit.unregister(guard.hr_guard_end)
    atexit.register(guard.hr_guard_end)
    _wanted = wanted
    return text.value.decode(errors="replace")


def _clock(time_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time_ms / 1000))


@dataclass(frozen=True)
class Held:
    """What a process held at one moment, in bytes. tensor_bytes, kept_bytes and other_bytes add up to held_bytes."""

    time_ms: int  #: since the epoch
    asked_bytes: int  #: of the tensor that was refused; 0: none was
    limit_bytes: int  #: 0: none
    held_bytes: int  #: anonymous and shared memory, as the kernel counts it
    tensor_bytes: int  #: in tensors that were made under a limit
    kept_bytes: int  #: freed by tensors and kept for the next
    other_bytes: int  #: the rest: Python, numpy, libraries, stacks, tensors made before the limit

    def __str__(self) -> str:
        asked = f"a tensor of {size_text(self.asked_bytes)} was refused; " if self.asked_bytes else ""
        limit = f" of a limit of {size_text(self.limit_bytes)}" if self.limit_bytes else ""
        return (f"{_clock(self.time_ms)}: {asked}held {size_text(self.held_bytes)}{limit}: tensors {size_text(self.tensor_bytes)}, "
                f"freed and kept for the next {size_text(self.kept_bytes)}, Python, libraries and the rest {size_text(self.other_bytes)}")


@dataclass(frozen=True)
class Postmortem:
    """What the black box of a process says (`headroom.limit(..., postmortem=FILE)`): its last few minutes, four looks a second."""

    pid: int
    began_ms: int  #: when the box was made, since the epoch
    ended: bool  #: False: the process still runs, or was killed
    last: Held  #: at the last look
    most: Held  #: at the look with the most held

    def __str__(self) -> str:
        end = "ended by itself" if self.ended else "still runs or was killed"
        return f"process {self.pid}, since {_clock(self.began_ms)}, {end}\nlast {self.last}\nmost {self.most}"


def _held(reading: _Reading) -> Held:
    return Held(reading.time_ms, reading.asked_bytes, reading.limit_bytes, reading.held_bytes, reading.tensor_bytes, reading.kept_bytes, reading.other_bytes)


def _now() -> _Reading:
    reading = _Reading()
    _library().hr_guard_now(ctypes.byref(reading))
    return reading


class Limit:
    """The limit of this process, as `headroom.limit` gives it. As a context manager it puts back what was in force before."""

    def __init__(self, wanted: Union[int, str], box: Optional[str]):
        global _in_force
        self._before = _wanted
        self.rule: str = _set(_text_of(wanted), box)  #: what decided, with the figures
        _in_force = self

    @property
    def limit_bytes(self) -> int:
        """The limit in force now, in bytes; 0: none."""
        return _now().limit_bytes

    @property
    def held_bytes(self) -> int:
        """What this process holds now, in bytes: anonymous and shared memory, as the kernel counts it."""
        return _now().held_bytes

    @property
    def peak_bytes(self) -> int:
        """The most it was seen to hold, in bytes: before each growth of tensors, and four times a second."""
        return _now().peak_bytes

    def now(self) -> Held:
        """What is held now, and by what."""
        return _held(_now())

    def __enter__(self) -> "Limit":
        return self

    def __exit__(self, *_) -> None:
        _set(self._before, None)

    def __repr__(self) -> str:
        return f"<headroom.limit {size_text(self.limit_bytes)}, {size_text(self.held_bytes)} held; {self.rule}>"


def limit(wanted: Union[int, str] = "auto", *, postmortem: Union[None, str, PathLike] = None) -> Limit:
    """Holds this process below a limit from now on; another call changes it.

    `wanted` is a size ("8 GiB", or an int of bytes), a share of the memory here ("80%"), or "auto": 0.9 of what other processes
    leave of the cgroup or machine. Sizes above 0.9 of what a cgroup leaves are cut to that, because the kernel would kill there.
    Call it before the model is made: tensors made earlier count as other memory.

    A tensor beyond the limit raises torch.OutOfMemoryError, whose text says what was asked, what is held by what, and what to do.
    `postmortem` names a file (164 KB) for what is held, four times a second; it is readable after a SIGKILL:
    `headroom.postmortem(FILE)`.

    ValueError: `wanted` is no limit. RuntimeError: the process holds more already, it was forked from one with a limit, or the file
    cannot be made. ImportError: torch is missing, or is not the one that Headroom was built with. After an error the limit is as
    it was. Processes made by fork (the workers of a DataLoader) go on without a limit, and count as other processes."""
    from os import fspath

    return Limit(wanted, fspath(postmortem) if postmortem is not None else None)


def postmortem(file: Union[None, str, PathLike] = None) -> Union[None, Held, Postmortem]:
    """What was held when this process was last refused a tensor; None where that did not happen. With the `file` of a black box:
    what the process that wrote it held, also after it was killed; FileNotFoundError or ValueError where there is none."""
    if file is None:
        if _in_force is None:
            return None
        reading = _Reading()
        _library().hr_guard_refused(ctypes.byref(reading))
        return _held(reading) if reading.time_ms else None
    open(file, "rb").close()
    box, text = _Box(), ctypes.create_string_buffer(1000)
    if _library().hr_guard_read_box(fsencode(file), ctypes.byref(box), text, len(text)) != 0:
        raise ValueError(text.value.decode(errors="replace"))
    return Postmortem(box.pid, box.began_ms, bool(box.ended), _held(box.last), _held(box.most))


# For accumulator.py; none of them loads the library.


def refusals() -> int:
    """How many tensors were refused in this process so far."""
    return _loaded.hr_guard_refusals() if _loaded is not None and _in_force is not None else 0


def give_back() -> None:
    """Returns freed memory of tensors to the system."""
    if _loaded is not None and _in_force is not None:
        _loaded.hr_guard_give_back()


def recent_tensor_peak() -> int:
    """The most that tensors held since the last call, in bytes; 0 without a limit."""
    return _loaded.hr_guard_recent_tensor_peak() if _loaded is not None and _in_force is not None else 0


def room_bytes() -> Optional[int]:
    """How much more tensors may hold, with what is kept for them; None without a limit."""
    if _loaded is None or _in_force is None:
        return None
    room = _loaded.hr_guard_room()
    return room if room != _NO_LIMIT else None


def refused_bytes() -> int:
    """The size of the tensor that was refused last; 0: none was."""
    found = postmortem()
    return found.asked_bytes if isinstance(found, Held) else 0
