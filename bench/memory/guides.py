"""The guides' memory figures, measured: which hold, and by how much the others are off.

    python3 bench/memory/guides.py --python .venv/bin/python [--build build/release] [--largest-gib 4]

--python is a Python with numpy and h5py. No root is needed. Four tables:

  the end of an epoch   11014 batches x 16 x 500 x 20 predictions and targets, kept and concatenated, cut to the first
                        1000, sampled, and as sums; in Python and as metrics.mode of Headroom. Measured at two sizes and
                        at the largest that stays within --largest-gib; 11014 follows from the line through the last two.
  accumulation          64 x 1, 16 x 4 and 8 x 8 of the preset `default`: peak and speed.
  opening a set         recordings read into memory or left where they are; mean and deviation from everything or from a
                        sample. At two sizes of set. Headroom: what the run holds above one on a set of two seconds.
  what they say         the guides' figures beside these.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

from headroom_runs import MIB, Bench, mib, print_table, summary_of

GIB = 1 << 30
BATCHES, KEPT = 11014, 1000
EMG_SHARE = 16 / (16 + 20)  # of a recording's values; the synthetic ones have 16 channels and 20 angles in float32
ROUNDS = 5
SAMPLED = 10000  # max_samples_for_normalize of the preset `default`
ARRAY = 16 * 500 * 20 * 4  # bytes of one batch's predictions in float32

# One convolution of width 1: predictions are 500 x 20, as the guides count them, and cost next to nothing.
THIN_MODEL = {"model.options.conv_blocks": "[{ out_channels = 20, kernel_size = 1 }]", "model.options.tds_stages": "[]",
              "model.options.pose_module": "pose", "data.options.stride": 4, "data.options.jitter": "false",
              "train.batch_size": 16, "eval.every_epochs": 1, "memory.log_every": 0}


def run(bench, settings):
    words, out = bench.words(settings)
    ended = subprocess.run(words, cwd=bench.folder, env={**os.environ, **bench.environment}, capture_output=True, text=True)
    if ended.returncode != 0:
        raise SystemExit(f"{' '.join(words)} ended with {ended.returncode}:\n{ended.stderr}")
    return summary_of(out)


def python_epoch(options, mode, batches):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "epoch_end.py")
    ended = subprocess.run([options.python, script, mode, str(batches)], capture_output=True, text=True, check=True)
    return json.loads(ended.stdout)


def headroom_epoch(bench, mode, batches):
    settings = {**THIN_MODEL, "metrics.mode": mode, "train.max_steps": batches, "metrics.train_batches": KEPT}
    if mode != "sampled":
        del settings["metrics.train_batches"]
    summary = run(bench, settings)
    return {"peak_bytes": summary["memory"]["peak_bytes"]["metrics"], "seconds": summary["train_seconds"]}


def line_to(batches, first, second):
    """Bytes at `batches`, by the line through two measured (batches, bytes)."""
    slope = (second[1] - first[1]) / (second[0] - first[0])
    return max(0.0, second[1] + slope * (batches - second[0]))


def epoch_rows(name, measure, sizes, keeps_all):
    points = [(n, measure(n)) for n in sizes]
    last = [(n, said["peak_bytes"]) for n, said in points[-2:]]
    at_the_end = line_to(BATCHES, *last) if keeps_all else last[-1][1]
    print(f"  {name}: measured at {', '.join(str(n) for n in sizes)}", flush=True)
    return at_the_end, [name] + [f"{n}: {mib(said['peak_bytes'])}" for n, said in points] + [f"{at_the_end / GIB:.2f}",
                                 f"{1e3 * points[-1][1]['seconds'] / points[-1][0]:.2f}"]


def epoch_end(options, bench, found):
    largest = int(options.largest_gib * GIB / (6 * ARRAY))  # both kept, both concatenated, and two to compare them
    small = [min(200, largest // 4), min(400, largest // 2)]
    # What keeps 1000 batches is flat from there on.
    flat = sorted({KEPT, max(KEPT + 200, largest)})
    rows = []
    for mode, sizes in (("concatenate", [*small, largest]), ("first", [small[0], *flat]), ("reservoir", [small[0], *flat]),
                        ("online", [*small, largest])):
        at_the_end, row = epoch_rows(f"python, {mode}", lambda n, mode=mode: python_epoch(options, mode, n), sizes,
                                     mode == "concatenate")
        found[mode] = at_the_end
        rows.append(row)
    first, reservoir, whole = (python_epoch(options, mode, 2 * KEPT)["mse"] for mode in ("first", "reservoir", "online"))
    found["bias"] = (first / whole - 1, reservoir / whole - 1)
    for mode in ("full", "sampled", "online"):
        sizes = [100, 200, 400]
        at_the_end, row = epoch_rows(f"headroom, {mode}", lambda n, mode=mode: headroom_epoch(bench, mode, n), sizes,
                                     mode == "full")
        found["headroom " + mode] = at_the_end
        rows.append(row)
    print(f"\nThe end of an epoch: batches: MiB for it, GiB at {BATCHES}, milliseconds a batch (python: metrics alone; "
          "headroom: the whole step)")
    print_table(["way", "small", "more", "largest", f"{BATCHES}, GiB", "ms a batch"], rows)


def accumulation(bench, found):
    idle = run(bench, {**THIN_MODEL, "train.batch_size": 1, "train.max_steps": 1})["memory"]["measured_peak_bytes"]
    ways, peaks, speeds = ((64, 1), (16, 4), (8, 8)), {}, {}
    for _ in range(ROUNDS):
        for batch, count in ways:
            summary = run(bench, {"model.options.tds_stages": "[{ in_conv_kernel_width = 5, in_conv_stride = 2, num_blocks = 2, "
                                  "channels = 24, feature_width = 16, kernel_width = 21 }]",
                                  "model.options.decoder_hidden_size": 128, "model.options.decoder_num_layers": 2,
                                  "train.batch_size": batch, "train.gradient_accumulation_steps": count, "train.max_steps": 4,
                                  "eval.every_epochs": 1})
            peaks.setdefault((batch, count), []).append(summary["memory"]["measured_peak_bytes"])
            samples = summary["steps"] * summary["window_samples"]
            speeds.setdefault((batch, count), []).append(samples / summary["train_seconds"])
    whole, rows, middle = ways[0], [], {}
    for way in ways:
        ratios = [a / b for a, b in zip(speeds[way], speeds[whole], strict=True)]
        middle[way] = statistics.median(peaks[way]), statistics.median(ratios)
        rows.append([f"{way[0]} x {way[1]}", mib(middle[way][0]), mib(middle[way][0] - idle),
                     f"{middle[way][0] / middle[whole][0]:.2f}", f"{statistics.median(speeds[way]):.0f}",
                     f"{middle[way][1]:.2f} ({min(ratios):.2f}..{max(ratios):.2f})"])
    found["accumulation"] = middle[whole][0], middle[(16, 4)][0], middle[(16, 4)][1]
    print(f"\nAccumulation: the same windows of 64 samples, medians of {ROUNDS}; a trainer that does next to nothing holds "
          f"{mib(idle)} MiB")
    print_table(["batch x accumulation", "peak MiB", "above idle", "of 64 x 1", "samples/s", "of 64 x 1"], rows)


def python_opening(options, mode, data):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "opening.py")
    ended = subprocess.run([options.python, script, mode, data, str(SAMPLED)], capture_output=True, text=True, check=True)
    return json.loads(ended.stdout)


def headroom_opening(options, seconds, normalize):
    """The peak of a run of one step, and its set's folder: kept open by the caller's Bench."""
    bench = Bench(options.build, seconds)
    settings = {**THIN_MODEL, "train.batch_size": 1, "train.max_steps": 1, "data.normalize": normalize,
                "data.max_samples_for_normalize": SAMPLED, "data.options.stride": 500, "data.options.skip_ik_failures": "false"}
    if normalize != "sampled":
        del settings["data.max_samples_for_normalize"]
    summary = run(bench, settings)
    return summary["memory"]["measured_peak_bytes"], bench


def opening(options, found):
    base, small = headroom_opening(options, 2.0, "off")
    small.__exit__()
    rows, shares = [], {}
    for seconds in (20.0, 80.0):
        peaks = {}
        for normalize in ("off", "sampled", "exact"):
            peaks[normalize], bench = headroom_opening(options, seconds, normalize)
            if normalize != "exact":
                bench.__exit__()
        with bench:
            size = sum(path.stat().st_size for path in pathlib.Path(bench.data).glob("*.hdf5"))
            python = {mode: python_opening(options, mode, bench.data) for mode in ("eager", "lazy", "all", "sampled")}
        rows += [[mib(size), f"python, {mode}", mib(said["peak_bytes"]), f"{said['seconds']:.2f}"] for mode, said in python.items()]
        rows += [[mib(size), f"headroom, normalize {name}", mib(max(0, peak - base)), "-"] for name, peak in peaks.items()]
        shares = {mode: said["peak_bytes"] / size for mode, said in python.items()}
        found["opening"] = shares, {name: peak - base for name, peak in peaks.items()}, python
    print(f"\nOpening a set; {SAMPLED} records where mean and deviation come from a sample")
    print_table(["set, MiB", "way", "MiB", "seconds"], rows)


def what_they_say(found):
    gib = lambda size: f"{size / GIB:.2f} GiB"
    arrays = BATCHES * ARRAY
    peak64, peak16, speed = found["accumulation"]
    shares, ours, python = found["opening"]
    rows = [
        ["predictions of an epoch (E13)", "1.5 GB in all, 704 MB an array", f"{gib(arrays)} an array",
         f"{arrays / (704 * MIB):.1f} x theirs"],
        ["  both, concatenated, compared", "-", f"{gib(found['concatenate'])} by the line, {gib(6 * arrays)} by arithmetic",
         f"{found['concatenate'] / (1.5 * GIB):.1f} x theirs"],
        [f"  cut to {KEPT} batches (E13)", "150 MB", gib(found["first"]), f"{found['first'] / (150 * MIB):.1f} x theirs"],
        ["  the error it reports", "that of the epoch", f"{found['bias'][0]:+.0%} (first {KEPT} of {2 * KEPT}, while learning)",
         f"uniform sample {found['bias'][1]:+.1%}"],
        ["epoch end, full to online (E10)", "6 GB to 2 GB", f"{gib(found['headroom full'])} to "
         f"{found['headroom online'] / 1024:.0f} KiB of metrics", "the rest of theirs is not metrics"],
        ["accumulation 16 x 4 (E2): memory", "4 GB to 1 GB: 25 %", f"{peak16 / peak64:.0%} ({mib(peak64)} to {mib(peak16)} MiB)",
         "the fixed part does not shrink"],
        ["accumulation 16 x 4 (E2): speed", "85 %", f"{speed:.0%}", ""],
        ["lazy recordings (E7)", "4 GB to 50 MB", f"4 GB of files: {gib(4 * GIB * shares['eager'])} to "
         f"{mib(python['lazy']['peak_bytes'])} MiB; headroom {mib(max(0, ours['off']))} MiB", f"{python['lazy']['peak_bytes'] / (50 * MIB):.1f} x theirs"],
        ["sampled normalisation (E8)", "2 GB to 100 MB", f"2 GB of EMG: {gib(2 * GIB * shares['all'] / EMG_SHARE)} to "
         f"{mib(python['sampled']['peak_bytes'])} MiB; headroom {mib(max(0, ours['sampled']))} MiB, exact "
         f"{mib(max(0, ours['exact']))} MiB", f"{python['sampled']['peak_bytes'] / (100 * MIB):.1f} x theirs"],
    ]
    print("\nWhat the guides say, and what was measured")
    print_table(["figure", "guides", "here", "off by"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="a Python with numpy and h5py")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--largest-gib", type=float, default=4.0, help="the most that keeping everything may take here")
    options = parser.parse_args()
    found = {}
    with Bench(options.build) as bench:
        epoch_end(options, bench, found)
        accumulation(bench, found)
        opening(options, found)
        what_they_say(found)


if __name__ == "__main__":
    main()
