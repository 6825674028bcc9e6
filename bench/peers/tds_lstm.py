"""The quick TDS-LSTM trained as a PyTorch user would: an nn.Module, a lazy HDF5 Dataset, a plain loop.

    python bench/peers/tds_lstm.py DATA --batch 128 --steps 10

DATA is a folder of recordings with metadata.csv, as [data.synth] of emg_hdf5 writes it. The network, the loss, the
optimizer and the windows are those of experiments/emg/quick_demo.toml. Prints one line of JSON when it ends.
Needs torch, numpy, h5py; safetensors for --check.
"""
import argparse
import contextlib
import csv
import gc
import json
import os
import resource
import time

import h5py
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

CONTEXT, WINDOW, JOINTS, STEPS = 84, 500, 20, 10  # CONTEXT samples go before the first prediction; STEPS of roll-out


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
    def __init__(self, channels_in, channels=8, width=4, kernel=21, blocks=2):
        super().__init__()
        tds = []
        for _ in range(blocks):
            tds += [TdsConv(channels, width, kernel), FullyConnected(channels * width)]
        inner = nn.Module()
        inner.tds_conv_blocks = nn.Sequential(*tds)
        self.layers = nn.ModuleDict({"conv1dblock": ConvBlock(channels_in, channels * width, 5, 2), "tds_block": inner})

    def forward(self, x):
        return self.layers["tds_block"].tds_conv_blocks(self.layers["conv1dblock"](x))


class Decoder(nn.Module):
    def __init__(self, features, hidden=64):
        super().__init__()
        self.lstm = nn.LSTM(features, hidden)
        self.mlp_out = nn.Sequential(nn.LeakyReLU(), nn.Linear(hidden, JOINTS))


class TdsLstm(nn.Module):
    def __init__(self, channels=16):
        super().__init__()
        self.network = nn.Module()
        self.network.layers = nn.Sequential(Stage(channels))
        self.decoder = Decoder(32 + JOINTS)

    def forward(self, emg, start):  # [batch, time, channels], [batch, joints] -> [batch, joints, time - context]
        features = self.network.layers(emg.transpose(1, 2))
        features = F.interpolate(features, STEPS, mode="linear", align_corners=True)
        pose, carry, poses = start, None, []
        for step in range(STEPS):
            x, carry = self.decoder.lstm(torch.cat([features[..., step], pose], 1)[None], carry)
            pose = self.decoder.mlp_out(x[0])
            poses.append(pose)
        return F.interpolate(torch.stack(poses, 2), emg.shape[1] - CONTEXT, mode="linear", align_corners=False)


def loss_of(model, batch, dtype):
    """Mean over valid angles of MSE + 0.5 MAE, and what an epoch's metrics are made of."""
    emg, angles, valid = batch[0].to(dtype), batch[1].to(dtype).transpose(1, 2), batch[2]
    target, mask = angles[..., CONTEXT:], valid[:, CONTEXT:]
    mask = (mask & mask[:, :1])[:, None].expand_as(target)
    prediction = model(emg, angles[..., CONTEXT])
    error = (prediction - target)[mask]
    return (error.square() + 0.5 * error.abs()).mean(), prediction, target


class Windows(torch.utils.data.Dataset):
    """Windows read when asked for; only the joint angles are looked at in advance, for what is valid."""

    def __init__(self, folder, split, stride=25):
        with open(os.path.join(folder, "metadata.csv")) as file:
            rows = [row for row in csv.DictReader(file) if row["split"] == split]
        self.paths = [self.find(folder, row) for row in rows]
        self.files, self.items, self.mean, self.std = {}, [], 0.0, 1.0
        for number, path in enumerate(self.paths):
            with h5py.File(path) as file:
                angles = file["emg2pose/timeseries"]["joint_angles"]
            valid = np.concatenate([[False], ~(np.abs(angles) <= 1e-8).all(1), [False]])
            for begin, end in np.flatnonzero(valid[1:] != valid[:-1]).reshape(-1, 2):  # runs of solved samples
                self.items += [(number, start) for start in range(begin, end - 2 - WINDOW + 1, stride)]

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
        return self.files[number]["emg2pose/timeseries"][start:start + WINDOW]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        record = self.read(index)
        emg = ((record["emg"] - self.mean) / self.std).astype(np.float32)
        valid = ~(np.abs(record["joint_angles"]) <= 1e-8).all(1)
        return torch.from_numpy(emg), torch.from_numpy(np.ascontiguousarray(record["joint_angles"])), torch.from_numpy(valid)


def evaluate(model, data, batch_size, dtype):
    total, weight = 0.0, 0
    with torch.no_grad():
        for batch in torch.utils.data.DataLoader(data, batch_size):
            _, prediction, target = loss_of(model, batch, dtype)
            total += (prediction - target).abs().sum().item()
            weight += prediction.numel()
    return total / max(weight, 1)


def train(options, batch_size, dtype, done):
    torch.manual_seed(0)
    model = TdsLstm().to(dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.01)
    data = Windows(options.data, "train")
    data.normalize(min(200, len(data)))
    validation = Windows(options.data, "val")
    validation.mean, validation.std = data.mean, data.std
    kept, steps = [], 0
    while steps < options.steps:
        began, cpu_began = time.perf_counter(), time.process_time()
        for batch in torch.utils.data.DataLoader(data, batch_size, shuffle=True, num_workers=options.workers):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=options.precision == "bf16"):
                loss, prediction, target = loss_of(model, batch, dtype)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            done["samples"] += len(batch[0])
            done["steps"].append((time.perf_counter() - began, time.process_time() - cpu_began))
            began, cpu_began = time.perf_counter(), time.process_time()
            if options.keep:
                kept.append((prediction.detach(), target))
            steps += 1
            if steps == options.steps:
                break
    if kept:
        torch.cat([p for p, _ in kept]).sub_(torch.cat([t for _, t in kept])).abs().mean()
    return evaluate(model, validation, batch_size, dtype)


def check(options, dtype):
    """The validation error of a Headroom run's last weights, by this network."""
    from safetensors.torch import load_file

    model = TdsLstm().to(dtype)
    folder = os.path.join(options.check, "checkpoints", "last")
    model.load_state_dict(load_file(os.path.join(folder, "model.safetensors")))
    data = Windows(options.data, "val")
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
    parser.add_argument("--halve", action="store_true", help="on out of memory begin again with half the batch")
    parser.add_argument("--keep", action="store_true", help="keep all predictions and targets to the epoch's end")
    parser.add_argument("--check", metavar="RUN", help="evaluate a Headroom run's weights instead")
    options = parser.parse_args()
    dtype = torch.float64 if options.precision == "fp64" else torch.float32
    if options.threads:
        torch.set_num_threads(options.threads)
    if options.check:
        print(json.dumps(check(options, dtype)))
        return
    batch_size, start = options.batch, time.monotonic()
    while True:
        done = {"samples": 0, "steps": []}
        # The exception is gone when the handler ends, and with it the frames that hold the failed attempt's tensors.
        try:
            mae = train(options, batch_size, dtype, done)
            break
        except (RuntimeError, MemoryError) as problem:
            if options.precision == "bf16" and "LSTM forward propagation primitive" in str(problem):
                print(json.dumps({"cannot": "its PyTorch has no LSTM in bfloat16 for this processor"}))
                return
            if not options.halve or batch_size == 1:
                raise
        gc.collect()
        batch_size //= 2
    seconds = time.monotonic() - start
    print(json.dumps({"batch": batch_size, "samples": done["samples"], "seconds": seconds,
                      "samples_per_second": done["samples"] / seconds, "val_mae": mae,
                      "step_seconds": [clock for clock, _ in done["steps"]], "cpu_seconds": [cpu for _, cpu in done["steps"]],
                      "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main()
