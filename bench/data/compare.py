#!/usr/bin/env python3
"""Headroom's loader beside Python's on the same files: samples a second, CPU, page faults, memory, waits.

    python3 bench/data/compare.py --python VENV/bin/python [--build build/release] [--folder FOLDER] [--rounds 5]

VENV needs torch, numpy and h5py. Builds loader_bench, ceiling_bench, the library of headroom.Loader and the datasources in the build folder, writes the
files (2.6 GB) into FOLDER or a temporary one, and runs in each round every contender of every case once, in an order that
rotates. Medians, with the slowest and the fastest round in brackets; --json keeps all of them. --quick: small files,
one short round. --cases: some of them, by name.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import cases
import process_tree
import report

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def toml(value):
    """A TOML value, tables inline."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(toml(inner) for inner in value) + "]"
    return json.dumps(value)


def answer_of(words, **more):
    """The JSON object that a program prints."""
    done = subprocess.run(words, capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)[:300]}\nended with {done.returncode}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


class Bench:
    def __init__(self, words, folder):
        self.python, self.build, self.folder = words.python, os.path.abspath(words.build), folder
        self.seconds = 0.5 if words.quick else words.seconds

    def python_loader(self, case, contender):
        settings = cases.python_settings(case, contender, self.folder, self.seconds)
        return answer_of([self.python, os.path.join(HERE, "python_loader.py"), json.dumps(settings)])

    def headroom(self, case, contender):
        settings = cases.headroom_settings(case, contender, self.build, self.folder, self.seconds)
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.writelines(f"{key} = {toml(value)}\n" for key, value in settings.items())
            file.flush()
            result = answer_of([os.path.join(self.build, "bench", "loader_bench"), file.name])
        result["memory_bytes"] = result["pss_bytes"] - result["pss_at_start_bytes"]
        return result

    def from_python(self, case, contender):
        settings = cases.from_python_settings(case, contender, self.build, self.folder, self.seconds)
        return answer_of([self.python, os.path.join(HERE, "headroom_loader.py"), json.dumps(settings)],
                         env={**os.environ, "HEADROOM_ROOT": self.build})

    def ceiling(self, case):
        return answer_of([os.path.join(self.build, "bench", "ceiling_bench"), str(case["block_bytes"]),
                          str(case["threads"]), str(min(1.0, self.seconds)), str(case["most_samples"] if case["cold"] else 0),
                          case["dataset"], *cases.files_of(case, self.folder)])

    def round(self, case, number, rounds):
        """Every contender once."""
        contenders = list(cases.contenders(case).items())
        first = number % len(contenders)
        for name, settings in contenders[first:] + contenders[:first]:
            if name.startswith("headroom"):
                run = self.headroom
            else:
                run = self.from_python if name.startswith("from Python") else self.python_loader
            rounds.setdefault(name, []).append(run(case, settings))
        rounds.setdefault("ceiling", []).append(self.ceiling(case))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="with torch, numpy and h5py")
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--folder", help="keeps the files for the next time")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="measured of each contender in each round")
    parser.add_argument("--cases", nargs="*", default=[case["name"] for case in cases.CASES])
    parser.add_argument("--json", help="all rounds of all contenders")
    parser.add_argument("--quick", action="store_true")
    words = parser.parse_args()
    if words.quick:
        words.rounds = 1
    chosen = [case for case in cases.CASES if case["name"] in words.cases]
    subprocess.run(["ninja", "-C", words.build, "loader_bench", "ceiling_bench", "emg_hdf5", "hdf5", "headroom_loader", "headroom-hdf5"], check=True,
                   stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory(prefix="headroom-bench-") as temporary:
        folder = words.folder or temporary
        subprocess.run([words.python, os.path.join(HERE, "make_files.py"), folder] + ["--small"] * words.quick, check=True)
        bench, results = Bench(words, folder), {case["name"]: {} for case in chosen}
        for number in range(words.rounds):
            for case in chosen:
                print(f"round {number + 1} of {words.rounds}: {case['title']}", file=sys.stderr, flush=True)
                bench.round(case, number, results[case["name"]])
    if words.json:
        with open(words.json, "w") as file:
            json.dump(results, file, indent=1)
    print(f"on {process_tree.processor()}")
    for case in chosen:
        report.print_case(case, results[case["name"]])
    report.print_summary(chosen, results)


if __name__ == "__main__":
    main()
