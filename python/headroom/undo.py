"""What a failed piece of a window leaves behind, and how it is undone: random numbers, buffers, gradients, frames that hold
activations."""

from __future__ import annotations

import gc
import random
import sys
import traceback
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from . import guard

__all__ = ["is_shortage", "release", "RandomState", "Buffers", "Gradients", "attempt", "insist"]

# Of PyTorch's own allocators, and of new in C++.
_SENTENCES = ("can't allocate memory", "not enough memory", "std::bad_alloc", "out of memory")


def is_shortage(problem: BaseException) -> bool:
    """True where memory was short: headroom's limit, a device, malloc."""
    if isinstance(problem, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(problem, RuntimeError) and any(sentence in str(problem) for sentence in _SENTENCES)


def release(problem: Optional[BaseException]) -> None:
    """Lets go of what the frames of an exception hold, activations above all, and gives freed memory back."""
    seen = set()
    while problem is not None and id(problem) not in seen:
        seen.add(id(problem))
        if problem.__traceback__ is not None:
            traceback.clear_frames(problem.__traceback__)
            problem.__traceback__ = None
        problem = problem.__cause__ or problem.__context__
    gc.collect()
    guard.give_back()
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


class RandomState:
    """The default generators of torch, Python and numpy, where these are imported."""

    def __init__(self) -> None:
        numpy = sys.modules.get("numpy")
        self._torch = torch.get_rng_state()
        self._cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() and torch.cuda.is_initialized() else None
        self._python = random.getstate()
        self._numpy = numpy.random.get_state() if numpy is not None else None

    def restore(self) -> None:
        torch.set_rng_state(self._torch)
        if self._cuda is not None:
            torch.cuda.set_rng_state_all(self._cuda)
        random.setstate(self._python)
        if self._numpy is not None:
            sys.modules["numpy"].random.set_state(self._numpy)


class _Noted:
    def __init__(self, buffer: torch.Tensor):
        self.buffer, self.copy = buffer, buffer.detach().clone()


class Buffers:
    """A module's buffers, as values and as objects: a step may write into one, or put another tensor in its place. BatchNorm writes
    without counting up a version, so values are compared."""

    def __init__(self, module: torch.nn.Module):
        self._module = module
        self._places: List[Tuple[torch.nn.Module, str, _Noted]] = []

    @torch.no_grad()
    def note(self) -> None:
        known = {id(noted.buffer): noted for _, _, noted in self._places}
        fresh: Dict[int, _Noted] = {}
        places = []
        for owner in self._module.modules():
            for name, buffer in owner._buffers.items():
                if buffer is None:
                    continue
                if id(buffer) not in fresh:
                    noted = known.get(id(buffer))
                    if noted is not None and noted.copy.shape == buffer.shape and noted.copy.dtype == buffer.dtype:
                        noted.copy.copy_(buffer)
                    else:
                        noted = _Noted(buffer)
                    fresh[id(buffer)] = noted
                places.append((owner, name, fresh[id(buffer)]))
        self._places = places

    @torch.no_grad()
    def restore(self) -> None:
        for owner, name, noted in self._places:
            owner._buffers[name] = noted.buffer
            if not torch.equal(noted.buffer, noted.copy):
                noted.buffer.copy_(noted.copy)


class Gradients:
    """The sum of the gradients of a window's pieces. A piece's own are kept apart until it is done, so that one that failed leaves
    nothing; that costs the memory of one more set of gradients from the second piece of a window on."""

    def __init__(self, parameters: List[torch.nn.Parameter]):
        self._parameters = parameters
        self._sums: List[Optional[torch.Tensor]] = [None] * len(parameters)

    def begin(self) -> None:
        """Before a piece: `.grad` is empty."""
        for parameter in self._parameters:
            parameter.grad = None

    def keep(self) -> None:
        """After a piece: adds its gradients to the sums. It may be called again after it failed for want of memory."""
        for at, parameter in enumerate(self._parameters):
            gradient = parameter.grad
            if gradient is None:
                continue
            total = self._sums[at]
            if total is None:
                self._sums[at] = gradient
            elif total.is_sparse or gradient.is_sparse:
                self._sums[at] = total + gradient
            else:
                total.add_(gradient)  # takes no memory, so it cannot fail half-way
            parameter.grad = None

    def divide(self, weight: float) -> None:
        """Gives `.grad` the sums divided by the weight. It may be called again after it failed for want of memory, of which a
        division takes a few bytes before it begins."""
        for at, parameter in enumerate(self._parameters):
            total = self._sums[at]
            if total is None:
                continue
            parameter.grad = total.div_(weight) if weight != 0 else total
            self._sums[at] = None

    def clear(self) -> None:
        self._sums = [None] * len(self._parameters)
        self.begin()

    def state(self) -> List[Optional[torch.Tensor]]:
        return list(self._sums)

    def load(self, sums: List[Optional[torch.Tensor]]) -> None:
        if len(sums) != len(self._parameters):
            raise ValueError(f"the state has gradients of {len(sums)} parameters, and the model has {len(self._parameters)}")
        self._sums = [None if total is None else total.clone() for total in sums]


def attempt(work: Callable[[], Any]) -> Tuple[Any, Optional[BaseException]]:
    """What `work` gives, or the shortage that ended it; other exceptions pass. A shortage that the work itself caught counts: what
    it did instead would depend on the memory there was."""
    before = guard.refusals()
    try:
        result = work()
    except Exception as problem:
        if not is_shortage(problem):
            raise
        return None, problem
    if guard.refusals() != before:
        return None, torch.OutOfMemoryError("a tensor was refused, and the code that asked for it went on without it")
    return result, None


def insist(work: Callable[[], Any]) -> Any:
    """What `work` gives, which is called once more where memory was short. REQUIRES: it may be called again."""
    result, shortage = attempt(work)
    if shortage is None:
        return result
    release(shortage)
    return work()
