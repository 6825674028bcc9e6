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
import subprocess
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
TDS_DATA = """[data]
source = "emg_hdf5"
"""


def module(options, file, arguments, inputs, loss):
    return MODULE.format(python=options.python, root=ROOT, file=file, arguments=arguments, inputs=inputs, loss=loss)


def tds(bench, options):
    """(The experiment with the module, the peer's words) of a TDS-LSTM."""
    text = "[experiment]\n" + bench.experiment(options).split("[experiment]\n")[1]  # without what it extends
    text = text.replace("[data]\n", TDS_DATA).replace(bench.PUBLISHED, "").replace("[train]\n", "[train]\nclip_norm = 1.0\n")
    loss = "mae" if options.network == "published" else "mse_mae"
    words = [os.path.join(ROOT, "bench", "peers", "tds_lstm.py"), "data", "--no-validation"]
    for name in ("batch", "network", "window", "stride", "steps", "threads"):
        words += ["--" + name, str(getattr(options, name))]
    return module(options, "tds_lstm_module.py", f'network = "{options.network}"', '["emg", "joint_angles", "valid"]', loss) + text, words


def act(bench, options):
    text = bench.EXPERIMENT.format(**vars(options))
    head, tail = text.split("[model]\n")
    words = [os.path.join(ROOT, "bench", "peers", "act_policy.py"), "data.hdf5"]
    for name in ("batch", "steps", "chunk", "threads"):
        words += ["--" + name, str(getattr(options, name))]
    inputs = '["image", "qpos", "action", "is_pad"]'
    return head + module(options, "act_policy_module.py", f"chunk = {options.chunk}", inputs, "loss") + "[data]\n" + tail.split("[data]\n")[1], words


def vrt(bench, options):
    text = bench.experiment(options)
    head, tail = text.split("[model]\n")
    names = ("embed", "depth", "heads", "deformable_groups", "drop_path")
    arguments = ", ".join(f"{name} = {getattr(options, name)}" for name in names)
    words = [os.path.join(ROOT, "bench", "peers", "spike_vrt.py"), os.path.join("data", "sequence.hdf5")]
    for name in ("clip", "embed", "depth", "heads", "deformable_groups", "steps", "threads", "drop_path"):
        words += ["--" + name.replace("_", "-"), str(getattr(options, name))]
    return head + module(options, "spike_vrt_module.py", arguments, '["blur"]', "loss") + "[data]\n" + tail.split("[data]\n")[1], words


CASES = {
    "tds quick, batch 16, 1 thread": (tds_lstm, tds, ["--batch", "16", "--threads", "1"]),
    "tds published, T 2290, 2 threads": (tds_lstm, tds, ["--network", "published", "--window", "2290", "--batch", "16", "--steps", "12"]),
    "act 120x160, batch 2": (act_policy, act, ["--batch", "2"]),
    "vrt reduced": (spike_vrt, vrt, []),
}


def measure(bench, with_module, words, options):
    case = bench.parser().parse_args(["--python", options.python, "--build", options.build, *words])
    with tempfile.TemporaryDirectory(prefix="headroom-bench-") as folder:
        samples = bench.prepare(case, folder)
        native, own = os.path.join(folder, "bench.toml"), os.path.join(folder, "module.toml")
        text, peer_words = with_module(bench, case)
        with open(own, "w") as file:
            file.write(text)
        headroom = Headroom(options.build, folder, native, samples, case.steps)
        if bench is tds_lstm:
            subprocess.run([headroom.program, "data", "synth", native], check=True, stdout=subprocess.DEVNULL)
        peer_words = [options.python, peer_words[0], os.path.join(folder, peer_words[1]), *peer_words[2:]]
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
    for name, (bench, with_module, words) in CASES.items():
        if options.only in name:
            results = measure(bench, with_module, words, options)
            print(name)
            print_table(results)
            print_ratios(results)


if __name__ == "__main__":
    main()
