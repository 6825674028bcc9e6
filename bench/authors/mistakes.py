#!/usr/bin/env python3
"""Deliberate mistakes of plugin authors, and what Headroom says to each: README.md beside it.

    bench/authors/mistakes.py [--build build/release] [--only WORD ...] [--markdown FILE]

Exits with 1 where an expectation is not met.
"""
import argparse
import os
import re
import sys

import model_mistakes
import source_mistakes
from author import Author, edited
from mistake import CHECK, COMPILER, MENDED, NOBODY, RUN, TOLD

EPOCHS = "train.epochs=3"


def sentence(ended, wanted):
    """The line that tells: the one that was wanted, else one that fails, else an error, else the last."""
    lines = [line.strip() for line in ended.text.splitlines() if line.strip()]
    for shows in (lambda line: wanted and wanted in line, lambda line: line.startswith("FAIL"),
                  lambda line: line.startswith("["), lambda line: True):
        found = [line for line in lines if shows(line)]
        if found:
            return found[0] if found[0].startswith(("FAIL", "skip")) else found[-1]
    return ""


def steps_done(ended):
    done = re.findall(r"finished: (\d+) steps|at step (\d+)", ended.text)
    return next((number for number in done[-1] if number), "0") if done else "0"


class Trial:
    """One mistake, tried: what the compiler, the check and the run had to say."""

    def __init__(self, author, name, mistake, template):
        self.mistake, self.check, self.run = mistake, None, None
        author.write(edited(template, mistake.edits), name, name + ".cpp")
        self.build = author.call("plugins", "build", name)
        if self.build.code != 0:
            return
        library, libraries = os.path.join(name, "build/release", name + ".so"), os.path.join(name, "build/release")
        experiment = os.path.join(name, name + ".toml")
        words = ["plugins", "check", library]
        if name == "wrist" and not mistake.alone:
            words += ["--with", experiment]
        self.check = author.call(*words, seconds=mistake.seconds, **mistake.environment)
        words = ["run", experiment, "--plugin-dir", libraries, "--out", "runs"]
        for setting in [EPOCHS, *mistake.settings]:
            words += ["--set", setting]
        self.run = author.call(*words, seconds=mistake.seconds, **mistake.environment)

    def told_by(self, loss):
        """Who told the mistake first."""
        if self.build.code != 0:
            return COMPILER
        if self.check.code != 0:
            return CHECK
        if self.run.code != 0:
            return RUN
        wanted = self.mistake
        if (wanted.check and wanted.check in self.check.text) or (wanted.run[1] and wanted.run[1] in self.run.text):
            return TOLD
        return MENDED if wanted.by == MENDED and loss_of(self.run) == loss else NOBODY

    def unmet(self, loss):
        """What is not as it was expected; "": all is."""
        wanted, by = self.mistake, self.told_by(loss)
        if by != wanted.by:
            return f"told by {by}, expected: {wanted.by}"
        if by == COMPILER:
            return "" if wanted.check in self.build.text else f"the compiler does not say '{wanted.check}'"
        if by == CHECK and self.check.code != wanted.code:
            return f"check ended with {self.check.code}, expected: {wanted.code}"
        if wanted.check not in self.check.text:
            return f"check does not say '{wanted.check}'"
        if self.run.code != wanted.run[0]:
            return f"run ended with {self.run.code}, expected: {wanted.run[0]}"
        return "" if wanted.run[1] in self.run.text else f"run does not say '{wanted.run[1]}'"

    def row(self, loss):
        wanted = self.mistake
        if self.check is None:
            return [wanted.name, "-", f"does not build: {sentence(self.build, wanted.check)}", "-", self.told_by(loss)]
        why = f" ({wanted.why})" if wanted.why else ""
        check = sentence(self.check, wanted.check if wanted.check in self.check.text else "")
        if self.check.code == 0 and not (wanted.check and wanted.check in self.check.text):
            check = "nothing"
        run = sentence(self.run, wanted.run[1] if wanted.run[1] in self.run.text else "")
        if self.run.code == 0 and not (wanted.run[1] and wanted.run[1] in self.run.text):
            run = "nothing"
        return [wanted.name, f"{code_text(self.check)}: {check}",
                f"{code_text(self.run)} after {self.run.seconds:.1f} s, {steps_done(self.run)} steps: {run}",
                f"{self.build.seconds:.0f} s, {self.build.cpu_seconds:.0f} s CPU", self.told_by(loss) + why]


def code_text(ended):
    return "ended by us" if ended.code is None else str(ended.code)


def loss_of(ended):
    found = re.findall(r"train/loss\s+(\S+)", ended.text)
    return found[-1] if found else None


def shortened(text, folder):
    text = text.replace(folder + "/", "").replace("|", "/")
    return text if len(text) <= 240 else text[:237] + "..."


def tried(author, kind, name, mistakes):
    """The template itself, which has to be without a fault, then every mistake."""
    author.must("new", kind, name)
    template = author.read(name, name + ".cpp")
    author.must("plugins", "build", name)
    libraries = os.path.join(name, "build/release")
    loss = loss_of(author.must("run", os.path.join(name, name + ".toml"), "--plugin-dir", libraries, "--out", "runs", "--set", EPOCHS))
    for mistake in mistakes:
        trial = Trial(author, name, mistake, template)
        yield [shortened(cell, author.folder) for cell in trial.row(loss)], trial.unmet(loss)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/release", help="build folder with the SDK, below the repository or absolute")
    parser.add_argument("--only", nargs="*", default=[], help="mistakes with one of these words in their names")
    parser.add_argument("--markdown", help="file for the table")
    given = parser.parse_args()
    heads = ["mistake", "check: exit code, sentence", "run: exit code, when, sentence", "build", "told by"]
    table, unmet = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)], []
    with Author(given.build) as author:
        for kind, name, all_mistakes in (("model", "wrist", model_mistakes.MISTAKES),
                                         ("source", "reach", source_mistakes.MISTAKES)):
            mistakes = [one for one in all_mistakes if not given.only or any(word in one.name for word in given.only)]
            if not mistakes:
                continue
            for row, flaw in tried(author, kind, name, mistakes):
                table.append("| " + " | ".join(row) + " |")
                print(table[-1] + (f"\n  NOT AS EXPECTED: {flaw}" if flaw else ""), flush=True)
                if flaw:
                    unmet.append(f"{kind}: {row[0]}: {flaw}")
    if given.markdown:
        with open(given.markdown, "w") as file:
            file.write("\n".join(table) + "\n")
    print(f"\n{len(table) - 2} mistakes, {len(unmet)} not as expected")
    for one in unmet:
        print("  " + one)
    return 1 if unmet else 0


if __name__ == "__main__":
    sys.exit(main())
