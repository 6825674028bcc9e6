"""Datasets as their users write them: one sample for each __getitem__, h5py, DataLoader's own collation."""
import h5py
import numpy as np
import torch
from torch.utils.data import Dataset

WINDOW = 500
CAMERAS = ("cam_high", "cam_left_wrist")
SPIKE_FIELDS = ("blur", "sharp", "voxel")


class Files:
    """HDF5 files that open when they are first read, in the process that reads, and stay open."""

    def __init__(self, paths, chunk_cache_bytes):
        self.paths, self.chunk_cache_bytes, self.open = paths, chunk_cache_bytes, {}

    def __getitem__(self, number):
        if number not in self.open:
            self.open[number] = h5py.File(self.paths[number], "r", rdcc_nbytes=self.chunk_cache_bytes, rdcc_w0=0.75)
        return self.open[number]


def lengths(paths, dataset):
    result = []
    for path in paths:
        with h5py.File(path, "r") as file:
            result.append(len(file[dataset]))
    return result


class Emg(Dataset):
    """The lazy dataset of the users' guides: a list of windows, open sessions, normalised on the way."""

    def __init__(self, paths, settings):
        self.files = Files(paths, settings["chunk_cache_bytes"])
        self.windows = [(number, start) for number, records in enumerate(lengths(paths, "emg2pose/timeseries"))
                        for start in range(0, records - WINDOW + 1, settings.get("stride", 1))]
        self.mean, self.scale = np.zeros(16, np.float32), np.ones(16, np.float32)

    def __len__(self):
        return len(self.windows)

    def __getitem__(self, index):
        number, start = self.windows[index]
        records = self.files[number]["emg2pose/timeseries"][start:start + WINDOW]
        emg = (records["emg"] - self.mean) / self.scale
        return torch.from_numpy(emg), torch.from_numpy(np.ascontiguousarray(records["joint_angles"]))


class Act(Dataset):
    """Every frame of every episode, as ACT's EpisodicDataset reads one: opens the file, makes float images."""

    def __init__(self, paths, settings):
        self.paths = paths
        self.frames = [(number, step) for number, steps in enumerate(lengths(paths, "action")) for step in range(steps)]

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, index):
        number, step = self.frames[index]
        with h5py.File(self.paths[number], "r") as file:
            qpos = file["observations/qpos"][step]
            images = np.stack([file[f"observations/images/{camera}"][step] for camera in CAMERAS])
            rest = file["action"][step:]
            steps = file["action"].shape[0]
        action, is_pad = np.zeros((steps, 14), np.float32), np.zeros(steps, bool)
        action[:len(rest)] = rest
        is_pad[len(rest):] = True
        pixels = torch.einsum("k h w c -> k c h w", torch.from_numpy(images)) / 255.0
        return pixels, torch.from_numpy(qpos).float(), torch.from_numpy(action), torch.from_numpy(is_pad)


class Spike(Dataset):
    """Frames with their voxel planes; a crop is cut out of the frame that was read."""

    def __init__(self, paths, settings):
        self.files, self.crop = Files(paths, settings["chunk_cache_bytes"]), settings.get("crop")
        self.items = [(number, item) for number, items in enumerate(lengths(paths, "blur")) for item in range(items)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        number, item = self.items[index]
        fields = [torch.from_numpy(self.files[number][name][item]) for name in SPIKE_FIELDS]
        if not self.crop:
            return tuple(fields)
        top, left = np.random.randint(720 - self.crop + 1), np.random.randint(1280 - self.crop + 1)
        rows, columns = slice(top, top + self.crop), slice(left, left + self.crop)
        return tuple(x[rows, columns] if x.shape[-1] == 3 else x[:, rows, columns] for x in fields)
