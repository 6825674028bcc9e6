"""The losses that model.options.loss names, and what a loss or a metric may give: (sum, weight), one value a sample, or a mean."""

import os

import torch


def _wide(tensor):
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _shape(tensor):
    return str(list(tensor.shape))


def _same_shape(prediction, target):
    if prediction.shape == target.shape:
        return target
    squeezed = [n for n in prediction.shape[1:] if n != 1], [n for n in target.shape[1:] if n != 1]
    if prediction.shape[:1] == target.shape[:1] and squeezed[0] == squeezed[1]:
        return target.reshape(prediction.shape)
    raise InputError(
        f"the module gives {_shape(prediction)} and the target is {_shape(target)}: they must have one shape, "
        "or write loss(outputs, batch) in the file"
    )


def _mse(prediction, target):
    return (prediction - target).square().sum(), prediction.numel()


def _mae(prediction, target):
    return (prediction - target).abs().sum(), prediction.numel()


def _huber(prediction, target):
    return torch.nn.functional.huber_loss(prediction, target, reduction="sum"), prediction.numel()


def _cross_entropy(prediction, target):
    if target.is_floating_point():
        weight = target.numel() // target.shape[1]  # probabilities of classes
        return torch.nn.functional.cross_entropy(prediction, target, reduction="sum"), weight
    target = target.long()
    if target.dim() == prediction.dim() and target.shape[1] == 1:
        target = target.squeeze(1)
    total = torch.nn.functional.cross_entropy(prediction, target, reduction="sum")
    return total, (target != -100).sum()


_losses = {"mse": _mse, "mae": _mae, "huber": _huber, "cross_entropy": _cross_entropy}


def _sum_and_weight(value, count, what):
    """What `what` gives for `count` samples."""
    if isinstance(value, (tuple, list)) and len(value) == 2:
        total, weight = value
        if not isinstance(total, torch.Tensor) or total.numel() != 1:
            raise InputError(f"{what} gives (sum, weight), and its sum is no tensor of one element")
        return _wide(total).reshape(()), weight
    if not isinstance(value, torch.Tensor):
        raise InputError(
            f"{what} gives a {type(value).__name__}: it must be (sum, weight), one value a sample, or a mean"
        )
    if value.dim() == 1 and value.shape[0] == count:
        return _wide(value).sum(), count
    if value.dim() == 0:
        return _wide(value) * count, count
    raise InputError(
        f"{what} gives a tensor of shape {_shape(value)} for {count} samples: it must be (sum, weight), one value a "
        "sample, or a mean"
    )


class Loss:
    """`own`: gives a function of the user's file by its name, or None."""

    def __init__(self, name, target, own, file):
        self.name = name or ("loss" if own("loss", "outputs", "batch") else "")
        self.target, self.gives_mean, self.told_mean = target, False, False
        self.is_built_in = self.name in _losses and not own(self.name, "outputs", "batch")
        if self.is_built_in:
            self.function = _losses[self.name]
            if not target:
                raise InputError(f'model.options.target is missing: the loss "{name}" needs the field to compare with')
        else:
            self.function = own(self.name) if self.name else None
            if self.function is None:
                raise InputError(
                    (f'model.options.loss is "{name}"' if name else "model.options.loss is missing")
                    + f": it must be one of {', '.join(_losses)} or a function (outputs, batch) of {os.path.basename(file)}"
                )

    def of(self, outputs, batch, count):
        """(sum, weight) over `count` samples."""
        if self.is_built_in:
            if not isinstance(outputs, torch.Tensor):
                raise InputError(
                    f"the module gives a {type(outputs).__name__}: the loss \"{self.name}\" takes one tensor; "
                    "write loss(outputs, batch) in the file"
                )
            prediction, target = _wide(outputs), batch[self.target]
            if self.name != "cross_entropy":
                target = _same_shape(prediction, target).to(prediction.dtype)
            value = self.function(prediction, target)
        else:
            value = self.function(outputs, batch)
        if isinstance(value, torch.Tensor) and value.dim() == 0:
            self.gives_mean = True
        return _sum_and_weight(value, count, f"{self.name}(outputs, batch)")

    def remark_on_mean(self):
        """Once."""
        if not self.gives_mean or self.told_mean:
            return ""
        self.told_mean = True
        return (
            "the loss gives a mean: it is multiplied by the number of samples; where samples count for more or less than "
            "each other, give (sum, weight)"
        )
