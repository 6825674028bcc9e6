"""Windows of samples in a loop of one's own: a window is taken in pieces that fit, and its gradient is the same for any pieces.

    steps = headroom.Accumulator(model, optimizer, window=64, loss=lambda model, batch: mse(model(batch[0]), batch[1]))
    for batch in loader:
        loss = steps.step(batch)         # forward, backward, and the optimizer's step where a window is full"""

from __future__ import annotations

import logging
import warnings
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

import torch

from .batches import part_of, samples_of
from .optimizer_step import OptimizerStep
from .undo import Buffers, Gradients, RandomState, attempt, insist, release

__all__ = ["Accumulator"]

_log = logging.getLogger("headroom")

_PATIENCE = 16  # windows without a shortage before larger pieces are tried
_MOST_PATIENCE = 1024
_COPIED_STEPS = 2  # of the optimizer: the first makes its state, the second is the first that finds it there

Loss = Callable[[torch.nn.Module, Any], Any]


def _parameters(model: torch.nn.Module, optimizer: Any) -> List[torch.nn.Parameter]:
    """Of the model and of the optimizer, each once."""
    found = {id(parameter): parameter for parameter in model.parameters()}
    for group in optimizer.param_groups:
        found.update((id(parameter), parameter) for parameter in group["params"])
    return list(found.values())


def _coupling_layer(model: torch.nn.Module) -> Optional[str]:
    """The name of a layer in training whose samples influence each other; None: there is none of those that are known."""
    for name, layer in model.named_modules():
        if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm) and layer.training:
            return f"{name or 'the model'} ({type(layer).__name__})"
    return None


class Accumulator:
    """Trains `model` in windows of `window` samples: the gradient of a window is the sum of its losses' gradients divided by the
    sum of their weights, whatever the batches that `step` gets and the pieces they are taken in.

    model: a torch.nn.Module.
    optimizer: of torch.optim, or one that wraps it (Lightning's, Accelerate's). The Accumulator calls its step().
    window: samples of one optimizer step, at least 1. Batches may be smaller or larger; what is left over at the end of an epoch
        waits for the next, or goes with finish().
    loss: loss(model, batch) of a batch or a part of it, one of three: (sum, weight), always exact; one value a sample, a tensor
        [samples]; or a mean, a tensor without axes, which is multiplied by the samples: right where every sample counts the same.
    micro_batch: the most samples of a piece; None or "auto": as many as a batch and a window have. Where memory is short a piece
        is undone and taken again in halves; after 16 windows without a shortage twice as many samples are tried, and after twice
        as many each time that this was too much.
    clip_norm: the largest norm of a window's gradient; None: not clipped.
    backward: called with the sum instead of its backward() (Accelerate's `accelerator.backward`).
    after_window: called after each step of the optimizer, of which one batch may bring several: a learning rate's `schedule.step`.

    What is exact: a failed piece leaves no gradient, no change of a buffer and no random number drawn from the default generators
    of torch, Python and numpy. So the gradient is that of the same pieces without a failure, bit for bit; other pieces differ in
    rounding only, and in dropout's draws, since a generator draws in order. What a forward pass changes elsewhere, in attributes or
    files, happens again. From the second piece of a window on it costs the memory of one more set of gradients.

    Not for several processes (DDP), GradScaler or optimizers that need a closure (LBFGS)."""

    def __init__(self, model: torch.nn.Module, optimizer: Any, window: int = 64, *, loss: Loss,
                 micro_batch: Union[None, int, str] = None, clip_norm: Optional[float] = None,
                 backward: Optional[Callable[[torch.Tensor], Any]] = None, after_window: Optional[Callable[[], Any]] = None):
        if not callable(loss):
            raise TypeError(f"loss is a function of (model, batch), not {loss!r}")
        if not isinstance(window, int) or window < 1:
            raise ValueError(f"window is a number of samples of at least 1, not {window!r}")
        if micro_batch not in (None, "auto") and (not isinstance(micro_batch, int) or micro_batch < 1):
            raise ValueError(f'micro_batch is a number of samples of at least 1, None or "auto", not {micro_batch!r}')
        self.model, self.optimizer, self.window, self.clip_norm = model, optimizer, window, clip_norm
        self._loss, self._backward = loss, backward or torch.Tensor.backward
        self._after_window = after_window
        self._most = min(micro_batch, window) if isinstance(micro_batch, int) else window
        self._piece = self._most  #: the most samples of a piece now
        self._parameters = _parameters(model, optimizer)
        self._gradients, self._buffers = Gradients(self._parameters), Buffers(model)
        self._samples, self._weight = 0, 0.0  # of the window so far
        self._ready = False  # the window is full, and had no memory so far for the optimizer's step
        self._calm, self._patience, self._grew = 0, _PATIENCE, False
        self._single_failed = self._clipped = False
        self._step_bytes = 0  # that the optimizer's last step took for a time
        self._warned = self._said_mean = False
        self.windows = 0  #: optimizer steps so far
        self.retries = 0  #: pieces that were taken again so far
        self.stepped = False  #: whether the last step() or finish() ended a window
        self.grad_norm: Optional[float] = None  #: of the last window, before it was clipped; None: not measured

    @property
    def micro_batch(self) -> int:
        """The most samples of a piece now."""
        return self._piece

    @property
    def samples(self) -> int:
        """Samples of the window so far."""
        return self._samples

    def step(self, batch: Any) -> float:
        """Takes a batch: forward and backward of its samples, and the optimizer's step each time that a window is full. Returns the
        loss of the batch: the sum over its samples by the sum of their weights.

        torch.OutOfMemoryError: one sample does not fit, or the optimizer's step does not (finish() tries that again). The samples
        before it are in the window; discard() begins it anew. ValueError: the batch or the loss is of another form."""
        count, done = samples_of(batch), 0
        total, weight = 0.0, 0.0
        self.stepped = False
        if self._ready:
            self._step_optimizer()
        while done < count:
            size = min(self._piece, count - done, self.window - self._samples)
            self._warn_of_coupling(size < count)
            result, shortage = self._take(batch, done, done + size)
            if shortage is not None:
                self._shrink(size, shortage)
                continue
            done += size
            self._single_failed = False
            self._samples += size
            total, weight = total + result[0], weight + result[1]
            self._weight += result[1]
            if self._samples == self.window:
                self._step_optimizer()
        return total / weight if weight != 0 else float("nan")

    def finish(self) -> bool:
        """Ends a window that is not full: the optimizer steps with what there is. False where there is nothing."""
        self.stepped = False
        if self._samples > 0 or self._ready:
            self._step_optimizer()
        return self.stepped

    def discard(self) -> None:
        """Forgets the samples of the window so far."""
        self._gradients.clear()
        self._samples, self._weight = 0, 0.0
        self._ready = self._clipped = False

    def state_dict(self) -> Dict[str, Any]:
        """Everything but model and optimizer, which have their own. A window that is not full is in it: tensors as they are, not
        copies."""
        if self._ready:
            raise RuntimeError("a window waits for the optimizer's step, which had no memory: call finish() or discard() first")
        return {"version": 1, "piece": self._piece, "calm": self._calm, "patience": self._patience, "grew": self._grew,
                "windows": self.windows, "retries": self.retries, "samples": self._samples, "weight": self._weight,
                "gradients": self._gradients.state() if self._samples > 0 else None}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Goes on where state_dict() was taken. ValueError for the state of another model or version."""
        if state.get("version") != 1:
            raise ValueError(f"this is no state of headroom.Accumulator of version 1: version {state.get('version')!r}")
        self.discard()
        if state["gradients"] is not None:
            self._gradients.load(state["gradients"])
        self._piece = min(state["piece"], self._most)
        self._calm, self._patience, self._grew = state["calm"], state["patience"], state["grew"]
        self.windows, self.retries = state["windows"], state["retries"]
        self._samples, self._weight = state["samples"], state["weight"]

    def _take(self, batch: Any, begin: int, end: int) -> Tuple[Optional[Tuple[float, float]], Optional[BaseException]]:
        """Forward and backward of some samples: (sum, weight), or the shortage. After a shortage all is as before."""
        before: List[Any] = []

        def work() -> Tuple[float, float]:
            generators = RandomState()
            self._buffers.note()
            before.extend((generators, self._buffers))
            self._gradients.begin()
            return self._forward_and_backward(part_of(batch, begin, end), end - begin)

        result, shortage = attempt(work)
        if shortage is None:
            insist(self._gradients.keep)
            return result, None
        # First: what is put back needs a little memory.
        self._gradients.begin()
        release(shortage)
        for state in before:
            state.restore()
        return None, shortage

    def _forward_and_backward(self, part: Any, samples: int) -> Tuple[float, float]:
        total, weight = self._sum_and_weight(self._loss(self.model, part), samples)
        self._backward(total)
        return float(total.detach()), weight

    def _sum_and_weight(self, loss: Any, samples: int) -> Tuple[torch.Tensor, float]:
        if isinstance(loss, (tuple, list)) and len(loss) == 2 and isinstance(loss[0], torch.Tensor) and loss[0].ndim == 0:
            return loss[0], float(loss[1])
        if isinstance(loss, torch.Tensor) and loss.ndim == 1 and loss.shape[0] == samples:
            return loss.sum(), float(samples)
        if isinstance(loss, torch.Tensor) and loss.ndim == 0:
            if not self._said_mean:
                _log.info("the loss is a mean: it is multiplied by the samples of a piece, which is right where every sample counts the same")
                self._said_mean = True
            return loss * samples, float(samples)
        found = f"a tensor {list(loss.shape)}" if isinstance(loss, torch.Tensor) else f"{type(loss).__name__}"
        raise ValueError(f"the loss of {samples} samples is (sum, weight), one value a sample [{samples}], or a mean without axes; it was {found}")

    def _shrink(self, size: int, shortage: BaseException) -> None:
        if size == 1 and self._single_failed:
            raise torch.OutOfMemoryError(f"one sample does not fit into memory: {shortage}") from None
        self._single_failed = size == 1  # once more: others may have held the memory
        self.retries += 1
        self._piece = (size + 1) // 2
        self._calm = 0
        if self._grew:  # larger pieces were tried, and were too much
            self._patience = min(2 * self._patience, _MOST_PATIENCE)
            self._grew = False
        _log.info("memory was short: pieces of %d samples instead of %d: %s", self._piece, size, shortage)

    def _grow(self) -> None:
        self._calm += 1
        if self._piece >= self._most or self._calm < self._patience:
            return
        self._piece = min(2 * self._piece, self._most)
        self._calm, self._grew = 0, True
        _log.info("memory has sufficed for a while: pieces of %d samples", self._piece)

    def _warn_of_coupling(self, divides: bool) -> None:
        if not divides or self._warned:
            return
        self._warned = True
        if (layer := _coupling_layer(self.model)) is not None:
            warnings.warn(f"{layer} makes the samples of a piece influence each other: a window in several pieces is not the same as "
                          "a window at once; GroupNorm or LayerNorm would be", stacklevel=3)

    def _step_optimizer(self) -> None:
        """The optimizer's step of a full window. Where its memory is short, the window waits for another try."""
        self._samples, self._ready = 0, True
        insist(lambda: self._gradients.divide(self._weight))
        self._clip()
        optimizer = getattr(self.optimizer, "optimizer", self.optimizer)  # of a wrapper
        step = OptimizerStep(self.optimizer.step, optimizer, self._parameters)
        self._step_bytes = step.take(self.windows < _COPIED_STEPS, self._step_bytes)
        self.discard()
        self.windows += 1
        self.stepped = True
        self._grow()
        if self._after_window is not None:
            self._after_window()

    def _clip(self) -> None:
        """Once a window. It scales nothing before it has all the memory it needs, so it may be called again."""
        if self.clip_norm is None or self._clipped:
            return
        with_gradient = [parameter for parameter in self._parameters if parameter.grad is not None]
        self.grad_norm = insist(lambda: float(torch.nn.utils.clip_grad_norm_(with_gradient, self.clip_norm)))
        self._clipped = True
