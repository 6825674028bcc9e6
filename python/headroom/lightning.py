"""Windows of samples in Lightning (lightning, or pytorch_lightning):

    trainer = Trainer(callbacks=[headroom.lightning.Windows(window=64)])

A LightningModule with automatic optimisation stays as it is; its training_step gets pieces of batches that fit."""

from __future__ import annotations

import functools
import sys
from typing import Any, Dict, Optional, Union

import torch

from .accumulator import Accumulator

if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
    import pytorch_lightning as pl
else:
    try:
        import lightning.pytorch as pl
    except ImportError:
        import pytorch_lightning as pl

__all__ = ["Windows"]


class Windows(pl.Callback):
    """Trains in windows of `window` samples (headroom.Accumulator), on one device with one optimizer.

    training_step(batch, batch_idx) is called for each piece of a batch, and returns a mean over it as Lightning expects, or one
    value a sample, or (sum, weight), which Lightning alone would not take; a dict has that as "loss". The optimizer steps when a
    window is full and at the end of an epoch; trainer.global_step counts these steps, learning rates follow them, and
    gradient_clip_val holds for a window's gradient. What training_step logs is logged once for each piece, also for one that is
    taken again.

    ValueError at the start of fit: accumulate_grad_batches (window says it), several devices or optimizers, manual optimisation,
    a GradScaler ("16-mixed"), clipping by value, optimizers with a closure of their own (LBFGS)."""

    def __init__(self, window: int = 64, *, micro_batch: Union[None, int, str] = None):
        self.window, self.micro_batch = window, micro_batch
        self.accumulator: Optional[Accumulator] = None  #: while fit runs
        self._module: Any = None
        self._state: Optional[Dict[str, Any]] = None

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        if stage != "fit":
            return
        scaler = getattr(trainer.precision_plugin, "scaler", None)
        for wrong, why in [
            (trainer.accumulate_grad_batches != 1, "accumulate_grad_batches is not 1: window says how many samples a step has"),
            (trainer.world_size != 1, f"there are {trainer.world_size} processes: one device is what it can do"),
            (not pl_module.automatic_optimization, "the module optimises by itself: use headroom.Accumulator in its training_step"),
            (scaler is not None, 'the precision scales losses: use "bf16-mixed" or "32-true"'),
            (trainer.gradient_clip_val is not None and str(trainer.gradient_clip_algorithm or "norm").split(".")[-1].lower() != "norm",
             'gradient_clip_algorithm is not "norm"'),
        ]:
            if wrong:
                raise ValueError(f"headroom.lightning.Windows: {why}")

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        # Not earlier: Lightning makes learning rate schedules without a metric for a module that optimises by itself.
        if len(trainer.optimizers) != 1 or isinstance(trainer.optimizers[0], torch.optim.LBFGS):
            raise ValueError(f"headroom.lightning.Windows: one optimizer without a closure is what it can do; there are {len(trainer.optimizers)}")
        original = pl_module.training_step
        rest: tuple = ()

        def loss(module: Any, part: Any) -> Any:
            found = original(part, *rest)
            return found["loss"] if isinstance(found, dict) else found

        @functools.wraps(original)
        def training_step(batch: Any, *more: Any) -> torch.Tensor:
            nonlocal rest
            rest = more
            return torch.tensor(self._step(trainer, batch))

        pl_module.automatic_optimization = False
        pl_module.training_step = training_step
        self._module = pl_module
        self.accumulator = Accumulator(pl_module, pl_module.optimizers(use_pl_optimizer=True), self.window, loss=loss, micro_batch=self.micro_batch,
                                       clip_norm=trainer.gradient_clip_val or None, backward=pl_module.manual_backward,
                                       after_window=lambda: self._follow_window(trainer))
        if self._state is not None:
            self.accumulator.load_state_dict(self._state)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        for config in trainer.lr_scheduler_configs:
            if config.interval == "epoch" and (trainer.current_epoch + 1) % config.frequency == 0:
                _follow(trainer, config)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        self._let_go(trainer)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._let_go(trainer)

    def state_dict(self) -> Dict[str, Any]:
        return {} if self.accumulator is None else self.accumulator.state_dict()

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        self._state = state_dict or None

    def _step(self, trainer: Any, batch: Any) -> float:
        steps = self.accumulator
        assert steps is not None
        value = steps.step(batch)
        if trainer.is_last_batch or trainer.fit_loop.epoch_loop.batch_progress.current.ready >= trainer.num_training_batches:
            steps.finish()
        return value

    def _follow_window(self, trainer: Any) -> None:
        assert self.accumulator is not None
        for config in trainer.lr_scheduler_configs:
            if config.interval == "step" and self.accumulator.windows % config.frequency == 0:
                _follow(trainer, config)

    def _let_go(self, trainer: Any) -> None:
        if self._module is None:
            return
        # Lightning counts the steps of modules that optimise by themselves apart: trainer.global_step stays.
        loop = trainer.fit_loop.epoch_loop
        loop.automatic_optimization.optim_progress.optimizer.step.total.completed = loop.manual_optimization.optim_step_progress.total.completed
        self._state = None
        self.accumulator = None
        del self._module.training_step  # the class's own is in force again
        self._module.automatic_optimization = True
        self._module = None


def _follow(trainer: Any, config: Any) -> None:
    """One step of a learning rate's schedule. ValueError where what it watches was not logged."""
    if not config.reduce_on_plateau:
        config.scheduler.step()
        return
    watched = trainer.callback_metrics.get(config.monitor)
    if watched is not None:
        config.scheduler.step(watched)
    elif config.strict:
        raise ValueError(f"the learning rate's schedule watches {config.monitor!r}, which was not logged; logged are {sorted(trainer.callback_metrics)}")
