"""What a Python trainer holds after opening a set of recordings and measuring its normalisation, as the guides write it.

    python bench/memory/opening.py MODE FOLDER [SAMPLES]      MODE: eager | lazy | all | sampled

eager reads every recording into memory; lazy keeps the files open and knows their lengths; all concatenates every
recording's EMG for mean and deviation; sampled reads SAMPLES evenly spaced records. Prints JSON. Needs numpy and h5py.
"""
import glob
import json
import os
import resource
import sys
import time

import h5py
import numpy as np

DATASET = "/emg2pose/timeseries"


def peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def mean_and_std(emg):
    return emg.mean(axis=0), emg.std(axis=0)


def main():
    mode, paths = sys.argv[1], sorted(glob.glob(os.path.join(sys.argv[2], "*.hdf5")))
    before, start = peak_bytes(), time.monotonic()
    sets = [h5py.File(path)[DATASET] for path in paths]
    length = sum(len(one) for one in sets)
    if mode == "eager":
        held = [(records["emg"].astype(np.float32), records["joint_angles"].astype(np.float32))
                for records in (one[:] for one in sets)]
    elif mode == "all":
        held = mean_and_std(np.concatenate([one[:]["emg"] for one in sets]))
    elif mode == "sampled":
        wanted = np.unique(np.linspace(0, length - 1, int(sys.argv[3])).astype(np.int64))
        rows, first = [], 0
        for one in sets:
            rows += [one[int(at - first)]["emg"] for at in wanted[(wanted >= first) & (wanted < first + len(one))]]
            first += len(one)
        held = mean_and_std(np.stack(rows))
    else:
        held = sets
    print(json.dumps({"peak_bytes": peak_bytes() - before, "seconds": time.monotonic() - start, "records": length,
                      "held": len(held)}))


if __name__ == "__main__":
    main()
