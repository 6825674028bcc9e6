"""The rows of the comparison: which files, who reads them and how, what is aimed at, what the machine could do."""
import glob
import os

MIB = 1 << 20
EMG_DATASET, EMG_RECORD_BYTES, WINDOW, CHUNK_RECORDS = "/emg2pose/timeseries", 152, 500, 206
WINDOW_BYTES = WINDOW * EMG_RECORD_BYTES
FRAME_BYTES = 480 * 640 * 3
SPIKE_VALUES = 2 * 3 + 32  # of a pixel

EMG = {"plugin": "emg_hdf5", "options": {"window_size": WINDOW, "stride": 1, "skip_ik_failures": False}}
ACT = {"plugin": "hdf5", "options": {"stride": 1, "fields": [
    {"name": "high", "dataset": "/observations/images/cam_high", "rows": "row"},
    {"name": "left", "dataset": "/observations/images/cam_left_wrist", "rows": "row"},
    {"name": "qpos", "dataset": "/observations/qpos", "rows": "row"},
    {"name": "action", "dataset": "/action", "length": 150, "pad": "zeros", "pad_mask": "is_pad"}]}}
SPIKE = {"plugin": "hdf5", "options": {"stride": 1, "fields": [
    {"name": "blur", "dataset": "blur", "rows": "row", "axes": ["height", "width", "colour"]},
    {"name": "sharp", "dataset": "sharp", "rows": "row", "axes": ["height", "width", "colour"]},
    {"name": "voxel", "dataset": "voxel", "rows": "row", "axes": ["bin", "height", "width"]}]}}
CROPS = {"plugin": "hdf5", "options": {**SPIKE["options"], "crop": [256, 256]}}


def case(name, title, files, data, headroom, batch, aims, **more):
    """`aims`: {contender: Headroom is to be so many times as fast}. `ceilings`: {what: (measured rate, per item)}."""
    return {"name": name, "title": title, "files": files, "data": data, "headroom": headroom, "batch": batch, "aims": aims,
            "order": "global", "metric": "samples_per_s", "cold": False, "chunk_cache_bytes": 64 * MIB, "settings": {},
            "block_bytes": WINDOW_BYTES, "threads": 2, "dataset": "-", "most_samples": 0, "warm_up": 64, "guides": False,
            "ceilings": {}, **more}


CASES = [
    case("emg_contiguous", "EMG contiguous, warm, batch 16, global", "emg_contiguous", "emg", EMG, 16,
         {"plain w2": 20, "plain w0": 12, "tuned": 3},
         ceilings={"pread": ("pread_bytes_per_s", WINDOW_BYTES), "memcpy": ("memcpy_bytes_per_s", WINDOW_BYTES)}),
    case("emg_gzip_grouped", "EMG gzip, grouped, 64 MB", "emg_gzip", "emg", EMG, 16,
         {"plain w2": 30, "plain w0": 30, "guides' recipe": 150, "tuned": 15}, order="grouped", guides=True,
         dataset=EMG_DATASET, ceilings={"inflate each chunk once": ("chunks_per_s", 1.0 / CHUNK_RECORDS),
                                        "memcpy": ("memcpy_bytes_per_s", WINDOW_BYTES)}),
    case("emg_gzip_global", "EMG gzip, global, per CPU second", "emg_gzip", "emg", EMG, 16,
         {"plain w2": 3, "plain w0": 3, "tuned": 3}, metric="samples_per_cpu_s", dataset=EMG_DATASET,
         ceilings={"inflate": ("chunks_per_cpu_s", 1.0 + (WINDOW - 1) / CHUNK_RECORDS)}),
    case("emg_cold", "EMG cold", "emg_contiguous", "emg", EMG, 16, {"plain w0": 3, "tuned": 2}, cold=True,
         most_samples=1600, threads=8, ceilings={"pread, 8 threads": ("pread_bytes_per_s", WINDOW_BYTES)}),
    case("act", "ACT-like episodes, uint8", "act", "act", ACT, 8, {"plain w2": 50, "plain w0": 50, "tuned": 20},
         block_bytes=FRAME_BYTES, warm_up=8, ceilings={"pread": ("pread_bytes_per_s", 2 * FRAME_BYTES),
                                                       "memcpy": ("memcpy_bytes_per_s", 2 * FRAME_BYTES)}),
    case("spike", "spike items, whole", "spike", "spike", SPIKE, 1, {"plain w2": 5, "plain w0": 5, "tuned": 4},
         block_bytes=16 * MIB, warm_up=4, ceilings={"pread": ("pread_bytes_per_s", 720 * 1280 * 4 * SPIKE_VALUES),
                                                    "memcpy": ("memcpy_bytes_per_s", 720 * 1280 * 4 * SPIKE_VALUES)}),
    case("spike_crops", "spike items, 256x256 crops", "spike", "spike", CROPS, 1,
         {"plain w2": 30, "plain w0": 30, "tuned": 5}, settings={"crop": 256}, block_bytes=256 * 1024, warm_up=4,
         ceilings={"memcpy": ("memcpy_bytes_per_s", 256 * 256 * 4 * SPIKE_VALUES)}),
]


def contenders(case):
    """{name: settings of python_loader.py, of loader_bench ("headroom ...") or headroom_loader.py}, in the order of the table."""
    def python(style, workers, **more):
        return {"style": style, "workers": workers, "order": case["order"], **more}

    result = {"plain w0": python("plain", 0), "plain w2": python("plain", 2)}
    if case["guides"]:
        result["guides' recipe"] = python("plain", 2, order="global")
    result["tuned w0"], result["tuned w2"] = python("tuned", 0), python("tuned", 2)
    result["headroom"], result["headroom map"] = {"memory_map": False}, {"memory_map": True}
    for name, mapped in (("from Python", False), ("from Python map", True)):
        result[name] = {"order": case["order"], "memory_map": mapped}
    return result


def python_settings(case, contender, folder, seconds):
    return {"data": case["data"], "files": files_of(case, folder), "batch": case["batch"], "cold": case["cold"],
            "seconds": seconds, "warm_up": case["warm_up"], "most_samples": case["most_samples"],
            "chunk_cache_bytes": case["chunk_cache_bytes"], **case["settings"], **contender}


def headroom_settings(case, contender, build, folder, seconds):
    return {"plugin": os.path.join(build, "lib", "headroom", case["headroom"]["plugin"] + ".so"),
            "batch_size": case["batch"], "num_workers": 2, "shuffle": case["order"], "cold": case["cold"],
            "seconds": seconds, "warm_up": case["warm_up"], "most_samples": case["most_samples"],
            "chunk_cache_size": case["chunk_cache_bytes"], **contender,
            "options": {"path": os.path.join(folder, case["files"]), **case["headroom"]["options"]}}


def from_python_settings(case, contender, build, folder, seconds):
    headroom = headroom_settings(case, {}, build, folder, seconds)
    return {**python_settings(case, contender, folder, seconds), "source": headroom["plugin"], "options": headroom["options"]}


def files_of(case, folder):
    return sorted(glob.glob(os.path.join(folder, case["files"], "*.hdf5")))
