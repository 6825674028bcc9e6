"""ACT trained as a PyTorch user runs it: nn.Modules, all seven decoder layers, torch.optim.AdamW as it comes, a plain loop.

    python bench/peers/act_policy.py DATA --batch 2 --steps 10

DATA is an HDF5 file with image [n, cameras, 3, height, width] uint8, qpos [n, 14], action [n, steps, 14], is_pad [n, steps], a
sample a row (bench/models/act_policy.py writes it). Prints one line of JSON when it ends. --evaluate: the loss in inference mode
instead. --tuned: what a patient user may set without
touching the model: one camera batch, channels-last images, fused AdamW, attention without
weights nobody reads, the one decoder layer that counts, float32 products as fast as they go. Needs torch, numpy, h5py.
"""
import argparse
import math

import h5py
import torch
from torch import nn
from torch.nn import functional as F

from step_clock import StepClock

HIDDEN, FEEDFORWARD, HEADS, ENCODERS, DECODERS, LATENT, JOINTS = 512, 3200, 8, 4, 7, 32, 14
WIDTHS = (64, 128, 256, 512)  # of the backbone's stages


class FrozenNorm(nn.Module):
    def __init__(self, channels):
        super().__init__()
        for name, value in (("weight", 1.0), ("bias", 0.0), ("running_mean", 0.0), ("running_var", 1.0)):
            self.register_buffer(name, torch.full((channels,), value))

    def forward(self, x):
        scale = (self.weight * (self.running_var + 1e-5).rsqrt()).view(1, -1, 1, 1)
        return x * scale + (self.bias.view(1, -1, 1, 1) - self.running_mean.view(1, -1, 1, 1) * scale)


class Block(nn.Module):
    def __init__(self, channels_in, channels_out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride, 1, bias=False)
        self.bn1 = FrozenNorm(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, 1, 1, bias=False)
        self.bn2 = FrozenNorm(channels_out)
        self.downsample = None
        if stride != 1:
            self.downsample = nn.Sequential(nn.Conv2d(channels_in, channels_out, 1, stride, bias=False), FrozenNorm(channels_out))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)), inplace=True)))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)), inplace=True)


def resnet18():
    width = WIDTHS[0]
    layers = [nn.Conv2d(3, width, 7, 2, 3, bias=False), FrozenNorm(width), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    for channels in WIDTHS:
        layers += [Block(width, channels, 1 if channels == WIDTHS[0] else 2), Block(channels, channels, 1)]
        width = channels
    return nn.Sequential(*layers)


class EncoderLayer(nn.Module):
    need_weights = True  # as MultiheadAttention has it

    def __init__(self):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(HIDDEN, HEADS, dropout=0.1)
        self.linear1, self.linear2 = nn.Linear(HIDDEN, FEEDFORWARD), nn.Linear(FEEDFORWARD, HIDDEN)
        self.norm1, self.norm2 = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.dropout, self.dropout1, self.dropout2 = nn.Dropout(0.1), nn.Dropout(0.1), nn.Dropout(0.1)

    def forward(self, x, position, padding=None):
        keys = x + position
        x = self.norm1(x + self.dropout1(self.self_attn(keys, keys, x, padding, self.need_weights)[0]))
        return self.norm2(x + self.dropout2(self.linear2(self.dropout(F.relu(self.linear1(x))))))


class DecoderLayer(EncoderLayer):
    def __init__(self):
        super().__init__()
        self.multihead_attn = nn.MultiheadAttention(HIDDEN, HEADS, dropout=0.1)
        self.norm3, self.dropout3 = nn.LayerNorm(HIDDEN), nn.Dropout(0.1)

    def forward(self, x, memory, position, query):
        keys = x + query
        x = self.norm1(x + self.dropout1(self.self_attn(keys, keys, x, None, self.need_weights)[0]))
        x = self.norm2(x + self.dropout2(self.multihead_attn(x + query, memory + position, memory, None, self.need_weights)[0]))
        return self.norm3(x + self.dropout3(self.linear2(self.dropout(F.relu(self.linear1(x))))))


def sine_map(height, width):
    def waves(count):
        turns = torch.arange(1, count + 1) / (count + 1e-6) * 2 * math.pi
        pairs = torch.arange(HIDDEN // 2)
        angles = turns[:, None] / 10000 ** (2 * (pairs // 2) / (HIDDEN // 2))
        return torch.where(pairs % 2 == 0, angles.sin(), angles.cos())
    rows, columns = waves(height)[:, None].expand(-1, width, -1), waves(width)[None].expand(height, -1, -1)
    return torch.cat([rows, columns], -1).permute(2, 0, 1)[None]


class Act(nn.Module):
    def __init__(self, chunk, tuned):
        super().__init__()
        self.chunk, self.one_camera_batch, self.live_layers = chunk, tuned, 1 if tuned else DECODERS
        self.backbone, self.input_proj = resnet18(), nn.Conv2d(WIDTHS[-1], HIDDEN, 1)
        self.cvae = nn.ModuleList(EncoderLayer() for _ in range(ENCODERS))
        self.encoder = nn.ModuleList(EncoderLayer() for _ in range(ENCODERS))
        self.decoder = nn.ModuleList(DecoderLayer() for _ in range(DECODERS))
        self.norm = nn.LayerNorm(HIDDEN)
        self.query, self.cls, self.extra = nn.Embedding(chunk, HIDDEN), nn.Embedding(1, HIDDEN), nn.Embedding(2, HIDDEN)
        self.action_head, self.is_pad_head = nn.Linear(HIDDEN, JOINTS), nn.Linear(HIDDEN, 1)
        self.state_proj, self.cvae_state, self.cvae_action = (nn.Linear(JOINTS, HIDDEN) for _ in range(3))
        self.latent_proj, self.latent_out = nn.Linear(HIDDEN, 2 * LATENT), nn.Linear(LATENT, HIDDEN)
        self.register_buffer("table", torch.randn(chunk + 2, 1, HIDDEN))
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1))

    def features(self, images):
        if self.one_camera_batch:
            flat = images.flatten(0, 1).contiguous(memory_format=torch.channels_last)
            return self.input_proj(self.backbone(flat)).unflatten(0, images.shape[:2]).unbind(1)
        return [self.input_proj(self.backbone(images[:, i])) for i in range(images.shape[1])]

    def forward(self, images, qpos, actions, is_pad):
        images = (images - self.mean) / self.std
        actions, is_pad, batch = actions[:, :self.chunk], is_pad[:, :self.chunk], len(qpos)
        x = torch.cat([self.cls.weight.expand(1, batch, -1), self.cvae_state(qpos)[None], self.cvae_action(actions).transpose(0, 1)])
        padding = torch.cat([torch.zeros(batch, 2, dtype=torch.bool), is_pad], 1)
        for layer in self.cvae:
            x = layer(x, self.table, padding)
        mu, logvar = self.latent_proj(x[0]).chunk(2, 1)
        z = mu + (logvar / 2).exp() * torch.randn_like(mu)

        maps = self.features(images)
        image = torch.cat(maps, 3).flatten(2).permute(2, 0, 1)
        position = torch.cat([sine_map(*maps[0].shape[2:])] * len(maps), 3).flatten(2).permute(2, 0, 1)
        memory = torch.cat([self.latent_out(z)[None], self.state_proj(qpos)[None], image])
        position = torch.cat([self.extra.weight[:, None], position])
        for layer in self.encoder:
            memory = layer(memory, position)
        query = self.query.weight[:, None].expand(-1, batch, -1)
        x, stack = torch.zeros_like(query), []
        for layer in self.decoder[:self.live_layers]:
            x = layer(x, memory, position, query)
            stack.append(self.norm(x))
        hidden = torch.stack(stack).transpose(1, 2)[0]
        predicted, _ = self.action_head(hidden), self.is_pad_head(hidden)
        l1 = (F.l1_loss(predicted, actions, reduction="none") * ~is_pad[..., None]).mean()
        kl = (-0.5 * (1 + logvar - mu**2 - logvar.exp())).sum(1).mean()
        return l1 + 10 * kl


def samples(path, batch):
    with h5py.File(path) as file:
        while True:
            for first in range(0, len(file["qpos"]) - batch + 1, batch):
                rows = slice(first, first + batch)
                yield (torch.from_numpy(file["image"][rows]).float() / 255, torch.from_numpy(file["qpos"][rows]),
                       torch.from_numpy(file["action"][rows]), torch.from_numpy(file["is_pad"][rows]).bool())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--chunk", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--bf16", action="store_true", help="under torch.autocast")
    parser.add_argument("--evaluate", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    model = Act(args.chunk, args.tuned)
    backbone = [p for name, p in model.named_parameters() if name.startswith("backbone")]
    rest = [p for name, p in model.named_parameters() if not name.startswith("backbone")]
    optimizer = torch.optim.AdamW([{"params": rest}, {"params": backbone, "lr": 1e-5}], lr=1e-5, weight_decay=1e-4,
                                  fused=True if args.tuned else None)
    if args.tuned:
        EncoderLayer.need_weights = False
        torch.set_float32_matmul_precision("medium")
        model = model.to(memory_format=torch.channels_last)
    data, clock = samples(args.data, args.batch), StepClock()
    model.train(not args.evaluate)
    for _ in range(args.steps):
        clock.start()
        batch = next(data)
        with torch.inference_mode(args.evaluate), torch.autocast("cpu", torch.bfloat16, enabled=args.bf16):
            loss = model(*batch)
        if not args.evaluate:
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        clock.stop()
    clock.print(parameters=sum(p.numel() for p in model.parameters()), loss=loss.item())


if __name__ == "__main__":
    main()
