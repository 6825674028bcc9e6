#!/usr/bin/env python3
"""The nn.Modules of bench/peers in Headroom's runner (model.plugin = "python"), against the C++ plugins of the same networks and
against the modules in a plain loop: time and peak memory of whole training steps, all taking turns.

    python3 bench/models/python_modules.py --python .venv/bin/python [--build build/release] [--only act] [--rounds 5]

The modules are as they stand in bench/peers; the *_module.py beside them say how a batch goes in and what its loss is. A case has the
data, the batch and the threads of the bench of its model in this folder. Medians over all rounds, with the smallest and the largest,
of each round's median step and of its peak, the largest resident size of the whole process.
"""
import argparse
import os
import re
import sys
import tempfile

import act_policy
import spike_vrt
import tds_lstm
from training_steps import ROOT, Headroom, peer, print_ratios, print_table, take_turns

MODULE = """[model]
plugin = "python"
[model.options]
python = "{python}"
file = "{root}/bench/peers/{file}"
class = "net"
args = {{ {arguments} }}
inputs = {inputs}
loss = "{loss}"
"""


def tds(options):
    """What MODULE takes of a TDS-LSTM's options."""
    return {"file": "tds_lstm_module.py", "arguments": f'network = "{options.network}"', "inputs": ["emg", "joint_angles", "valid"],
            "loss": "mae" if options.network == "published" else "mse_mae"}


def act(options):
    return {"file": "act_policy_module.py", "arguments": f"chunk = {options.chunk}", "inputs": ["image", "qpos", "action", "is_pad"],
            "loss": "loss"}


def vrt(options):
    names = ("embed", "depth", "heads", "deformable_groups", "drop_path")
    return {"file": "spike_vrt_module.py", "arguments": ", ".join(f"{name} = {getattr(options, name)}" for name in names),
            "inputs": ["blur"], "loss": "loss"}


CASES = {
    "tds quick, batch 16, 1 thread": (tds_lstm, tds, ["--batch", "16", "--threads", "1"]),
    "tds published, T 2290, 2 threads": (tds_lstm, tds, ["--network", "published", "--window", "2290", "--batch", "16", "--steps", "12"]),
    "act 120x160, batch 2": (act_policy, act, ["--batch", "2"]),
    "vrt reduced": (spike_vrt, vrt, []),
}


def with_module(experiment, python, module):
    """The bench's experiment with the module in place of its model. What the bench extends has options of the model, too: what is
    needed of it is said here."""
    sections = re.split(r"(?m)^(?=\[[a-z.]+\]$)", experiment)[1:]
    kept = "".join(section for section in sections if not section.startswith("[model"))
    if "extends" in experiment:
        kept = kept.replace("[data]\n", '[data]\nsource = "emg_hdf5"\n').replace("[train]\n", "[train]\nclip_norm = 1.0\n")
    return MODULE.format(python=python, root=ROOT, **module) + kept


def measure(bench, module_of, words, options):
    case = bench.parser().parse_args(["--python", options.python, "--build", options.build, *words])
    with tempfile.TemporaryDirectory(prefix="headroom-bench-") as folder:
        samples = bench.prepare(case, folder)
        native, own = os.path.join(folder, "bench.toml"), os.path.join(folder, "module.toml")
        with open(native) as given, open(own, "w") as file:
            file.write(with_module(given.read(), options.python, module_of(case)))
        headroom, peer_words = bench.programs(case, folder)
        return take_turns({"headroom": headroom, "headroom, nn.Module": Headroom(options.build, folder, own, samples, case.steps),
                           "nn.Module": lambda: peer(peer_words, folder)}, options.rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="cases whose names hold this")
    options = parser.parse_args()
    options.python = os.path.abspath(options.python)
    for name, (bench, module_of, words) in CASES.items():
        if options.only in name:
            results = measure(bench, module_of, words, options)
            print(name)
            print_table(results)
            print_ratios(results)


if __name__ == "__main__":
    main()
