"""What a module is, found by trying: a copy of it steps on samples that are made up."""

import copy
import math
import random
import sys

import torch


def _python_generators():
    numpy = sys.modules.get("numpy")
    return [random.getstate(), numpy and [getattr(part, "tolist", lambda: part)() for part in numpy.random.get_state()]]


class Trial:
    def __init__(self, model):
        self.model, self.generators, self.kept_buffers = model, _python_generators(), []
        try:
            # Weights that hooks compute (torch.nn.utils.weight_norm) are the only tensors that cannot be copied. What is
            # never trained is shared: such a model may only just fit.
            known = {
                id(value): value.detach().clone()
                for module in model.module.modules()
                for value in vars(module).values()
                if isinstance(value, torch.Tensor) and not value.is_leaf
            }
            known.update((id(p), p) for p in model.module.parameters() if not p.requires_grad)
            self.module = copy.deepcopy(model.module, known)
        except Exception as problem:
            if _ran_out_of_memory(problem):
                raise
            raise InputError(
                f"the module cannot be copied, which is how its samples and draws are tried: {problem}"
            ) from None
        # Behind a weight of zeros, as heads often begin, nothing shows; nor does what has settled for just these weights.
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for parameter in self.module.parameters():
                if parameter.requires_grad and parameter.is_floating_point() and parameter.device.type == "cpu":
                    size = float(torch.linalg.vector_norm(parameter)) / math.sqrt(max(1, parameter.numel())) or 1.0
                    for part in (parameter.view(-1) if parameter.is_contiguous() else parameter).split(1 << 20):
                        noise = torch.randn(part.shape, generator=generator, dtype=torch.float32)
                        part.add_(noise.to(part.dtype), alpha=0.1 * size)

    def forward(self, training, tensors, count):
        """(loss, weight, outputs, batch) of one pass."""
        self.module.train(training)
        for one, original in zip(self.module.modules(), self.model.module.modules()):
            if self.model.stays_in_eval(original):
                one.eval()
        batch = dict(zip(self.model.names, tensors))
        with torch.no_grad():
            outputs = self.model.forward(self.module, batch)
            total, weight = self.model.loss.of(outputs, batch, count)
        return float(total), float(weight), outputs, batch

    def end(self):
        """Of what a step changed: an InputError for what no checkpoint or retry would have."""
        tried = dict(self.module.named_buffers())
        for _, _, tensor, name, kept in self.model.buffers:
            if not kept and name in tried and not torch.equal(tensor, tried[name]):
                raise InputError(
                    f"a step changes the buffer '{name}', which is registered with persistent=False, so no checkpoint "
                    "would have it: register it without"
                )
        before, now = self.generators, _python_generators()
        if before[0] != now[0] or (before[1] and before[1] != now[1]):
            raise InputError(
                "a step draws from Python's random or from numpy.random, which no retry can repeat: draw with torch "
                "(torch.rand, torch.randn, dropout), which is keyed by sample"
            )

    def keep_buffers(self):
        self.kept_buffers = [
            (owner, key, buffer.clone())
            for owner in self.module.modules()
            for key, buffer in owner._buffers.items()
            if buffer is not None
        ]

    def restore_buffers(self):
        for owner, key, buffer in self.kept_buffers:
            owner._buffers[key] = buffer
        self.kept_buffers = []

    def changed_buffer(self):
        tried = dict(self.module.named_buffers())
        changed = [n for _, _, tensor, n, _ in self.model.buffers if n in tried and not torch.equal(tensor, tried[n])]
        # Counters change too, and mostly nothing depends on them.
        return min(changed, key=lambda name: tried[name].numel() < 2, default="")

    def disturb_buffers(self):
        """Gives those that steps change other values, as other steps would have."""
        tried = dict(self.module.named_buffers())
        generator = torch.Generator().manual_seed(0)
        for _, _, tensor, name, _ in self.model.buffers:
            buffer = tried.get(name)
            if buffer is None or torch.equal(buffer, tensor) or buffer.dtype == torch.bool or buffer.is_complex():
                continue
            with torch.no_grad():
                if buffer.is_floating_point():
                    size = float(buffer.square().mean().sqrt()) or 1.0
                    noise = torch.randn(buffer.shape, generator=generator, dtype=torch.float32)
                    buffer.add_(noise.to(buffer.dtype), alpha=0.1 * size)
                else:
                    buffer.add_(1000)
