"""Batches as loops have them - a tensor, or tuples, lists and dicts of tensors and arrays - cut along their samples."""

from __future__ import annotations

from typing import Any, Iterator

__all__ = ["samples_of", "part_of"]


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "ndim")


def _arrays(batch: Any) -> Iterator[Any]:
    if _is_array(batch):
        if batch.ndim > 0:
            yield batch
    elif isinstance(batch, dict) or hasattr(batch, "keys"):
        for key in batch.keys():
            yield from _arrays(batch[key])
    elif isinstance(batch, (list, tuple)):
        for value in batch:
            yield from _arrays(value)


def samples_of(batch: Any) -> int:
    """How many samples there are: the length of the first axis, which all arrays must share. ValueError where they do not."""
    lengths = {array.shape[0] for array in _arrays(batch)}
    if len(lengths) == 1 and lengths != {0}:
        return lengths.pop()
    found = "none" if not lengths else ", ".join(map(str, sorted(lengths)))
    raise ValueError(f"a batch is arrays with one sample per row of their first axis, all of one length above 0; the lengths here: {found}")


def part_of(batch: Any, begin: int, end: int) -> Any:
    """The samples begin..end - 1, in the batch's own structure. Arrays are views; lists of a length as samples are cut too; what
    else a batch holds goes with every part."""
    count = samples_of(batch)
    return batch if begin == 0 and end >= count else _part(batch, begin, end, count)


def _part(value: Any, begin: int, end: int, count: int) -> Any:
    if _is_array(value):
        return value[begin:end] if value.ndim > 0 else value
    if isinstance(value, dict):
        return {key: _part(item, begin, end, count) for key, item in value.items()}
    if hasattr(value, "keys"):  # such as BatchEncoding
        return {key: _part(value[key], begin, end, count) for key in value.keys()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_part(item, begin, end, count) for item in value))
    if isinstance(value, (list, tuple)):
        if len(value) == count and not any(True for _ in _arrays(value)):
            return value[begin:end]  # a text or number for each sample
        return type(value)(_part(item, begin, end, count) for item in value)
    return value
