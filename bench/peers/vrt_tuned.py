"""The same VRT, as fast as Python gets it, with the same parameters: tuned(model) changes a Vrt of vrt.py in place.

All frames are aligned at once, both ways, by grid_sample; the three products of an attention stay apart where a learned bias needs a
gradient (scaled_dot_product_attention falls back to slower ones then) and are one where there is none.
recomputing(model): attention, MLPs and alignment through torch.utils.checkpoint.
"""
import torch
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import vrt


class Attention(vrt.WindowAttention):
    def attend(self, q, k, v, mask, bias=None):
        if mask is not None:
            mask = mask[:, None, :q.shape[2], :q.shape[2]].repeat(len(q) // len(mask), 1, 1, 1)
        if bias is None:
            return F.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).flatten(2)
        weights = ((q * self.scale) @ k.transpose(-2, -1)).add_(bias)
        if mask is not None:
            weights.add_(mask)
        return (weights.softmax(-1) @ v).transpose(1, 2).flatten(2)


class Alignment(vrt.DeformableAlignment):
    def convolve(self, x, offset, mask):
        batch, _, height, width = x.shape
        rows, columns = self.positions(offset)
        grid = torch.stack([(2 * columns + 1) / width - 1, (2 * rows + 1) / height - 1], -1)
        sampled = F.grid_sample(x.reshape(batch * self.groups, -1, height, width), grid.view(-1, 9 * height, width, 2),
                                mode="bilinear", padding_mode="zeros", align_corners=False)
        return self.multiplied(sampled.view(batch, self.groups, -1, 9, height, width), mask)


class Stage(vrt.Stage):
    def aligned(self, x, backward, forward):
        frames = x.shape[1] - 1
        sources, current = torch.cat([x[:, 1:], x[:, :-1]], 1).flatten(0, 1), torch.cat([x[:, :-1], x[:, 1:]], 1).flatten(0, 1)
        flows = torch.cat([backward, forward], 1).flatten(0, 1)
        out = self.pa_deform(sources, vrt.flow_warp(sources, flows), current, flows).unflatten(0, (len(x), 2 * frames))
        return F.pad(out[:, :frames], (0, 0, 0, 0, 0, 0, 0, 1)), F.pad(out[:, frames:], (0, 0, 0, 0, 0, 0, 1, 0))


TUNED = {vrt.WindowAttention: Attention, vrt.DeformableAlignment: Alignment, vrt.Stage: Stage}


def tuned(model):
    for module in model.modules():
        module.__class__ = TUNED.get(type(module), type(module))
    return model


def recomputing(model):
    def recomputed(part):
        return lambda *inputs: checkpoint(part, *inputs, use_reentrant=False, preserve_rng_state=False)

    for module in model.modules():
        if isinstance(module, vrt.Block):
            module.attention_part, module.mlp_part = recomputed(module.attention_part), recomputed(module.mlp_part)
        elif isinstance(module, vrt.DeformableAlignment):
            module.forward = recomputed(module.forward)
    return model
