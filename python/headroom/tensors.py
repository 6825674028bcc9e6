"""Safetensors files as tensors of torch or arrays of numpy: mapped, not copied, and nothing in them is code.
https://github.com/huggingface/safetensors describes the format."""

from __future__ import annotations

import json
import mmap
import struct
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

# Of the format: the name in torch, and in numpy where that has one.
_TYPES = {
    "F64": ("float64", "float64"),
    "F32": ("float32", "float32"),
    "F16": ("float16", "float16"),
    "BF16": ("bfloat16", ""),
    "I64": ("int64", "int64"),
    "I32": ("int32", "int32"),
    "I16": ("int16", "int16"),
    "I8": ("int8", "int8"),
    "U8": ("uint8", "uint8"),
    "BOOL": ("bool", "bool"),
}
_LONGEST_HEADER = 100 << 20


def _entries(file: Path) -> Iterator[Tuple[str, Tuple[str, str], List[int], int, Any]]:
    """(name, types, shape, number of elements, their bytes) of each tensor. ValueError for a damaged file."""
    try:
        with open(file, "rb") as stream:
            # A private copy: what is written to a tensor stays in this process.
            whole = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
        (length,) = struct.unpack("<Q", whole[:8])
        if length > min(len(whole) - 8, _LONGEST_HEADER):
            raise ValueError("its header is longer than the file")
        header = json.loads(whole[8 : 8 + length])
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            count = 1
            for size in entry["shape"]:
                count *= size
            if not 8 + length <= begin <= end <= len(whole):
                raise ValueError(f"'{name}' lies outside of it")
            yield name, _TYPES[entry["dtype"]], entry["shape"], count, memoryview(whole)[begin:end]
    except (AttributeError, KeyError, TypeError, ValueError, struct.error) as problem:
        raise ValueError(f"{file} is no safetensors file that can be read: {problem}") from None


def torch_tensors(file: Path) -> Dict[str, Any]:
    """Name -> tensor on the CPU. ImportError without torch."""
    import torch

    def tensor(types: Tuple[str, str], shape: List[int], count: int, data: Any) -> Any:
        dtype = getattr(torch, types[0])
        if count == 0:
            return torch.empty(shape, dtype=dtype)
        return torch.frombuffer(data, dtype=dtype, count=count).view(shape)

    return {name: tensor(*rest) for name, *rest in _entries(file)}


def numpy_arrays(file: Path) -> Dict[str, Any]:
    """Name -> array. Bfloat16, which numpy lacks, as float32. ImportError without numpy."""
    import numpy

    def array(types: Tuple[str, str], shape: List[int], count: int, data: Any) -> Any:
        if types[1]:
            return numpy.frombuffer(data, dtype=types[1], count=count).reshape(shape)
        upper = numpy.frombuffer(data, dtype="<u2", count=count).astype("<u4") << 16
        return upper.view("<f4").reshape(shape)

    return {name: array(*rest) for name, *rest in _entries(file)}
