#!/usr/bin/env python3
"""Bytes a window costs before anything is read: the index and the order of an epoch, of the same sessions cut into
windows every 500 records and every record.

    python3 bench/data/index_memory.py --python VENV/bin/python [--build build/release] --folder FOLDER

FOLDER is compare.py's. Python keeps a list of (session, start) and a permuted list of numbers, as DataLoader's sampler
makes it; the difference of the two memories is divided by the difference of the two numbers of windows.
"""
import argparse
import os

import cases
from compare import ROOT, Bench

STRIDES = (500, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--folder", required=True)
    words = parser.parse_args()
    words.quick, words.seconds = True, 0.5
    bench, emg = Bench(words, words.folder), cases.CASES[0]
    found = {"plain w0": [], "headroom": []}
    for stride in STRIDES:
        case = {**emg, "settings": {"stride": stride}, "headroom": {**emg["headroom"], "options": {
            **emg["headroom"]["options"], "stride": stride}}}
        found["plain w0"].append(bench.python_loader(case, cases.contenders(case)["plain w0"]))
        found["headroom"].append(bench.headroom(case, {}))
    for name, (few, many) in found.items():
        windows = many["samples_per_epoch"] - few["samples_per_epoch"]
        each = (many["anonymous_bytes"] - few["anonymous_bytes"]) / windows
        print(f"{name:<10}{windows:>10} windows more: {each:.2f} bytes a window")


if __name__ == "__main__":
    main()
