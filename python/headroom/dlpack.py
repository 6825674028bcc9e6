"""Batches of libheadroom_loader as DLPack tensors: whoever takes one keeps the batch's memory."""

from __future__ import annotations

import ctypes

from .loader_library import Error, check


class Batch:
    """Owns one batch of the library."""

    def __init__(self, loaded: ctypes.CDLL):
        self.library, self.pointer = loaded, ctypes.c_void_p()

    def __del__(self):
        if self.pointer:
            self.library.hr_loader_release(self.pointer)


class ExportedField:
    """One field of a batch as the array libraries ask for it. https://data-apis.org/array-api, "__dlpack__"."""

    def __init__(self, batch: Batch, field: int):
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
        tensor, error = ctypes.c_void_p(), Error()
        check(getattr(self._library, function)(self._batch.pointer, self._field, ctypes.byref(tensor), ctypes.byref(error)), error)
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
