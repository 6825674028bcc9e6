"""VRT for deblurring (pa_frames 2) as its users have it: nn.Modules, frames aligned one by one, deformable convolution by gathering.

Parameters and buffers are named as in the reference's state dict. Tensors are [batch, frames, channels, height, width] outside,
channels-last within windows. Needs torch.
"""
import functools
import itertools
import math

import torch
from torch import nn
from torch.nn import functional as F

SCALES = (1, 2, 4, 8, 4, 2, 1)  # by how much each of the seven stages is smaller than the frame
LARGEST_RESIDUE = 10.0  # of an offset beside the flow, in pixels of the frame


def flow_warp(x, flow, rounded=None, mode="bilinear", padding="zeros"):  # flow [batch, 2, height, width]: x, y
    height, width = x.shape[2:]
    columns = torch.arange(width, dtype=x.dtype, device=x.device) + flow[:, 0]
    rows = torch.arange(height, dtype=x.dtype, device=x.device)[:, None] + flow[:, 1]
    if rounded:
        columns, rows = rounded[0](columns), rounded[1](rows)
    grid = torch.stack([2 * columns / max(width - 1, 1) - 1, 2 * rows / max(height - 1, 1) - 1], -1)
    return F.grid_sample(x, grid, mode=mode, padding_mode=padding, align_corners=True)


def four_neighbours(x, flow):
    ways = itertools.product((torch.floor, torch.ceil), repeat=2)
    return torch.cat([flow_warp(x, flow, rounded, mode="nearest") for rounded in ways], 1)


class FlowLevel(nn.Module):
    def __init__(self):
        super().__init__()
        layers, widths = [], (8, 32, 64, 32, 16, 2)
        for before, after in itertools.pairwise(widths):
            layers += [nn.Conv2d(before, after, 7, 1, 3), nn.ReLU()]
        self.basic_module = nn.Sequential(*layers[:-1])

    def forward(self, x):
        return self.basic_module(x)


class SpyNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.basic_module = nn.ModuleList(FlowLevel() for _ in range(6))
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1))

    def pyramid(self, x):
        levels = [(F.interpolate(x, [32 * math.ceil(n / 32) for n in x.shape[2:]], mode="bilinear") - self.mean) / self.std]
        for _ in range(5):
            levels.insert(0, F.avg_pool2d(levels[0], 2, 2))
        return levels

    def forward(self, reference, other):
        """Flows of four scales, the finest first, in pixels of each."""
        size, references, others = reference.shape[2:], self.pyramid(reference), self.pyramid(other)
        flow, flows = references[0].new_zeros(len(reference), 2, *(n // 2 for n in references[0].shape[2:])), []
        for level, (a, b) in enumerate(zip(references, others)):
            up = 2.0 * F.interpolate(flow, scale_factor=2, mode="bilinear", align_corners=True)
            up = F.pad(up, (0, a.shape[3] - up.shape[3], 0, a.shape[2] - up.shape[2]), mode="replicate")
            flow = self.basic_module[level](torch.cat([a, flow_warp(b, up, padding="border"), up], 1)) + up
            if level >= 2:
                height, width = (n >> (5 - level) for n in size)
                factor = flow.new_tensor([width / flow.shape[3], height / flow.shape[2]]).view(1, 2, 1, 1)
                flows.insert(0, F.interpolate(flow, (height, width), mode="bilinear") * factor)
        return flows


class GatedMlp(nn.Module):
    def __init__(self, channels, hidden, out=None):
        super().__init__()
        self.fc11, self.fc12 = nn.Linear(channels, hidden), nn.Linear(channels, hidden)
        self.act, self.fc2 = nn.GELU(), nn.Linear(hidden, out or channels)

    def forward(self, x):
        return self.fc2(self.act(self.fc11(x)) * self.fc12(x))


class DropPath(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, x):
        if self.rate == 0.0 or not self.training:
            return x
        kept = x.new_empty(len(x), *[1] * (x.dim() - 1)).bernoulli_(1 - self.rate)
        return x * kept / (1 - self.rate)


def relative_index(window):
    depth, height, width = window
    at = torch.stack(torch.meshgrid(*(torch.arange(n) for n in window), indexing="ij")).flatten(1)
    d, h, w = at[:, :, None] - at[:, None]
    return ((d + depth - 1) * (2 * height - 1) + h + height - 1) * (2 * width - 1) + w + width - 1


def sine_positions(height, width, channels):
    half = channels // 2
    period, even = 10000 ** (2 * (torch.arange(half) // 2) / half), torch.arange(half) % 2 == 0

    def waves(count):
        angle = torch.arange(1, count + 1)[:, None] / (count + 1e-6) * (2 * math.pi) / period
        return torch.where(even, angle.sin(), angle.cos())

    rows, columns = waves(height)[:, None].expand(-1, width, -1), waves(width).expand(height, -1, -1)
    return torch.cat([rows, columns], -1).reshape(1, height * width, channels)


class WindowAttention(nn.Module):
    def __init__(self, channels, window, heads, mutual):
        super().__init__()
        self.window, self.heads, self.mutual, self.scale = window, heads, mutual, (channels // heads) ** -0.5
        table = torch.empty(math.prod(2 * n - 1 for n in window), heads)
        self.relative_position_bias_table = nn.Parameter(nn.init.trunc_normal_(table, std=0.02))
        self.register_buffer("relative_position_index", relative_index(window))
        self.qkv_self, self.proj = nn.Linear(channels, 3 * channels), nn.Linear(channels * (1 + mutual), channels)
        if mutual:
            self.register_buffer("position_bias", sine_positions(*window[1:], channels))
            self.qkv_mut = nn.Linear(channels, 3 * channels)

    def split(self, x):  # three of [windows, heads, tokens, channels / heads]
        return x.unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)

    def bias(self, tokens):  # the first rows of a smaller window's are the reference's choice, not a window's geometry
        rows = self.relative_position_index[:tokens, :tokens]
        return self.relative_position_bias_table[rows.flatten()].view(tokens, tokens, -1).permute(2, 0, 1)

    def attend(self, q, k, v, mask, bias=None):
        weights = (q * self.scale) @ k.transpose(-2, -1)
        if bias is not None:
            weights = weights + bias
        if mask is not None:
            tokens = q.shape[2]
            weights = weights.unflatten(0, (-1, len(mask))) + mask[None, :, None, :tokens, :tokens]
            weights = weights.flatten(0, 1)
        return (weights.softmax(-1) @ v).transpose(1, 2).flatten(2)

    def forward(self, x, mask):  # x [windows, tokens, channels], mask [windows of a clip, tokens, tokens]
        q, k, v = self.split(self.qkv_self(x))
        out = self.attend(q, k, v, mask, self.bias(x.shape[1]))
        if self.mutual:
            q, k, v = self.split(self.qkv_mut(x + self.position_bias.repeat(1, 2, 1)))
            (q1, q2), (k1, k2), (v1, v2) = (each.chunk(2, 2) for each in (q, k, v))
            out = torch.cat([torch.cat([self.attend(q2, k1, v1, mask), self.attend(q1, k2, v2, mask)], 1), out], 2)
        return self.proj(out)


def effective(size, window, shift):
    pairs = [(n, 0) if n <= w else (w, s) for n, w, s in zip(size, window, shift)]
    return tuple(w for w, _ in pairs), tuple(s for _, s in pairs)


def windows_of(x, window):  # [batch, depth, height, width, channels] -> [windows, tokens, channels]
    (d, h, w), (batch, depth, height, width, channels) = window, x.shape
    x = x.view(batch, depth // d, d, height // h, h, width // w, w, channels)
    return x.permute(0, 1, 3, 5, 2, 4, 6, 7).reshape(-1, d * h * w, channels)


def from_windows(x, window, shape):
    (d, h, w), (batch, depth, height, width, channels) = window, shape
    x = x.view(batch, depth // d, height // h, width // w, d, h, w, channels)
    return x.permute(0, 1, 4, 2, 5, 3, 6, 7).reshape(shape)


@functools.lru_cache
def attention_mask(padded, window, shift):
    """0 within what was neighbours before the shift, -100 across; None without a shift."""
    if not any(shift):
        return None
    labels = torch.zeros(())
    for n, w, s in zip(padded, window, shift):
        at = torch.arange(n)
        labels = labels[..., None] * 3 + (((at >= n - w).float() + (at >= n - s)) if s else torch.zeros(n))
    tokens = windows_of(labels[None, ..., None], window).squeeze(-1)
    return (tokens[:, None] != tokens[:, :, None]) * -100.0


class Block(nn.Module):  # of temporal mutual and self attention
    def __init__(self, channels, window, shift, heads, mutual, mlp_ratio, drop_path):
        super().__init__()
        self.window, self.shift = window, shift
        self.norm1, self.norm2 = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.attn = WindowAttention(channels, window, heads, mutual)
        self.mlp, self.drop_path = GatedMlp(channels, int(channels * mlp_ratio)), DropPath(drop_path)

    def attention_part(self, x, mask):
        size = x.shape[1:4]
        window, shift = effective(size, self.window, self.shift)
        more = [-n % w for n, w in zip(size, window)]
        x = F.pad(self.norm1(x), (0, 0, 0, more[2], 0, more[1], 0, more[0]))
        shape = x.shape
        if any(shift):
            x = torch.roll(x, [-s for s in shift], (1, 2, 3))
        x = from_windows(self.attn(windows_of(x, window), mask if any(shift) else None), window, shape)
        if any(shift):
            x = torch.roll(x, shift, (1, 2, 3))
        return x[:, :size[0], :size[1], :size[2]]

    def mlp_part(self, x):
        return self.mlp(self.norm2(x))

    def forward(self, x, mask):
        x = x + self.drop_path(self.attention_part(x, mask))
        return x + self.drop_path(self.mlp_part(x))


class Group(nn.Module):
    def __init__(self, channels, window, heads, mutual, mlp_ratio, drop_paths):
        super().__init__()
        self.window, self.shift = window, [n // 2 for n in window]
        self.blocks = nn.ModuleList(Block(channels, window, self.shift if i % 2 else [0, 0, 0], heads, mutual, mlp_ratio, rate)
                                    for i, rate in enumerate(drop_paths))

    def forward(self, x):  # [batch, channels, depth, height, width]
        x = x.permute(0, 2, 3, 4, 1)
        window, shift = effective(x.shape[1:4], self.window, self.shift)
        padded = tuple(math.ceil(n / w) * w for n, w in zip(x.shape[1:4], window))
        mask = attention_mask(padded, window, shift)
        for block in self.blocks:
            x = block(x, mask)
        return x.permute(0, 4, 1, 2, 3)


class DeformableAlignment(nn.Module):
    def __init__(self, channels, groups, largest_residue):
        super().__init__()
        self.groups, self.largest_residue = groups, largest_residue
        bound = (channels * 9) ** -0.5
        self.weight = nn.Parameter(torch.empty(channels, channels, 3, 3).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(channels))
        layers = [nn.Conv2d(2 * channels + 2, channels, 3, 1, 1), nn.LeakyReLU(0.1)]
        for _ in range(2):
            layers += [nn.Conv2d(channels, channels, 3, 1, 1), nn.LeakyReLU(0.1)]
        self.conv_offset = nn.Sequential(*layers, nn.Conv2d(channels, 27 * groups, 3, 1, 1))
        nn.init.zeros_(self.conv_offset[6].weight)
        nn.init.zeros_(self.conv_offset[6].bias)

    def forward(self, source, warped, current, flow):
        first, second, mask = self.conv_offset(torch.cat([warped, current, flow], 1)).chunk(3, 1)
        offset = self.largest_residue * torch.tanh(torch.cat([first, second], 1))
        offset = offset + flow.flip(1).repeat(1, 9 * self.groups, 1, 1)
        return self.convolve(source, offset, torch.sigmoid(mask))

    def positions(self, offset):  # rows and columns, [batch, groups, 9, height, width]
        height, width = offset.shape[2:]
        taps = torch.arange(9).view(9, 1, 1)
        offset = offset.unflatten(1, (self.groups, 9, 2))
        rows = torch.arange(height).view(height, 1) + taps // 3 - 1
        columns = torch.arange(width) + taps % 3 - 1
        return rows + offset[:, :, :, 0], columns + offset[:, :, :, 1]

    def multiplied(self, sampled, mask):  # sampled [batch, groups, channels / groups, 9, height, width]
        height, width = mask.shape[2:]
        sampled = sampled * mask.view(len(mask), self.groups, 1, 9, height, width)
        out = self.weight.flatten(1) @ sampled.reshape(len(mask), -1, height * width)
        return out.unflatten(2, (height, width)) + self.bias.view(-1, 1, 1)

    def convolve(self, x, offset, mask):
        batch, channels, height, width = x.shape
        rows, columns = self.positions(offset)
        top, left = rows.floor(), columns.floor()
        below, right = rows - top, columns - left
        values, sampled = x.reshape(batch * self.groups, channels // self.groups, height * width), 0.0
        for down, share_y in ((0, 1 - below), (1, below)):
            for along, share_x in ((0, 1 - right), (1, right)):
                y, x = top + down, left + along
                inside = (y >= 0) & (y <= height - 1) & (x >= 0) & (x <= width - 1)
                index = (y.clamp(0, height - 1) * width + x.clamp(0, width - 1)).long().view(len(values), 1, -1)
                corner = torch.gather(values, 2, index.expand(-1, values.shape[1], -1))
                sampled = sampled + corner.view(batch, self.groups, -1, *rows.shape[2:]) * (share_y * share_x * inside).unsqueeze(2)
        return self.multiplied(sampled, mask)


class Down(nn.Module):
    def forward(self, x):  # channels last; a pixel's four neighbours become channels, the width's offset slowest
        return torch.cat([x[:, :, y::2, z::2] for z in (0, 1) for y in (0, 1)], -1)


class Up(nn.Module):
    def forward(self, x):
        x = x.unflatten(-1, (2, 2, -1)).permute(0, 1, 2, 5, 3, 4, 6)
        return x.flatten(4, 5).flatten(2, 3)


class Stage(nn.Module):
    def __init__(self, config, number, drop_paths):
        super().__init__()
        channels, before = config["embed_dims"][number], config["embed_dims"][max(number - 1, 0)]
        heads, window = config["num_heads"][number], config["window_size"]
        mutual = int(len(drop_paths) * config["mul_attn_ratio"])
        norms = [nn.Identity(), nn.LayerNorm(channels)]
        if number:
            width, move = (4 * before, Down()) if SCALES[number] > SCALES[number - 1] else (before // 4, Up())
            norms = [move, nn.LayerNorm(width), nn.Linear(width, channels)]
        self.reshape = nn.Sequential(*norms)
        # Both groups take their rates from the front: the reference's choice.
        self.residual_group1 = Group(channels, [2, *window[1:]], heads, True, config["mlp_ratio"], drop_paths[:mutual])
        self.residual_group2 = Group(channels, window, heads, False, config["mlp_ratio"], drop_paths[:len(drop_paths) - mutual])
        self.linear1, self.linear2 = nn.Linear(channels, channels), nn.Linear(channels, channels)
        self.pa_deform = DeformableAlignment(channels, config["deformable_groups"], LARGEST_RESIDUE / SCALES[number])
        self.pa_fuse = GatedMlp(3 * channels, 3 * channels, channels)

    def aligned(self, x, backward, forward):
        """What each frame gets of the next and of the one before it."""
        after, before = [torch.zeros_like(x[:, 0])], [torch.zeros_like(x[:, 0])]
        for t in reversed(range(x.shape[1] - 1)):
            flow = backward[:, t]
            after.insert(0, self.pa_deform(x[:, t + 1], flow_warp(x[:, t + 1], flow), x[:, t], flow))
        for t in range(1, x.shape[1]):
            flow = forward[:, t - 1]
            before.append(self.pa_deform(x[:, t - 1], flow_warp(x[:, t - 1], flow), x[:, t], flow))
        return torch.stack(after, 1), torch.stack(before, 1)

    def forward(self, x, backward, forward):  # [batch, channels, depth, height, width]
        x = self.reshape(x.permute(0, 2, 3, 4, 1)).permute(0, 4, 1, 2, 3)
        x = self.linear1(self.residual_group1(x).transpose(1, 4)).transpose(1, 4) + x
        x = self.linear2(self.residual_group2(x).transpose(1, 4)).transpose(1, 4) + x
        x = x.transpose(1, 2)
        x = torch.cat([x, *self.aligned(x, backward, forward)], 2)
        return self.pa_fuse(x.permute(0, 1, 3, 4, 2)).permute(0, 4, 1, 2, 3)


class LastGroup(nn.Module):
    def __init__(self, channels, window, heads, mlp_ratio, drop_paths):
        super().__init__()
        self.residual_group = Group(channels, window, heads, False, mlp_ratio, drop_paths)
        self.linear = nn.Linear(channels, channels)

    def forward(self, x):
        return x + self.linear(self.residual_group(x).transpose(1, 4)).transpose(1, 4)


class LastReshape(nn.Sequential):
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 4, 1)).permute(0, 4, 1, 2, 3)


class Vrt(nn.Module):
    def __init__(self, config):
        """config: depths, embed_dims and num_heads of all stages; window_size, mul_attn_ratio, mlp_ratio, deformable_groups,
        indep_reconsts, drop_path_rate, in_chans (3; more: other maps behind the colours, which are warped with them)."""
        super().__init__()
        depths, dims, heads, ratio = config["depths"], config["embed_dims"], config["num_heads"], config["mlp_ratio"]
        rates = iter(torch.linspace(0, config["drop_path_rate"], sum(depths)).tolist())
        drop_paths = [list(itertools.islice(rates, depth)) for depth in depths]
        self.conv_first = nn.Conv3d(9 * config["in_chans"], dims[0], (1, 3, 3), padding=(0, 1, 1))
        self.spynet = SpyNet()
        for i in range(7):
            setattr(self, f"stage{i + 1}", Stage(config, i, drop_paths[i]))
        window = config["window_size"]
        self.stage8 = nn.ModuleList([LastReshape(nn.Identity(), nn.LayerNorm(dims[6]), nn.Linear(dims[6], dims[7]))])
        for i in range(7, len(depths)):
            alone = [1, *window[1:]] if i in config["indep_reconsts"] else window
            self.stage8.append(LastGroup(dims[i], alone, heads[i], ratio, drop_paths[i]))
        self.norm, self.conv_after_body = nn.LayerNorm(dims[-1]), nn.Linear(dims[-1], dims[0])
        self.conv_last = nn.Conv3d(dims[0], 3, (1, 3, 3), padding=(0, 1, 1))

    def flows(self, x):
        pairs = x[:, :-1].flatten(0, 1), x[:, 1:].flatten(0, 1)
        shape = (x.shape[0], x.shape[1] - 1)
        return [[flow.unflatten(0, shape) for flow in self.spynet(*way)] for way in (pairs, pairs[::-1])]

    def neighbours(self, x, backward, forward):
        nothing = torch.zeros_like(x[:, 0]).repeat(1, 4, 1, 1)
        last = x.shape[1] - 1
        after = [four_neighbours(x[:, t + 1], backward[:, t]) for t in range(last)] + [nothing]
        before = [nothing] + [four_neighbours(x[:, t], forward[:, t]) for t in range(last)]
        return torch.stack(after, 1), torch.stack(before, 1)

    def body(self, x, backward, forward):
        x1 = self.stage1(x, backward[0], forward[0])
        x2 = self.stage2(x1, backward[1], forward[1])
        x3 = self.stage3(x2, backward[2], forward[2])
        x = self.stage4(x3, backward[3], forward[3])
        x = self.stage5(x, backward[2], forward[2])
        x = self.stage6(x + x3, backward[1], forward[1])
        x = self.stage7(x + x2, backward[0], forward[0]) + x1
        for layer in self.stage8:
            x = layer(x)
        return self.conv_after_body(self.norm(x.permute(0, 2, 3, 4, 1))).permute(0, 4, 1, 2, 3)

    def forward(self, x):
        colours = x[:, :, :3]
        backward, forward = self.flows(colours)
        x = torch.cat([x, *self.neighbours(x, backward[0], forward[0])], 2)
        x = self.conv_first(x.transpose(1, 2))
        x = self.conv_last(x + self.body(x, backward, forward))
        return colours + x.transpose(1, 2)
