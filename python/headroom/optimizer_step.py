"""An optimizer's step that is undone, or does not begin, where memory is short."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from . import guard
from .sizes import size_text
from .undo import attempt, release

__all__ = ["OptimizerStep"]


class Copies:
    """Parameters and the optimizer's state as they were: an optimizer's step that ran out of memory is undone."""

    def __init__(self, optimizer: Any, parameters: List[torch.nn.Parameter]):
        self._optimizer = optimizer
        with torch.no_grad():
            self._values = [(parameter, parameter.detach().clone()) for parameter in parameters]
            self._state = {key: _copied(value) for key, value in optimizer.state.items()}

    @classmethod
    def where_they_fit(cls, optimizer: Any, parameters: List[torch.nn.Parameter]) -> Optional["Copies"]:
        copies, shortage = attempt(lambda: cls(optimizer, parameters))
        if shortage is not None:
            release(shortage)
        return copies

    def restore(self) -> None:
        with torch.no_grad():
            for parameter, value in self._values:
                parameter.copy_(value)
        self._optimizer.state.clear()
        self._optimizer.state.update(self._state)


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_copied(item) for item in value)
    return value


class Marks:
    """Whether a step has changed a tensor yet: every write to one counts up its version. Plain numbers of the optimizer's state, such
    as a count of steps, have none, so they are kept."""

    def __init__(self, optimizer: Any, parameters: List[torch.nn.Parameter]):
        self._optimizer, self._parameters = optimizer, parameters
        self._versions = self._now()
        states = {key: value for key, value in optimizer.state.items() if isinstance(value, dict)}
        self._names = {key: set(value) for key, value in states.items()}
        self._numbers = {key: {name: item for name, item in value.items() if not isinstance(item, torch.Tensor)} for key, value in states.items()}

    def _now(self) -> Dict[int, int]:
        tensors = [*self._parameters]
        for value in self._optimizer.state.values():
            tensors.extend(item for item in (value.values() if isinstance(value, dict) else ()) if isinstance(item, torch.Tensor))
        return {id(tensor): tensor._version for tensor in tensors}

    def untouched(self) -> bool:
        now = self._now()
        return all(now.get(key) == version for key, version in self._versions.items())

    def restore(self) -> None:
        """REQUIRES untouched(). Takes away state that was made since, perhaps only in part, and puts numbers back."""
        state = self._optimizer.state
        for key in [key for key, value in state.items() if isinstance(value, dict)]:
            if key not in self._names:
                del state[key]
                continue
            for name in set(state[key]) - self._names[key]:
                del state[key][name]
            state[key].update(self._numbers[key])


class OptimizerStep:
    """Calls `step`, which is optimizer.step or leads to it. The parameters are those that it may change."""

    def __init__(self, step: Callable[[], Any], optimizer: Any, parameters: List[torch.nn.Parameter]):
        self._step, self._optimizer, self._parameters = step, optimizer, parameters

    def take(self, with_copies: bool, expected_bytes: int) -> int:
        """Steps, and returns the memory that it took for a time, in bytes; 0: not known.

        With copies, for the first steps, which make the optimizer's state: a step that ran out of memory is undone and taken once
        more, without the copies. Later ones do not begin where less than `expected_bytes` is free. torch.OutOfMemoryError says
        whether parameters have changed."""
        copies = Copies.where_they_fit(self._optimizer, self._parameters) if with_copies else None
        if not with_copies:
            _expect_room(expected_bytes)
        took, shortage = self._try(copies)
        if shortage is None:
            return took
        needed = took + guard.refused_bytes()
        if copies is None:
            raise _unchanged(shortage)
        del copies
        _expect_room(needed)
        took, shortage = self._try(None)
        if shortage is not None:
            raise _unchanged(shortage)
        return took

    def _try(self, copies: Optional[Copies]) -> Tuple[int, Optional[BaseException]]:
        """(bytes it took, shortage). After a shortage nothing has changed; torch.OutOfMemoryError where it ended half-way."""
        marks = Marks(self._optimizer, self._parameters)
        guard.recent_tensor_peak()
        before = guard.recent_tensor_peak()
        _, shortage = attempt(self._step)
        took = max(guard.recent_tensor_peak() - before, 0)
        if shortage is None:
            return took, None
        release(shortage)
        if marks.untouched():
            marks.restore()
        elif copies is not None:
            copies.restore()
        else:
            raise torch.OutOfMemoryError("the optimizer ran out of memory amid its step: some parameters have stepped and some have not, so "
                                         f"go on from a checkpoint: {shortage}") from None
        return took, shortage


def _expect_room(needed: int) -> None:
    room = guard.room_bytes()
    if room is None or room >= needed:
        return
    raise torch.OutOfMemoryError(f"the optimizer's step needs some {size_text(needed)}, and {size_text(max(room, 0))} are free: no parameter "
                                 "has changed, and finish() tries it again; a larger limit, or an optimizer with less state, fits")


def _unchanged(shortage: BaseException) -> torch.OutOfMemoryError:
    return torch.OutOfMemoryError(f"the optimizer's step does not fit: no parameter has changed, and finish() tries it again: {shortage}")
