"""What the benchmarks of bench/memory share: an experiment, a run of it, and what the run left. Plain Python 3."""
import array
import glob
import json
import os
import shutil
import struct
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench", "data"))
import process_tree  # noqa: E402

MIB = 1 << 20

EXPERIMENT = """extends = "{root}/experiments/emg/quick_demo.toml"
[experiment]
name = "bench"
seed = 1
threads = 2
device = "cpu"
[data.options]
path = "data"
stride = 25
[data.synth]
sessions = 8
seconds = {seconds}
[data]
num_workers = 0
max_samples_for_normalize = 200
[train]
epochs = 1
schedule = {{ name = "constant", warmup_epochs = 0 }}
[checkpoint]
keep = 1
"""


class Bench:
    """A folder with bench.toml and its synthetic data; removed at the end of the with."""

    def __init__(self, build, seconds=4.0):
        self.headroom = os.path.join(ROOT, build, "bin", "headroom")
        self.trainer = os.path.join(ROOT, build, "libexec", "headroom-train")
        self.plugin = os.path.join(ROOT, build, "lib", "headroom", "tds_lstm.so")
        if not os.path.exists(self.headroom):
            raise SystemExit(f"{self.headroom} is not built: build the target headroom_app, or name the folder with --build")
        self.folder = tempfile.mkdtemp(prefix="headroom-bench-")
        self.data = os.path.join(self.folder, "data")
        # Neither the user's cache nor the reservations of other runs of this machine belong into a measurement.
        self.environment = {"XDG_CACHE_HOME": os.path.join(self.folder, "cache"),
                            "HEADROOM_RESERVATIONS": os.path.join(self.folder, "reservations")}
        with open(os.path.join(self.folder, "bench.toml"), "w") as file:
            file.write(EXPERIMENT.format(root=ROOT, seconds=seconds))
        self.runs = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def words(self, settings):
        """The command of a run, and the folder its run folder will be below."""
        self.runs += 1
        out = os.path.join(self.folder, f"out-{self.runs}")
        words = [self.headroom, "run", os.path.join(self.folder, "bench.toml"), "--out", out]
        for key, value in settings.items():
            words += ["--set", f"{key}={value}"]
        return words, out


def run_folder(out):
    found = glob.glob(os.path.join(out, "*", "*", ""))
    return found[0] if found else None


def summary_of(out):
    folder = run_folder(out)
    path = folder and os.path.join(folder, "summary.json")
    if not path or not os.path.exists(path):
        return None
    with open(path) as file:
        return json.load(file)


def last_weights(out):
    """Floating-point tensors of the last checkpoint, by name."""
    with open(os.path.join(run_folder(out), "checkpoints", "last", "model.safetensors"), "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    weights = {}
    for name, entry in header.items():
        code = {"F32": "f", "F64": "d"}.get(entry.get("dtype"))
        if code:
            weights[name] = array.array(code, data[slice(*entry["data_offsets"])])
    return weights


def largest_difference(ours, theirs):
    """Over all weights, relative to the largest one."""
    if ours.keys() != theirs.keys() or not ours:
        raise ValueError("the runs do not hold the same weights")
    if ours == theirs:
        return 0.0
    largest = max(abs(x) for values in theirs.values() for x in values)
    return max(abs(a - b) for name in ours for a, b in zip(ours[name], theirs[name], strict=True)) / largest


def mib(size):
    return f"{size / MIB:.0f}"


def print_table(heading, rows):
    print(f"on {process_tree.processor()}")
    widths = [max(len(str(row[i])) for row in [heading, *rows]) for i in range(len(heading))]
    for row in [heading, ["-" * w for w in widths], *rows]:
        print("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(), flush=True)
