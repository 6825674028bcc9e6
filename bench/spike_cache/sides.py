"""One run of either side: a DataLoader with the guides' cache, or loader_bench with Headroom's."""
import glob
import json
import os
import subprocess
import sys
import tempfile

from memory_curve import watched, within

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "bench", "data"))
import cases  # noqa: E402
from compare import toml  # noqa: E402

WORKERS = 2


def files_of(folder):
    return sorted(glob.glob(os.path.join(folder, "*.hdf5")))


def plugin_of(build, name):
    return os.path.join(build, "lib", "headroom", name + ".so")


def options_of(source, folder, clip=1):
    if source == "hdf5":
        rows = {"rows": "window", "length": clip} if clip > 1 else {"rows": "row"}
        return {"path": folder, "stride": 1, "jitter": False, "fields": [{**field, **rows} for field in cases.SPIKE["options"]["fields"]]}
    return {"path": folder, "clip_length": clip, "random_flip": False, "random_crop": False, "voxel_transform": "none"}


def loader_bench(build, settings):
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.writelines(f"{key} = {toml(value)}\n" for key, value in settings.items())
        file.flush()
        return watched([os.path.join(build, "bench", "loader_bench"), file.name])


def ours(build, source, folder, items, cache_bytes, epochs):
    """An epoch that fills the cache, and those measured."""
    out, points = loader_bench(build, {
        "plugin": plugin_of(build, source), "batch_size": 1, "num_workers": WORKERS, "shuffle": "global", "normalize": "off",
        "cache_size": cache_bytes, "warm_up": items, "seconds": 1e9, "most_samples": epochs * items, "measure_waits": False,
        "options": options_of(source, folder)})
    told = json.loads(out.splitlines()[-1])
    cache = told["cache"]
    reads = cache["hits_measured"] + cache["misses_measured"]
    curve = within(points, told["loop_began"], told["loop_ended"], told["pss_at_start_bytes"])
    return {"samples_per_s": told["samples_per_s"], "samples_per_cpu_s": told["samples_per_cpu_s"], "curve": curve,
            "hit_rate": cache["hits_measured"] / reads if reads else 0.0}


def theirs(python, workers, folder, cache_bytes, epochs):
    settings = {"files": files_of(folder), "workers": workers, "cache_bytes": cache_bytes, "epochs": epochs, "order": "global"}
    out, points = watched([python, os.path.join(HERE, "cached_loader.py"), json.dumps(settings)])
    told = json.loads(out.splitlines()[-1])
    return {**told, "curve": within(points, told["began"], told["ended"], told["baseline_bytes"])}


def make(python, folder, *shape):
    subprocess.run([python, os.path.join(HERE, "make_sequences.py"), folder, *map(str, shape)], check=True)
