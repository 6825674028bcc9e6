#!/usr/bin/env python3
"""A step of two processes over a slow link: headroom run against PyTorch's DistributedDataParallel, on the TDS-LSTM.

    sudo python3 bench/processes/against_ddp.py --python .venv/bin/python --build build/release [--rate 1gbit] [--rounds 5]

Each process has a network namespace of its own; a pair of veth, held to --rate by tc, joins them. Both sides divide the
same batches and sum their gradients by Gloo. DDP as a user writes it, and tuned: gradients that are views of its
buckets, fused AdamW. All take turns; medians over all rounds, with the smallest and the largest, of rank 0's median
step and of its peak. Bytes beside the gradients: what the ledger counts under gradients above the parameters' size, and
what DDP says of its buckets; what Gloo holds while it sends is in neither. Where a link cannot be made the bench says why and ends.
"""
import contextlib
import json
import os
import subprocess
import sys
import tempfile

from link import Link, NotPermitted

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "models"))
import tds_lstm  # noqa: E402
from training_steps import KEEPS_MEMORY, MIB, ROOT, Headroom, peer, print_ratios, print_table, take_turns  # noqa: E402


@contextlib.contextmanager
def beside(words, folder, environment=None):
    """The other rank, which runs as long as the first: it has to end well."""
    environment = {**os.environ, "XDG_CACHE_HOME": os.path.join(folder, "other-cache"),
                   "HEADROOM_RESERVATIONS": os.path.join(folder, "other-reservations"), **(environment or {})}
    with tempfile.TemporaryFile("w+") as said:
        child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=said, env=environment)
        try:
            yield
            if child.wait(timeout=60) != 0:
                said.seek(0)
                raise SystemExit(f"{' '.join(words)} ended with {child.returncode}:\n{said.read()[-3000:]}")
        finally:
            child.kill()


class TwoProcesses(Headroom):
    def __init__(self, link, *words):
        super().__init__(*words)
        self.link, self.beside_bytes = link, 0

    def command(self, out, settings):
        return self.link.at(0, super().command(out, settings))

    def run(self, steps, settings, keep=None):
        self.link.next_port()
        other = self.link.at(1, super().command("rank 0 names it", {**settings, "train.max_steps": steps}))
        with beside(other, self.folder):
            return super().run(steps, settings, keep)

    def ended(self, run_folder):
        with open(os.path.join(run_folder, "summary.json")) as file:
            gradients = json.load(file)["memory"]["peak_bytes"]["gradients"]
        weights = os.path.join(run_folder, "checkpoints", "last", "model.safetensors")
        with open(weights, "rb") as file:
            header_bytes = 8 + int.from_bytes(file.read(8), "little")
        self.beside_bytes = gradients - (os.path.getsize(weights) - header_bytes)

    def __call__(self, **settings):
        return {**super().__call__(**settings), "beside_bytes": self.beside_bytes}


def ddp(link, words, folder, environment=None):
    link.next_port()
    with beside(link.at(1, words), folder, environment):
        return peer(link.at(0, words), folder, environment)


def measure(args, link):
    with tempfile.TemporaryDirectory(prefix="headroom-bench-") as folder:
        path, data = os.path.join(folder, "bench.toml"), os.path.join(folder, "data")
        with open(path, "w") as file:
            file.write(tds_lstm.experiment(args))
        samples = args.batch * args.accumulate
        headroom = TwoProcesses(link, args.build, folder, path, samples, args.steps)
        subprocess.run([headroom.program, "data", "synth", path], check=True, stdout=subprocess.DEVNULL)
        words = [args.python, os.path.join(ROOT, "bench", "peers", "tds_lstm.py"), data, "--ddp", "--no-validation", "--batch",
                 str(samples)]
        for name in ("network", "window", "stride", "steps", "threads"):
            words += ["--" + name, str(getattr(args, name))]
        return take_turns({"headroom": headroom, "DDP": lambda: ddp(link, words, folder),
                           "DDP tuned": lambda: ddp(link, [*words, "--tuned"], folder, KEEPS_MEMORY)}, args.rounds)


def main():
    parser = tds_lstm.parser()
    parser.description = __doc__
    parser.add_argument("--rate", default="1gbit", help="of the link, as tc has it")
    parser.set_defaults(network="published", window=2290, batch=16, threads=1, steps=15)
    args = parser.parse_args()
    try:
        with Link(args.rate) as link:
            results = measure(args, link)
    except NotPermitted as reason:
        print(f"skipped: two network namespaces with a shaped link cannot be made here: {reason}")
        return
    print(f"{args.network} network, windows of {args.window}, batch {args.batch} x {args.accumulate} in two processes over "
          f"{args.rate}, {args.threads} threads each, {args.rounds} rounds of {args.steps} steps")
    print_table(results)
    for name, runs in results.items():
        print(f"{name:28} {runs[-1]['beside_bytes'] / MIB:.2f} MiB beside the gradients")
    print_ratios(results)


if __name__ == "__main__":
    main()
