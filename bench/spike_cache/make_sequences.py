"""Sequences in the layout of spike_hdf5: blur and sharp [frames, height, width, 3], voxel [frames, 32, height, width], float32.

    PYTHON bench/spike_cache/make_sequences.py FOLDER SEQUENCES FRAMES HEIGHT WIDTH

Whatever is there already stays. Values are noise: caches and loaders do not look at them.
"""
import os
import sys

import h5py
import numpy as np

BINS = 32


def write(path, number, frames, height, width):
    random = np.random.default_rng(number)
    with h5py.File(path + ".part", "w") as file:
        for name, shape in (("blur", (height, width, 3)), ("sharp", (height, width, 3)), ("voxel", (BINS, height, width))):
            values = file.create_dataset(name, (frames, *shape), "f4")
            for frame in range(frames):
                values[frame] = random.random(shape, dtype=np.float32)
    os.replace(path + ".part", path)


def main():
    folder, sequences, *shape = sys.argv[1], *map(int, sys.argv[2:])
    os.makedirs(folder, exist_ok=True)
    for number in range(sequences):
        path = os.path.join(folder, f"{number:03d}.hdf5")
        if not os.path.exists(path):
            write(path, number, *shape)


if __name__ == "__main__":
    main()
