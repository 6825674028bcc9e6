#!/usr/bin/env python3
"""What a new author waits for: from nothing to a first trained run, and from an edit to ten steps: README.md beside it.

    bench/authors/first_use.py [--build build/release] [--markdown FILE]

By the clock means something on a quiet machine only; CPU seconds are those of all processes that a command waited for.
"""
import argparse
import os

import model_mistakes
import source_mistakes
from author import Author, edited

# An edit as an author makes one: another activation, another noise.
EDITS = {"model": [(model_mistakes.DROPS, model_mistakes.DROPS.replace("relu", "tanh"))],
         "source": [(source_mistakes.SAMPLE, source_mistakes.SAMPLE.replace("noise_ *", "0.5 * noise_ *"))]}


def first_use(author, kind, name):
    """(what, Ended) of each command, in order."""
    libraries, experiment = os.path.join(name, "build/release"), os.path.join(name, name + ".toml")
    run = ["run", experiment, "--plugin-dir", libraries, "--out", "runs"]
    yield f"`headroom new {kind} {name}`", author.must("new", kind, name)
    yield f"`headroom plugins build {name}`", author.must("plugins", "build", name)
    yield "first run, 20 epochs of 25 steps", author.must(*run)
    source = (name, name + ".cpp")
    author.write(edited(author.read(*source), EDITS[kind]), *source)
    yield "an edit; `headroom plugins build`", author.must("plugins", "build", name)
    yield "ten steps", author.must(*run, "--no-plan", "--set", "train.max_steps=10")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/release", help="build folder with the SDK, below the repository or absolute")
    parser.add_argument("--markdown", help="file for the table")
    given = parser.parse_args()
    table = ["| | seconds | CPU seconds |", "|---|---|---|"]
    with Author(given.build) as author:
        for kind, name in (("model", "wrist"), ("source", "reach")):
            steps = list(first_use(author, kind, name))
            for title, part in ((f"{kind}: from nothing to a first trained run", steps[:3]),
                                (f"{kind}: from an edit to ten steps", steps[3:])):
                table += [f"| {what} | {ended.seconds:.1f} | {ended.cpu_seconds:.1f} |" for what, ended in part]
                table.append(f"| **{title}** | **{sum(ended.seconds for _, ended in part):.1f}** "
                             f"| **{sum(ended.cpu_seconds for _, ended in part):.1f}** |")
    print("\n".join(table))
    print("load of this machine over the last minute: " + open("/proc/loadavg").read().split()[0])
    if given.markdown:
        with open(given.markdown, "w") as file:
            file.write("\n".join(table) + "\n")


if __name__ == "__main__":
    main()
