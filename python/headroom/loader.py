"""The program's data loader as an iterable: Loader, Field, LoaderError."""

import contextlib
import ctypes
import json
import os
import threading
import warnings
import weakref
from dataclasses import dataclass
from typing import Any, Dict, Iterator, Mapping, Optional, Sequence, Tuple, Union

from . import toml_text
from .dlpack import Batch, ExportedField
from .loader_library import EPOCH_END, WAITING, Error, Key, LoaderError, Place, Request, check, loader_library
from .sizes import size_text

__all__ = ["Field", "Loader", "LoaderError"]

_WAIT_MS = 100  # of one call: between two Python looks whether Ctrl-C was pressed


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
        self._library = loader_library()
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
        with self._locked():
            if self._has_begun:  # and was left
                self._seek(self._place().epoch + 1, 0)
            self._has_begun = False
            self._iteration += 1
            return _Iteration(self, self._iteration)

    def _next(self, iteration: int) -> Optional[Dict[str, Any]]:
        """The next batch of an epoch; None while it is being read. StopIteration at the epoch's end."""
        with self._locked():
            if iteration != self._iteration:
                raise LoaderError("[loader] another iteration of this loader has begun since; one at a time, or open two loaders")
            outcome, batch, error = ctypes.c_int32(), Batch(self._library), Error()
            check(self._library.hr_loader_next(self._handle, _WAIT_MS, ctypes.byref(outcome), ctypes.byref(batch.pointer),
                                               ctypes.byref(error)), error)
            if outcome.value == EPOCH_END:
                self._has_begun = False
                raise StopIteration
            if outcome.value == WAITING:
                return None
            self._has_begun = True
            self._warn_of_held()
            return {field.name: self._tensor(batch, i, field) for i, field in enumerate(self._fields)}

    def _tensor(self, batch: Batch, i: int, field: Field):
        exported = ExportedField(batch, i)
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
            f"{size_text(self._about['slot_bytes'])} of new memory: copy what you keep of a batch (.clone(), .copy()), and drop the rest",
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
        with self._locked():
            self._seek(epoch, position)
            self._has_begun = False
            self._iteration += 1

    def _seek(self, epoch: int, position: int) -> None:
        """REQUIRES _locked()."""
        error = Error()
        check(self._library.hr_loader_seek(self._handle, epoch, position, ctypes.byref(error)), error)

    def _place(self) -> Place:
        place, error = Place(struct_size=ctypes.sizeof(Place)), Error()
        with self._locked():
            check(self._library.hr_loader_where(self._handle, ctypes.byref(place), ctypes.byref(error)), error)
        return place

    # --- opening and closing ---

    def _open(self, file, keys, split, batch_size, training, plugin_dirs):
        listed = (Key * len(keys))(*(Key(key.encode(), value.encode()) for key, value in keys))
        folders = [os.fsencode(folder) for folder in plugin_dirs]
        request = Request(
            struct_size=ctypes.sizeof(Request), training=-1 if training is None else int(bool(training)),
            experiment=None if file is None else os.fsencode(file), keys=listed, key_count=len(keys), split=split.encode(),
            batch_size=batch_size or 0, plugin_dirs=(ctypes.c_char_p * (len(folders) + 1))(*folders, None))
        handle, error = ctypes.c_void_p(), Error()
        check(self._library.hr_loader_open(ctypes.byref(request), ctypes.byref(handle), ctypes.byref(error)), error)
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

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """The loader is open, and stays so meanwhile."""
        self._require_open()  # before the lock, which a forked process may have got locked
        with self._lock:
            self._require_open()
            yield

    def _require_open(self) -> None:
        if os.getpid() != self._process:
            raise LoaderError(f"[loader] this loader was opened in process {self._process}, and its threads are not in this forked "
                              "one: open a loader in each process")
        if not self._close.alive:
            raise LoaderError("[loader] this loader is closed: open another one")


# --- what the program is told ---


def _keys(experiment, options, seed, settings, data):
    """Pairs of key and TOML, as --set takes them; later ones win."""
    values = {}
    if options is not None:
        if not isinstance(options, Mapping):
            raise TypeError(f"options is {options!r}; it must be a dict of the datasource's options")
        values["data.source"] = os.fspath(experiment)
        values.update((f"data.options.{toml_text.key_text(name)}", value) for name, value in options.items())
    values.update((f"data.{toml_text.key_text(name)}", value) for name, value in data.items())
    if seed is not None:
        values["experiment.seed"] = seed
    return [(key, toml_text.value_text(value)) for key, value in [*values.items(), *(settings or {}).items()]]


def _field(of: Mapping[str, Any]) -> Field:
    names = tuple(channel["name"] for channel in of["channels"])
    numbers = {key: None if of[key] is None else tuple(of[key]) for key in ("mean", "std")}
    return Field(of["name"], of["dtype"], tuple(of["shape"]), tuple(of["axes"]), of["unit"], of["sample_rate_hz"],
                 of["channel_axis"], names, **numbers)


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


def _torch():
    from torch import from_dlpack
    return from_dlpack


def _numpy():
    from numpy import from_dlpack
    return from_dlpack


_FRAMEWORKS = {"torch": _torch, "numpy": _numpy}
