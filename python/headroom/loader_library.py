"""libheadroom_loader (runner/loader_library/loader_library.h) by ctypes."""

from __future__ import annotations

import ctypes
from typing import Optional

from .installation import library

EPOCH_END, WAITING = 2, 3  # outcomes of hr_loader_next() besides a batch


class LoaderError(RuntimeError):
    """What the loader refuses or cannot read, in the program's own sentence."""


class Error(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("code", ctypes.c_int32), ("message", ctypes.c_char * 504)]


class Key(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class Request(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("training", ctypes.c_int32), ("experiment", ctypes.c_char_p),
                ("keys", ctypes.POINTER(Key)), ("key_count", ctypes.c_uint64), ("split", ctypes.c_char_p),
                ("batch_size", ctypes.c_int64), ("plugin_dirs", ctypes.POINTER(ctypes.c_char_p))]


class Place(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("reserved", ctypes.c_uint32), ("epoch", ctypes.c_uint64),
                ("position", ctypes.c_uint64), ("held", ctypes.c_uint64), ("skipped", ctypes.c_uint64)]


_loaded: Optional[ctypes.CDLL] = None


def loader_library() -> ctypes.CDLL:
    """The library, loaded once. Its calls release the GIL."""
    global _loaded
    if _loaded is None:
        pointer = ctypes.c_void_p
        loaded = ctypes.CDLL(library("headroom_loader"))
        loaded.hr_loader_description.restype = ctypes.c_char_p
        for name, arguments in {
                "hr_loader_open": [pointer, pointer, pointer], "hr_loader_close": [pointer], "hr_loader_description": [pointer],
                "hr_loader_seek": [pointer, ctypes.c_uint64, ctypes.c_uint64, pointer],
                "hr_loader_next": [pointer, ctypes.c_uint32, pointer, pointer, pointer],
                "hr_loader_where": [pointer, pointer, pointer], "hr_loader_release": [pointer],
                "hr_loader_tensor": [pointer, ctypes.c_uint32, pointer, pointer],
                "hr_loader_tensor_unversioned": [pointer, ctypes.c_uint32, pointer, pointer],
                "hr_loader_drop_tensor": [pointer], "hr_loader_drop_unversioned": [pointer]}.items():
            getattr(loaded, name).argtypes = arguments
        for name in ("close", "release", "drop_tensor", "drop_unversioned"):
            getattr(loaded, f"hr_loader_{name}").restype = None
        _loaded = loaded
    return _loaded


def check(status: int, error: Error) -> None:
    if status != 0:
        raise LoaderError(error.message.decode(errors="replace"))
