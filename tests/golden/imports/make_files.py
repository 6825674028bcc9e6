#!/usr/bin/env python3
"""Writes the files beside it, as numpy, pyarrow and ffmpeg do: tests know their values by the same formulas.

    tests/golden/imports/make_files.py        needs numpy and pyarrow, and ffmpeg in PATH
"""
import pathlib
import subprocess

import numpy
import pyarrow
import pyarrow.parquet

FOLDER = pathlib.Path(__file__).parent


def counting(*shape):
    return numpy.arange(numpy.prod(shape), dtype="f8").reshape(shape) / 4 - 3


arrays = {
    "emg": counting(200, 3).astype("<f4"),
    "swapped": counting(20, 2).astype(">f8"),
    "columns": numpy.asfortranarray(counting(30, 2, 4)),
    "half": counting(8, 2).astype("f2"),
    "good": counting(16) > 0,
    "index": numpy.arange(40, dtype="i8"),
    "rate": numpy.float64(2000),
    "labels": numpy.array(["rest", "grasp"]),
    "nothing": numpy.zeros((0, 3)),
}
numpy.savez(FOLDER / "arrays.npz", **arrays)
numpy.savez_compressed(FOLDER / "arrays_deflated.npz", **arrays)
numpy.save(FOLDER / "columns.npy", arrays["columns"])

rows = 250
table = pyarrow.table({
    "observation.state": pyarrow.array(list(counting(rows, 3).astype("f4")), type=pyarrow.list_(pyarrow.float32())),
    "action": pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(counting(rows * 2)), 2),
    "timestamp": counting(rows),
    "frame": numpy.arange(rows),
    "done": numpy.arange(rows) % 50 == 49,
    "task": ["grasp"] * rows,
    "force": pyarrow.array([None if i == 3 else float(i) for i in range(rows)]),
})
pyarrow.parquet.write_table(table, FOLDER / "episode.parquet", row_group_size=100)

# A grey level for each frame: 0, 10, 20, ... without loss.
frames = numpy.repeat(numpy.arange(12, dtype="u1") * 10, 16 * 24 * 3).tobytes()
subprocess.run(["ffmpeg", "-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", "24x16", "-r", "10", "-i", "-",
                "-c:v", "ffv1", "-pix_fmt", "bgr0", FOLDER / "grey.mkv"], input=frames, check=True)
