"""A TDS-LSTM trained as a PyTorch user would: an nn.Module, a lazy HDF5 Dataset, a plain loop.

    python bench/peers/tds_lstm.py DATA --batch 128 --steps 10 [--network published --window 2290] [--tuned] [--evaluate]

DATA is a folder of recordings with metadata.csv, as [data.synth] of emg_hdf5 writes it. The network, the loss, the
optimizer and the windows are those of experiments/emg/quick_demo.toml, or the network and the loss of emg2pose's
tracking_vemg2pose. --tuned: fused AdamW, a loss without an index, float32 products as fast as they go. --evaluate: passes
over the validation split in inference mode instead. Prints one line of JSON when it ends. Needs torch, numpy, h5py; safetensors for --check.
"""
import argparse
import contextlib
import csv
import gc
import json
import os
import time

import h5py
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from step_clock import StepClock

JOINTS, SAMPLE_RATE_HZ, ROLLOUT_HZ = 20, 2000, 50
NETWORKS = {
    "quick": {"convolutions": [], "stages": [{"kernel_in": 5, "stride": 2, "channels": 8, "width": 4, "kernel": 21}],
              "hidden": 64, "layers": 1, "scale": 1.0, "velocity": False, "loss": (1.0, 0.5)},
    "published": {"convolutions": [(256, 11, 5), (256, 5, 2)],
                  "stages": [{"kernel_in": 17, "stride": 4, "channels": 16, "width": 16, "kernel": 9},
                             {"kernel_in": 9, "stride": 2, "channels": 16, "width": 16, "kernel": 5, "out": 64}],
                  "hidden": 512, "layers": 2, "scale": 0.01, "velocity": True, "loss": (0.0, 1.0)},
}  # loss: shares of squared and of absolute error


class FeatureNorm(nn.LayerNorm):
    def forward(self, x):  # [batch, features, time]
        return super().forward(x.transpose(1, 2)).transpose(1, 2)


class ConvBlock(nn.Module):
    def __init__(self, channels_in, channels_out, kernel, stride):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(channels_in, channels_out, kernel, stride), nn.ReLU())
        self.norm = FeatureNorm(channels_out)

    def forward(self, x):
        return self.norm(self.conv(x))


class TdsConv(nn.Module):
    def __init__(self, channels, width, kernel):
        super().__init__()
        self.channels, self.width = channels, width
        self.conv2d = nn.Conv2d(channels, channels, (1, kernel))
        self.layer_norm = FeatureNorm(channels * width)

    def forward(self, x):
        y = F.relu(self.conv2d(x.reshape(len(x), self.channels, self.width, -1)))
        y = y.reshape(len(x), self.channels * self.width, -1)
        return self.layer_norm(y + x[..., -y.shape[-1]:])


class FullyConnected(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.fc_block = nn.Sequential(nn.Linear(features, features), nn.ReLU(), nn.Linear(features, features))
        self.layer_norm = FeatureNorm(features)

    def forward(self, x):
        return self.layer_norm(x + self.fc_block(x.transpose(1, 2)).transpose(1, 2))


class Stage(nn.Module):
    def __init__(self, channels_in, kernel_in, stride, channels, width, kernel, out=0, blocks=2):
        super().__init__()
        tds, features = [], channels * width
        for _ in range(blocks):
            tds += [TdsConv(channels, width, kernel), FullyConnected(features)]
        inner = nn.Module()
        inner.tds_conv_blocks = nn.Sequential(*tds)
        self.linear_layer = nn.Linear(features, out) if out else None
        self.layers = nn.ModuleDict({"conv1dblock": ConvBlock(channels_in, features, kernel_in, stride), "tds_block": inner})
        self.channels_out = out or features

    def forward(self, x):
        x = self.layers["tds_block"].tds_conv_blocks(self.layers["conv1dblock"](x))
        return x if self.linear_layer is None else self.linear_layer(x.transpose(1, 2)).transpose(1, 2)


class Decoder(nn.Module):
    def __init__(self, features, hidden, layers):
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, layers)
        self.mlp_out = nn.Sequential(nn.LeakyReLU(), nn.Linear(hidden, JOINTS))


class TdsLstm(nn.Module):
    def __init__(self, network, channels=16):
        super().__init__()
        layers, self.context, stride = [], 0, 1  # context: samples before the first prediction
        for channels_out, kernel, step in network["convolutions"]:
            layers.append(ConvBlock(channels, channels_out, kernel, step))
            channels, self.context, stride = channels_out, self.context + (kernel - 1) * stride, stride * step
        for stage in network["stages"]:
            layers.append(Stage(channels, **stage))
            self.context += (stage["kernel_in"] - 1) * stride
            stride *= stage["stride"]
            self.context += 2 * (stage["kernel"] - 1) * stride
            channels = layers[-1].channels_out
        self.network = nn.Module()
        self.network.layers = nn.Sequential(*layers)
        self.decoder = Decoder(channels + JOINTS, network["hidden"], network["layers"])
        self.scale, self.velocity, self.loss = network["scale"], network["velocity"], network["loss"]

    def forward(self, emg, start):  # [batch, time, channels], [batch, joints] -> [batch, joints, time - context]
        predicted = emg.shape[1] - self.context
        steps = round(predicted / SAMPLE_RATE_HZ * ROLLOUT_HZ)
        features = F.interpolate(self.network.layers(emg.transpose(1, 2)), steps, mode="linear", align_corners=True)
        pose, carry, poses = start, None, []
        for step in range(steps):
            x, carry = self.decoder.lstm(torch.cat([features[..., step], pose], 1)[None], carry)
            out = self.decoder.mlp_out(x[0]) * self.scale
            pose = pose + out if self.velocity else out
            poses.append(pose)
        return F.interpolate(torch.stack(poses, 2), predicted, mode="linear", align_corners=False)


def loss_of(model, batch, dtype, tuned=False, forward=None):
    """The mean over valid angles, and what an epoch's metrics are made of. `forward`: what wraps the model."""
    emg, angles, valid = batch[0].to(dtype), batch[1].to(dtype).transpose(1, 2), batch[2]
    target, mask = angles[..., model.context:], valid[:, model.context:]
    mask = (mask & mask[:, :1])[:, None].expand_as(target)
    prediction = (forward or model)(emg, angles[..., model.context])
    error = (prediction - target) * mask if tuned else (prediction - target)[mask]
    squared, absolute = model.loss
    total = absolute * error.abs() if squared == 0 else squared * error.square() + absolute * error.abs()
    return total.sum() / mask.sum() if tuned else total.mean(), prediction, target


class Windows(torch.utils.data.Dataset):
    """Windows read when asked for; only the joint angles are looked at in advance, for what is valid."""

    def __init__(self, folder, split, window=500, stride=25):
        with open(os.path.join(folder, "metadata.csv")) as file:
            rows = [row for row in csv.DictReader(file) if row["split"] == split]
        self.paths = [self.find(folder, row) for row in rows]
        self.window, self.files, self.items, self.mean, self.std = window, {}, [], 0.0, 1.0
        for number, path in enumerate(self.paths):
            with h5py.File(path) as file:
                angles = file["emg2pose/timeseries"]["joint_angles"]
            valid = np.concatenate([[False], ~(np.abs(angles) <= 1e-8).all(1), [False]])
            for begin, end in np.flatnonzero(valid[1:] != valid[:-1]).reshape(-1, 2):  # runs of solved samples
                self.items += [(number, start) for start in range(begin, end - 2 - window + 1, stride)]

    @staticmethod
    def find(folder, row):
        for value in row.values():
            for name in (value, value + ".hdf5"):
                if name.endswith(".hdf5") and os.path.exists(os.path.join(folder, name)):
                    return os.path.join(folder, name)
        raise SystemExit(f"{folder}: metadata.csv names no recording in {row}")

    def normalize(self, samples):
        emg = np.stack([self.read(i)["emg"] for i in np.linspace(0, len(self) - 1, samples).astype(int)])
        self.mean, self.std = emg.mean((0, 1), dtype=np.float64), emg.std((0, 1), dtype=np.float64)

    def read(self, index):
        number, start = self.items[index]
        if number not in self.files:
            self.files[number] = h5py.File(self.paths[number], rdcc_nbytes=32 << 20)
        return self.files[number]["emg2pose/timeseries"][start:start + self.window]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        record = self.read(index)
        emg = ((record["emg"] - self.mean) / self.std).astype(np.float32)
        valid = ~(np.abs(record["joint_angles"]) <= 1e-8).all(1)
        return torch.from_numpy(emg), torch.from_numpy(np.ascontiguousarray(record["joint_angles"])), torch.from_numpy(valid)


def evaluate(model, data, batch_size, dtype, tuned=False, batch_done=lambda: None):
    total, weight = 0.0, 0
    with torch.inference_mode():
        for batch in torch.utils.data.DataLoader(data, batch_size):
            _, prediction, target = loss_of(model, batch, dtype, tuned)
            total += (prediction - target).abs().sum().item()
            weight += prediction.numel()
            batch_done()
    return total / max(weight, 1)


def evaluate_only(options, dtype, clock):
    torch.manual_seed(0)
    model = TdsLstm(NETWORKS[options.network]).to(dtype).eval()
    data = Windows(options.data, "val", options.window, options.stride)
    data.normalize(min(200, len(data)))
    while len(clock.steps) < options.steps:
        clock.start()
        mae = evaluate(model, data, options.batch, dtype, options.tuned, clock.stop)
    return mae


def divided(model, options):
    """For the processes that torchrun's variables name: (what sums gradients in backward, bytes of its own for that)."""
    torch.distributed.init_process_group("gloo")
    wrapped = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=options.tuned)
    buckets = str(wrapped._get_ddp_logging_data()["bucket_sizes"])
    return wrapped, 0 if options.tuned else sum(int(size) for size in buckets.split(","))


def train(options, batch_size, dtype, clock):
    torch.manual_seed(0)
    model = TdsLstm(NETWORKS[options.network]).to(dtype)
    forward, beside_bytes = divided(model, options) if options.ddp else (model, 0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.01, fused=True if options.tuned else None)
    data = Windows(options.data, "train", options.window, options.stride)
    data.normalize(min(200, len(data)))
    validation = Windows(options.data, "val", options.window, options.stride)
    validation.mean, validation.std = data.mean, data.std
    order, kept = {"shuffle": True}, []
    if options.ddp:
        batch_size //= torch.distributed.get_world_size()
        order = {"sampler": torch.utils.data.distributed.DistributedSampler(data, drop_last=True)}
    while len(clock.steps) < options.steps:
        clock.start()
        for batch in torch.utils.data.DataLoader(data, batch_size, num_workers=options.workers, **order):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=options.precision == "bf16"):
                loss, prediction, target = loss_of(model, batch, dtype, options.tuned, forward)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            clock.stop()
            if options.keep:
                kept.append((prediction.detach(), target))
            if len(clock.steps) == options.steps:
                break
    if kept:
        torch.cat([p for p, _ in kept]).sub_(torch.cat([t for _, t in kept])).abs().mean()
    return (evaluate(model, validation, batch_size, dtype) if options.validate else None), beside_bytes


def check(options, dtype):
    """The validation error of a Headroom run's last weights, by this network."""
    from safetensors.torch import load_file

    model = TdsLstm(NETWORKS[options.network]).to(dtype)
    folder = os.path.join(options.check, "checkpoints", "last")
    model.load_state_dict(load_file(os.path.join(folder, "model.safetensors")))
    data = Windows(options.data, "val", options.window, options.stride)
    with open(os.path.join(folder, "checkpoint.json")) as file:
        statistics = next(find_statistics(json.load(file)))
    data.mean, data.std = np.array(statistics["mean"]), np.array(statistics["std"])
    return {"val_mae": evaluate(model, data, options.batch, dtype), "windows": len(data)}


def find_statistics(node):
    if isinstance(node, dict) and "mean" in node and "std" in node:
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else []:
        yield from find_statistics(child)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--precision", choices=["fp32", "bf16", "fp64"], default="fp32", help="bf16: under torch.autocast")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--network", choices=NETWORKS, default="quick")
    parser.add_argument("--window", type=int, default=500)
    parser.add_argument("--stride", type=int, default=25)
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--evaluate", action="store_true")
    parser.add_argument("--ddp", action="store_true", help="one of several processes, which torchrun's variables name")
    parser.add_argument("--no-validation", dest="validate", action="store_false")
    parser.add_argument("--halve", action="store_true", help="on out of memory begin again with half the batch")
    parser.add_argument("--keep", action="store_true", help="keep all predictions and targets to the epoch's end")
    parser.add_argument("--check", metavar="RUN", help="evaluate a Headroom run's weights instead")
    options = parser.parse_args()
    dtype = torch.float64 if options.precision == "fp64" else torch.float32
    if options.threads:
        torch.set_num_threads(options.threads)
    if options.tuned:
        torch.set_float32_matmul_precision("medium")
    if options.check:
        print(json.dumps(check(options, dtype)))
        return
    if options.evaluate:
        clock = StepClock()
        clock.print(val_mae=evaluate_only(options, dtype, clock))
        return
    batch_size, began = options.batch, time.monotonic()
    while True:
        clock = StepClock()
        # The exception is gone when the handler ends, and with it the frames that hold the failed attempt's tensors.
        try:
            mae, beside_bytes = train(options, batch_size, dtype, clock)
            break
        except (RuntimeError, MemoryError) as problem:
            if options.precision == "bf16" and "LSTM forward propagation primitive" in str(problem):
                print(json.dumps({"cannot": "its PyTorch has no LSTM in bfloat16 for this processor"}))
                return
            if not options.halve or batch_size == 1:
                raise
        gc.collect()
        batch_size //= 2
    clock.print(batch=batch_size, val_mae=mae, beside_bytes=beside_bytes,
                samples_per_second=batch_size * len(clock.steps) / (time.monotonic() - began))


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main()
