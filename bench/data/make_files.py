"""The files that compare.py reads, written with h5py as the field writes them. Whatever is there already stays.

    PYTHON bench/data/make_files.py FOLDER [--small]

emg_contiguous, emg_gzip: sessions of 105 000 records {time, joint_angles[20], emg[16]} (52.5 s at 2 kHz), contiguous and
in gzip with h5py's own chunks. act: episodes of 150 steps with two cameras 480x640 uint8, a chunk for each frame, as ACT's
scripts write them. spike: items of 133.6 MiB, blurred and sharp 720p frames and 32 voxel planes of float32, contiguous.
--small: a quarter of the sessions and episodes and half of the spike items, for trying the bench out.
"""
import argparse
import os

import h5py
import numpy as np

RECORDS = 105_000
RECORD = np.dtype([("time", "<f8"), ("joint_angles", "<f4", (20,)), ("emg", "<f4", (16,))])
STEPS, CAMERAS = 150, ("cam_high", "cam_left_wrist")


def emg_session(number):
    random = np.random.default_rng(number)
    records = np.empty(RECORDS, RECORD)
    seconds = np.arange(RECORDS) / 2000.0
    records["time"] = 1.67e9 + seconds
    loudness = 1.0 + np.sin(seconds / 0.45 + number)
    noise = random.standard_normal((RECORDS, 16), dtype=np.float32)
    records["emg"] = np.round(noise * loudness[:, None] * 40.0) * 0.06  # whole counts of an amplifier
    rates, phases = random.uniform(0.2, 2.2, 20), random.uniform(0.0, 2.0 * np.pi, 20)
    records["joint_angles"] = np.sin(2.0 * np.pi * seconds[:, None] * rates + phases)
    return records


def write_emg(path, number, **storage):
    with h5py.File(path, "w") as file:
        group = file.create_group("emg2pose")
        group.create_dataset("timeseries", data=emg_session(number), **storage)
        group.attrs["sample_rate"] = 2000.0


def write_episode(path, number):
    random = np.random.default_rng(number)
    with h5py.File(path, "w") as file:
        for camera in CAMERAS:
            frames = file.create_dataset(f"observations/images/{camera}", (STEPS, 480, 640, 3), "uint8",
                                         chunks=(1, 480, 640, 3))
            for step in range(STEPS):
                frames[step] = random.integers(0, 256, (480, 640, 3), dtype=np.uint8)
        file["observations/qpos"] = random.standard_normal((STEPS, 14))
        file["action"] = random.standard_normal((STEPS, 14))


def write_spikes(path, number, items):
    random = np.random.default_rng(number)
    with h5py.File(path, "w") as file:
        for name, shape in (("blur", (720, 1280, 3)), ("sharp", (720, 1280, 3)), ("voxel", (32, 720, 1280))):
            values = file.create_dataset(name, (items, *shape), "f4")
            for item in range(items):
                values[item] = random.random(shape, dtype=np.float32)


def make(folder, kind, count, write):
    """Whole files only: each is written under another name first."""
    os.makedirs(os.path.join(folder, kind), exist_ok=True)
    for number in range(count):
        path = os.path.join(folder, kind, f"{number:03d}.hdf5")
        if os.path.exists(path):
            continue
        write(path + ".part", number)
        os.replace(path + ".part", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--small", action="store_true")
    words = parser.parse_args()
    sessions, episodes, items = (4, 1, 2) if words.small else (16, 4, 4)
    make(words.folder, "emg_contiguous", sessions, write_emg)
    make(words.folder, "emg_gzip", sessions, lambda path, n: write_emg(path, n, chunks=True, compression="gzip"))
    make(words.folder, "act", episodes, write_episode)
    make(words.folder, "spike", 2, lambda path, n: write_spikes(path, n, items))


if __name__ == "__main__":
    main()
