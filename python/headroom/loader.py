"""The program's data loader as an iterable: Loader, Field, LoaderError."""

import ctypes
import json
import os
import re
import threading
import warnings
import weakref
from dataclasses import dataclass
from typing import Any, Dict, Iterator, Mapping, Optional, Sequence, Tuple, Union

from .installation import library

__all__ = ["Field", "Loader", "LoaderError"]

_WAIT_MS = 100  # of one call: between two Python looks whether Ctrl-C was pressed
_BATCH, _EPOCH_END, _WAITING = 1, 2, 3


class LoaderError(RuntimeError):
    """What the loader refuses or cannot read, in the program's own sentence."""


@dataclass(frozen=True)
class Field:
    """One field of a batch.

    A value of a standardised field is (measured - mean) / std, with one number a channel; `mean` and `std` are None where
    values are as measured."""

    name: str
    dtype: str  # "float32", "uint8", "bool", "bfloat16", ...
    shape: Tuple[int, ...]  # of one sample; a batch has the samples as one more axis in front
    axes: Tuple[str, ...]  # their names; "" where an axis has none
    unit: str  # of measured values; "" where none is known
    sample_rate_hz: float  # along the axis "time"; 0: none
    channel_axis: int  # of `shape`; -1: none
    channels: Tuple[str, ...]  # their names; empty where they have none
    mean: Optional[Tuple[float, ...]]
    std: Optional[Tuple[float, ...]]


class Loader:
    """Batches of a datasource, read and standardised by the program's threads, as tensors that share its memory.

        for batch in headroom.Loader("experiment.toml"):               # a split of an experiment's [data]
            model(batch["x"])                                           # torch.float32 [batch_size, ...]

        headroom.Loader("hdf5", {"path": "data", "fields": [...]}, batch_size=32, num_workers=4)

    The order, the split, the statistics and every value are those of a run of the same experiment, bit for bit, for any number
    of threads. One `iter()` is one epoch: the first is epoch 0, the next epoch 1. Leaving a loop early ends its epoch.

    experiment      an experiment file, or the name of one of the program's; with `options`, the datasource: its name, or the
                    path of its library
    options         [data.options] of that datasource, as a dict; paths are relative to the working folder
    split           "train", "val" or "test"
    batch_size      samples of a batch; the last one of an epoch may be shorter. None: `train.batch_size`
    training        whether samples come as a run trains on them, shuffled and augmented, or as it evaluates, in order.
                    None: only the split "train"
    seed            of order and augmentation. None: `experiment.seed`
    as_             "torch" or "numpy"
    settings        other keys of the experiment: {"data.split": {"train": 0.9, "val": 0.1}}
    plugin_dirs     folders that are searched for the datasource first
    **data          keys of [data] by their names: num_workers, shuffle, normalize, cache_size, ...

    Batches are dicts from a field's name to a tensor of shape [samples, *field.shape]. A tensor is a view of the loader's
    memory: nothing is copied, and that memory is used for a later batch once all tensors of this one are gone. Keep as many as
    you like: the loader makes further memory for them, with a warning when they are more than it had planned. Tensors may be
    written to (numpy before 2.1 makes them read-only).

    LoaderError: what an option, a plugin or the data gets wrong. TypeError, ValueError: arguments of a wrong kind.

    A loader is used by one thread at a time, in the process that opened it. It is closed by close(), at the end of a
    `with`, or with the last reference to it."""

    def __init__(self, experiment: Union[str, "os.PathLike[str]"], options: Optional[Mapping[str, Any]] = None, *,
                 split: str = "train", batch_size: Optional[int] = None, training: Optional[bool] = None,
                 seed: Optional[int] = None, as_: str = "torch", settings: Optional[Mapping[str, Any]] = None,
                 plugin_dirs: Sequence[Union[str, "os.PathLike[str]"]] = (), **data: Any) -> None:
        if as_ not in _FRAMEWORKS:
            raise ValueError(f"as_ is {as_!r}; it must be 'torch' or 'numpy'")
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}; it must be at least 1")
        self._convert = _FRAMEWORKS[as_]()
        self._library = _library()
        keys = _keys(experiment, options, seed, settings, data)
        file = None if options is not None else os.fspath(experiment)
        self._handle = self._open(file, keys, split, batch_size, training, plugin_dirs)
        self._close = weakref.finalize(self, self._library.hr_loader_close, self._handle)
        self._process, self._lock = os.getpid(), threading.RLock()
        self._about = json.loads(self._library.hr_loader_description(self._handle))
        self._fields = tuple(_field(of) for of in self._about["fields"])
        self._as = as_
        self._iteration = 0  # the one that batches are given to
        self._has_begun = False  # it was given some of this epoch
        self._warned = False

    # --- what it is ---

    @property
    def fields(self) -> Tuple[Field, ...]:
        """The fields of every batch."""
        return self._fields

    @property
    def batch_size(self) -> int:
        return self._about["batch_size"]

    @property
    def samples(self) -> int:
        """Samples of one epoch."""
        return self._about["samples"]

    @property
    def notes(self) -> Tuple[str, ...]:
        """What a run would have logged: the order that was chosen, what the statistics were measured of."""
        return tuple(self._about["notes"])

    @property
    def epoch(self) -> int:
        """The epoch that is being delivered, or was last; once a loop has come to its end, the next one."""
        return self._place().epoch

    @property
    def skipped(self) -> int:
        """Samples that could not be read and were left out so far (data.on_bad_sample = "skip")."""
        return self._place().skipped

    def __len__(self) -> int:
        """Batches of one epoch. There are fewer where data.on_bad_sample leaves out all samples of a batch."""
        return self._about["batches"]

    def __repr__(self) -> str:
        about = self._about
        return (f"<headroom.Loader {about['source']} {about['split']}: {about['samples']} samples in batches of "
                f"{about['batch_size']}, {', '.join(field.name for field in self._fields)}>")

    # --- batches ---

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        """One epoch; after load_state_dict() the rest of one. It ends the iteration before it."""
        self._require_open()  # before the lock, which a forked process may have got locked
        with self._lock:
            if self._has_begun:  # and was left
                self._seek(self._place().epoch + 1, 0)
            self._has_begun = False
            self._iteration += 1
            return _Iteration(self, self._iteration)

    def _next(self, iteration: int) -> Optional[Dict[str, Any]]:
        """The next batch of an epoch; None while it is being read. StopIteration at the epoch's end."""
        self._require_open()
        with self._lock:
            self._require_open()
            if iteration != self._iteration:
                raise LoaderError("[loader] another iteration of this loader has begun since; one at a time, or open two loaders")
            outcome, batch, error = ctypes.c_int32(), _Batch(self._library), _Error()
            _check(self._library.hr_loader_next(self._handle, _WAIT_MS, ctypes.byref(outcome), ctypes.byref(batch.pointer),
                                                ctypes.byref(error)), error)
            if outcome.value == _EPOCH_END:
                self._has_begun = False
                raise StopIteration
            if outcome.value == _WAITING:
                return None
            self._has_begun = True
            self._warn_of_held()
            return {field.name: self._tensor(batch, i, field) for i, field in enumerate(self._fields)}

    def _tensor(self, batch: "_Batch", i: int, field: Field):
        exported = _Exported(batch, i)
        try:
            return self._convert(exported)
        except (BufferError, RuntimeError, TypeError, ValueError) as problem:
            raise LoaderError(f"[loader] {self._as} cannot hold field '{field.name}' of {field.dtype}: {problem}") from problem
        finally:
            exported.drop_untaken()

    def _warn_of_held(self) -> None:
        slots = self._about["slots"]
        if self._warned or self._place().held <= slots:
            return
        self._warned = True
        warnings.warn(
            f"[loader] more than {slots} batches are held at once, as many as this loader reads into; each further one takes "
            f"{self._about['slot_bytes']} bytes of new memory: copy what you keep of a batch (.clone(), .copy()), and drop the rest",
            RuntimeWarning, stacklevel=4)

    # --- where it stands ---

    def state_dict(self) -> Dict[str, Any]:
        """Where the next batch begins, as plain values for torch.save() or JSON.

        epoch       number of the epoch
        position    samples of it that were delivered; 0 at its end, with the next epoch
        order       a digest of what decides the order and the values of samples: data, split, seed, shuffle, statistics"""
        place = self._place()
        over = place.position >= self.samples
        epoch, position = (place.epoch + 1, 0) if over else (place.epoch, place.position)
        return {"epoch": epoch, "position": position, "order": self._about["order"]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iter() gives what comes after state_dict(): the rest of that epoch. No earlier sample is read.

        LoaderError where the state is one of other data, another split, seed or order, or lies inside a batch of this size."""
        epoch, position, order = (state[name] for name in ("epoch", "position", "order"))
        if order != self._about["order"]:
            raise LoaderError("[loader] the state is one of a loader with other data, another split, seed, shuffle or other "
                              "statistics: open the loader as it was")
        self._require_open()
        with self._lock:
            self._seek(epoch, position)
            self._has_begun = False
            self._iteration += 1

    def _seek(self, epoch: int, position: int) -> None:
        self._require_open()
        error = _Error()
        _check(self._library.hr_loader_seek(self._handle, epoch, position, ctypes.byref(error)), error)

    def _place(self) -> "_Place":
        self._require_open()
        place, error = _Place(struct_size=ctypes.sizeof(_Place)), _Error()
        with self._lock:
            _check(self._library.hr_loader_where(self._handle, ctypes.byref(place), ctypes.byref(error)), error)
        return place

    # --- opening and closing ---

    def _open(self, file, keys, split, batch_size, training, plugin_dirs):
        listed = (_Key * len(keys))(*(_Key(key.encode(), value.encode()) for key, value in keys))
        folders = [os.fsencode(folder) for folder in plugin_dirs]
        request = _Request(
            struct_size=ctypes.sizeof(_Request), training=-1 if training is None else int(bool(training)),
            experiment=None if file is None else os.fsencode(file), keys=listed, key_count=len(keys), split=split.encode(),
            batch_size=batch_size or 0, plugin_dirs=(ctypes.c_char_p * (len(folders) + 1))(*folders, None))
        handle, error = ctypes.c_void_p(), _Error()
        _check(self._library.hr_loader_open(ctypes.byref(request), ctypes.byref(handle), ctypes.byref(error)), error)
        return handle

    def close(self) -> None:
        """Ends the loader's threads and frees what it keeps. Batches that are held stay valid."""
        if os.getpid() == self._process:
            with self._lock:
                self._close()

    def __enter__(self) -> "Loader":
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def _require_open(self) -> None:
        if os.getpid() != self._process:
            raise LoaderError(f"[loader] this loader was opened in process {self._process}, and its threads are not in this forked "
                              "one: open a loader in each process")
        if not self._close.alive:
            raise LoaderError("[loader] this loader is closed: open another one")


# --- what the program is told ---

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


def _keys(experiment, options, seed, settings, data):
    """Pairs of key and TOML, as --set takes them; later ones win."""
    keys = []
    if options is not None:
        if not isinstance(options, Mapping):
            raise TypeError(f"options is {options!r}; it must be a dict of the datasource's options")
        keys.append(("data.source", _toml(os.fspath(experiment))))
        keys += [(f"data.options.{_name(name)}", _toml(value)) for name, value in options.items()]
    keys += [(f"data.{_name(name)}", _toml(value)) for name, value in data.items()]
    if seed is not None:
        keys.append(("experiment.seed", _toml(seed)))
    return keys + [(key, _toml(value)) for key, value in (settings or {}).items()]


def _name(name: str) -> str:
    return name if _BARE.match(name) else json.dumps(name)


def _toml(value: Any) -> str:
    """A TOML literal on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (str, os.PathLike)):
        return json.dumps(os.fspath(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_name(key)} = {_toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if hasattr(value, "item"):  # a number of numpy
        return _toml(value.item())
    raise TypeError(f"{value!r} is no value that an experiment file can hold")


def _field(of: Mapping[str, Any]) -> Field:
    names = tuple(channel["name"] for channel in of["channels"])
    numbers = {key: None if of[key] is None else tuple(of[key]) for key in ("mean", "std")}
    return Field(of["name"], of["dtype"], tuple(of["shape"]), tuple(of["axes"]), of["unit"], of["sample_rate_hz"],
                 of["channel_axis"], names, **numbers)


# --- libheadroom_loader (runner/loader_library/loader_library.h) ---


class _Error(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("code", ctypes.c_int32), ("message", ctypes.c_char * 504)]


class _Key(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class _Request(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("training", ctypes.c_int32), ("experiment", ctypes.c_char_p),
                ("keys", ctypes.POINTER(_Key)), ("key_count", ctypes.c_uint64), ("split", ctypes.c_char_p),
                ("batch_size", ctypes.c_int64), ("plugin_dirs", ctypes.POINTER(ctypes.c_char_p))]


class _Place(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("reserved", ctypes.c_uint32), ("epoch", ctypes.c_uint64),
                ("position", ctypes.c_uint64), ("held", ctypes.c_uint64), ("skipped", ctypes.c_uint64)]


_loaded = None


def _library() -> ctypes.CDLL:
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


def _check(status: int, error: _Error) -> None:
    if status != 0:
        raise LoaderError(error.message.decode(errors="replace"))


# --- batches and DLPack ---


class _Iteration:
    """One epoch of a loader. Keeps no batch: the memory of one comes back when its user drops it."""

    def __init__(self, loader: Loader, number: int):
        self._loader, self._number = loader, number

    def __iter__(self) -> "_Iteration":
        return self

    def __next__(self) -> Dict[str, Any]:
        if self._loader is None:
            raise StopIteration
        try:
            # Between two calls Python runs the handlers of signals.
            while (batch := self._loader._next(self._number)) is None:
                pass
            return batch
        except StopIteration:
            self._loader = None
            raise


class _Batch:
    """Owns one batch of the library."""

    def __init__(self, loaded: ctypes.CDLL):
        self.library, self.pointer = loaded, ctypes.c_void_p()

    def __del__(self):
        if self.pointer:
            self.library.hr_loader_release(self.pointer)


class _Exported:
    """One field of a batch as the array libraries ask for it. https://data-apis.org/array-api, "__dlpack__"."""

    def __init__(self, batch: _Batch, field: int):
        self._library, self._batch, self._field = batch.library, batch, field
        self._untaken = None  # (capsule, its name, tensor, function that drops it)

    def __dlpack_device__(self):
        return 1, 0  # the CPU

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if copy:
            raise BufferError("these tensors are views; copy the tensor that you get")
        if max_version is not None and max_version[0] >= 1:
            return self._capsule("hr_loader_tensor", b"dltensor_versioned", self._library.hr_loader_drop_tensor)
        return self._capsule("hr_loader_tensor_unversioned", b"dltensor", self._library.hr_loader_drop_unversioned)

    def _capsule(self, function, name, drop):
        tensor, error = ctypes.c_void_p(), _Error()
        _check(getattr(self._library, function)(self._batch.pointer, self._field, ctypes.byref(tensor),
                                                ctypes.byref(error)), error)
        capsule = _new_capsule(tensor, name, None)
        self._untaken = (capsule, name, tensor, drop)
        return capsule

    def drop_untaken(self):
        """A consumer that takes a capsule renames it; one that was not taken belongs to nobody else."""
        if self._untaken is None:
            return
        capsule, name, tensor, drop = self._untaken
        self._untaken = None
        if _is_valid(capsule, name):
            drop(tensor)


# A capsule keeps a pointer to its name: those bytes are constants of this module.
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))


def _torch():
    from torch import from_dlpack
    return from_dlpack


def _numpy():
    from numpy import from_dlpack
    return from_dlpack


_FRAMEWORKS = {"torch": _torch, "numpy": _numpy}
