"""The same samples as fast as Python gets them: a batch for each __getitems__, straight into memory that is used again,
np.memmap at the dataset's offset where the values stand in one piece, kept handles and a kept record buffer elsewhere.
The budget of decoded chunks is divided among the files: h5py's setting is for each of them.

A worker process must hand out memory of its own: there every batch is fresh.
"""
import itertools

import numpy as np
import torch
from torch.utils.data import Dataset, get_worker_info

from plain_datasets import CAMERAS, SPIKE_FIELDS, WINDOW, Files, lengths

BATCHES_KEPT = 2


class Buffers:
    """make(count) gives the tensors of one batch; in the main process the same ones come round again."""

    def __init__(self, make):
        self.make, self.size, self.ring = make, 0, None

    def next(self, count):
        if get_worker_info() is not None:
            return self.make(count)
        if self.size != count:
            self.size, self.ring = count, itertools.cycle([self.make(count) for _ in range(BATCHES_KEPT)])
        return next(self.ring)


def mapped(dataset, path):
    """The dataset's values where they stand in the file, or None."""
    if dataset.chunks is not None or dataset.id.get_offset() is None:
        return None
    return np.memmap(path, dataset.dtype, "r", dataset.id.get_offset(), dataset.shape)


class Emg(Dataset):
    def __init__(self, paths, settings):
        self.files, self.maps, self.kept = Files(paths, settings["chunk_cache_bytes"] // len(paths)), {}, None
        records = lengths(paths, "emg2pose/timeseries")
        self.ends = np.cumsum([count - WINDOW + 1 for count in records])
        self.mean, self.inverse = np.zeros(16, np.float32), np.ones(16, np.float32)
        self.buffers = Buffers(lambda count: (torch.empty(count, WINDOW, 16), torch.empty(count, WINDOW, 20)))

    def __len__(self):
        return int(self.ends[-1])

    def records(self, number, start):
        if number not in self.maps:
            dataset = self.files[number]["emg2pose/timeseries"]
            self.maps[number] = (dataset, mapped(dataset, self.files.paths[number]))
            self.kept = np.empty(WINDOW, dataset.dtype)
        dataset, values = self.maps[number]
        if values is not None:
            return values[start:start + WINDOW]
        dataset.read_direct(self.kept, np.s_[start:start + WINDOW])
        return self.kept

    def __getitems__(self, indices):
        batch = self.buffers.next(len(indices))
        emg, angles = batch[0].numpy(), batch[1].numpy()
        numbers = np.searchsorted(self.ends, indices, "right")
        for i, (number, index) in enumerate(zip(numbers.tolist(), indices)):
            start = index - (int(self.ends[number - 1]) if number else 0)
            records = self.records(number, start)
            np.subtract(records["emg"], self.mean, out=emg[i])
            emg[i] *= self.inverse
            angles[i] = records["joint_angles"]
        return batch


class Act(Dataset):
    def __init__(self, paths, settings):
        self.files = Files(paths, settings["chunk_cache_bytes"] // len(paths))
        steps = lengths(paths, "action")
        self.frames = [(number, step) for number, count in enumerate(steps) for step in range(count)]
        self.buffers = Buffers(lambda n: (torch.empty(n, 2, 480, 640, 3, dtype=torch.uint8), torch.empty(n, 14),
                                          torch.empty(n, steps[0], 14), torch.empty(n, steps[0], dtype=torch.bool)))
        self.open = {}

    def __len__(self):
        return len(self.frames)

    def datasets(self, number):
        if number not in self.open:
            file = self.files[number]
            images = [file[f"observations/images/{camera}"] for camera in CAMERAS]
            self.open[number] = (images, file["observations/qpos"][:], file["action"][:])
        return self.open[number]

    def __getitems__(self, indices):
        batch = self.buffers.next(len(indices))
        pixels, qpos, action, is_pad = (field.numpy() for field in batch)
        for i, index in enumerate(indices):
            number, step = self.frames[index]
            images, states, actions = self.datasets(number)
            for camera, image in enumerate(images):
                image.read_direct(pixels[i, camera], np.s_[step])
            rest = len(actions) - step
            qpos[i], action[i, :rest], action[i, rest:] = states[step], actions[step:], 0.0
            is_pad[i, :rest], is_pad[i, rest:] = False, True
        return batch


class Spike(Dataset):
    def __init__(self, paths, settings):
        self.files, self.crop, self.maps = Files(paths, settings["chunk_cache_bytes"] // len(paths)), settings.get("crop"), {}
        self.items = [(number, item) for number, items in enumerate(lengths(paths, "blur")) for item in range(items)]
        height, width = (self.crop, self.crop) if self.crop else (720, 1280)
        self.buffers = Buffers(lambda n: (torch.empty(n, height, width, 3), torch.empty(n, height, width, 3),
                                          torch.empty(n, 32, height, width)))

    def __len__(self):
        return len(self.items)

    def __getitems__(self, indices):
        batch = self.buffers.next(len(indices))
        for i, index in enumerate(indices):
            number, item = self.items[index]
            if number not in self.maps:
                self.maps[number] = [mapped(self.files[number][name], self.files.paths[number]) for name in SPIKE_FIELDS]
            rows, columns = slice(None), slice(None)
            if self.crop:
                top, left = np.random.randint(720 - self.crop + 1), np.random.randint(1280 - self.crop + 1)
                rows, columns = slice(top, top + self.crop), slice(left, left + self.crop)
            for field, values in zip(batch, self.maps[number]):
                part = values[item][rows, columns] if field.shape[-1] == 3 else values[item][:, rows, columns]
                np.copyto(field[i].numpy(), part)
        return batch
