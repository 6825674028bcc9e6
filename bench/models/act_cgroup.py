#!/usr/bin/env python3
"""act_policy at batch 8 in a memory cgroup in which the nn.Module of bench/peers/act_policy.py is killed at batch 8.

    sudo python3 bench/models/act_cgroup.py --python .venv/bin/python --build build/release [--share 0.75]

The cgroup holds a share of what the peer needs at its peak. Headroom trains the same batches twice: in it, and without a limit; told
is how far the two runs' weights lie apart, relative to the largest. Needs root. Exits 1 when Headroom does not complete.
"""
import argparse
import os
import subprocess
import sys
import tempfile

from act_policy import EXPERIMENT, MAKE_DATA
from training_steps import MIB, ROOT, process_tree

sys.path.insert(0, os.path.join(ROOT, "bench", "memory"))
from cgroup import Unavailable, run_in_cgroup  # noqa: E402
from headroom_runs import largest_difference, last_weights, summary_of  # noqa: E402

def headroom(args, folder, name, limit_bytes):
    out = os.path.join(folder, name)
    words = [os.path.join(ROOT, args.build, "bin", "headroom"), "run", os.path.join(folder, "bench.toml"), "--out", out]
    environment = {"XDG_CACHE_HOME": os.path.join(folder, "cache"), "HEADROOM_RESERVATIONS": os.path.join(folder, "held")}
    return run_in_cgroup(words, limit_bytes, environment=environment), summary_of(out), out


def told(name, ended, more=""):
    killed = f", {ended.oom_kills} processes killed" if ended.oom_kills else ""
    print(f"{name:34} exit {ended.exit_code}{killed}, peak {ended.peak_bytes / MIB:.0f} MiB, {ended.seconds:.0f} s{more}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--share", type=float, default=0.75)
    for name, default in (("batch", 8), ("cameras", 2), ("height", 120), ("width", 160), ("chunk", 20), ("threads", 2), ("steps", 6)):
        parser.add_argument("--" + name, type=int, default=default)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headroom-bench-") as folder:
        data = os.path.join(folder, "data.hdf5")
        subprocess.run([args.python, "-c", MAKE_DATA, data, str(8 * args.batch), str(args.cameras), str(args.height),
                        str(args.width), "100"], check=True)
        with open(os.path.join(folder, "bench.toml"), "w") as file:
            file.write(EXPERIMENT.format(**vars(args)))
        words = [args.python, os.path.join(ROOT, "bench", "peers", "act_policy.py"), data, "--batch", str(args.batch), "--steps",
                 str(args.steps), "--chunk", str(args.chunk), "--threads", str(args.threads)]
        free = run_in_cgroup(words)
        told("nn.Module, no limit", free)
        limit = int(args.share * free.peak_bytes)
        told(f"nn.Module in {limit / MIB:.0f} MiB", run_in_cgroup(words, limit))
        whole, _, whole_out = headroom(args, folder, "whole", None)
        told("Headroom, no limit", whole)
        within, summary, out = headroom(args, folder, "within", limit)
        told(f"Headroom in {limit / MIB:.0f} MiB", within, within.exit_code and ": " + within.err.strip().splitlines()[-1] or "")
        if whole.exit_code != 0 or within.exit_code != 0:
            sys.exit(1)
        difference = largest_difference(last_weights(out), last_weights(whole_out))
        retries = summary["memory"]["retries"]["train"]
        print(f"on {process_tree.processor()}")
        print(f"after {args.steps} steps their weights differ by {difference} of the largest; in the cgroup micro-batches of "
              f"{retries['micro_batch']}, {retries['halved']} times halved")


if __name__ == "__main__":
    try:
        main()
    except Unavailable as reason:
        sys.exit(str(reason))
