#!/usr/bin/env python3
"""Every case of training speed and memory, one table and one picture: Headroom against each model as a PyTorch user runs it, and as a
patient one tunes it.

    python3 bench/models/all.py --python .venv/bin/python [--only tds] [--rounds 3] [--picture training.svg] [--markdown table.md]

An evaluation's time is of a sample: `headroom evaluate` against torch.inference_mode. The start is of a run whose data is planned and
cached, as one before it has left them. A case is one of the benches beside this file with its settings; its contenders take turns,
each run a process of its own. A ratio is that of two runs of one round: the median over rounds, with the smallest and the largest.
Speed above 1 and memory below 1 are in Headroom's favour. The last column says which aims are missed. --only: cases whose names hold
this.
"""
import argparse
import html
import statistics
import sys

import act_policy
import spike_vrt
import tds_lstm
from training_steps import MIB, of_rounds, process_tree

PUBLISHED = ["--network", "published", "--window", "2290", "--batch", "16", "--steps", "12"]
SIXTEEN_BY_FOUR = ["--network", "published", "--window", "11790", "--stride", "500", "--steps", "5", "--batch", "16", "--accumulate", "4"]
LARGE = ["--height", "480", "--width", "640", "--steps", "8"]
KEEPING, RECOMPUTING = ("headroom", "nn.Module", "tuned"), ("headroom, recomputing", "nn.Module", "tuned, recomputing")
MODULES = ("headroom", "nn.Module", "nn.Module tuned")
CASES = {  # the bench, its settings, Headroom and the peers as they are and tuned, aims: speed against both, peak against the plain one
    "tds quick, batch 16, 1 thread": (tds_lstm, ["--batch", "16", "--threads", "1"], MODULES, (2.6, 2.2, 0.4)),
    "tds quick, batch 64, 2 threads": (tds_lstm, ["--batch", "64"], MODULES, (2.2, 1.8, 0.4)),
    "tds published, T 2290, 1 thread": (tds_lstm, [*PUBLISHED, "--threads", "1"], MODULES, (1.8, None, None)),
    "tds published, T 2290, 2 threads": (tds_lstm, PUBLISHED, MODULES, (2.0, 1.5, None)),
    "tds published, T 11790, 16x4 against 64x1": (tds_lstm, SIXTEEN_BY_FOUR, MODULES, (1.1, None, 0.2)),
    "act 120x160, batch 2": (act_policy, ["--batch", "2"], MODULES, (2.6, 1.2, 0.6)),
    "act 120x160, batch 8": (act_policy, ["--batch", "8"], MODULES, (2.6, 1.2, 0.6)),
    "act 480x640, batch 2": (act_policy, LARGE, MODULES, (1.6, 1.15, 0.75)),
    "tds quick, evaluation, batch 16": (tds_lstm, ["--batch", "16", "--evaluate"], MODULES, (1.5, None, None)),
    "tds published, T 2290, evaluation": (tds_lstm, [*PUBLISHED, "--evaluate"], MODULES, (1.5, None, None)),
    "act 120x160, evaluation, batch 2": (act_policy, ["--batch", "2", "--steps", "40", "--evaluate"], MODULES, (1.5, None, None)),
    "act 480x640, evaluation, batch 2": (act_policy, [*LARGE, "--evaluate"], MODULES, (1.5, None, None)),
    "vrt reduced, evaluation": (spike_vrt, ["--evaluate"], MODULES, (1.5, None, None)),
    "vrt reduced": (spike_vrt, ["--contenders", *KEEPING], KEEPING, (2.2, 1.3, 0.6)),
    "vrt reduced, recomputing": (spike_vrt, ["--contenders", *RECOMPUTING], RECOMPUTING, (1.5, None, 0.3)),
}
START_AIM = 8  # times as soon from the process's start to the end of its first step, where data is planned and cached


class Ratio:
    """Of two contenders' figures, round by round."""

    def __init__(self, results, key, above, below):
        pairs = zip(of_rounds(results.get(above, []), key), of_rounds(results.get(below, []), key))
        self.rounds = [over / under for over, under in pairs]

    def median(self):
        return statistics.median(self.rounds) if self.rounds else None

    def __str__(self):
        return f"{self.median():.2f} ({min(self.rounds):.2f} to {max(self.rounds):.2f})" if self.rounds else "-"


class Row:
    def __init__(self, name, case, results):
        (ours, plain, tuned), self.aims = case[2:]
        self.name = name
        self.milliseconds = 1000 * statistics.median(of_rounds(results[ours], "seconds"))
        self.peak_mib = max(of_rounds(results[ours], "peak_bytes")) / MIB
        self.faults = [of_rounds(results[who], "faults") for who in (ours, plain)]
        self.speed, self.speed_tuned = (Ratio(results, "seconds", who, ours) for who in (plain, tuned))
        self.cpu, self.cpu_tuned = (Ratio(results, "cpu_seconds", who, ours) for who in (plain, tuned))
        self.start = Ratio(results, "first_step_seconds", plain, ours)
        self.peak = Ratio(results, "peak_bytes", ours, plain)

    def missed(self):
        speed, tuned, peak = self.aims
        checks = (("speed", self.speed, speed, 1), ("against tuned", self.speed_tuned, tuned, 1), ("start", self.start, START_AIM, 1),
                  ("peak", self.peak, peak, -1))
        return [f"{what} {found.median():.2f} for {aim}" for what, found, aim, sign in checks
                if aim and found.rounds and sign * found.median() < sign * aim]

    def cells(self):
        ratios = [str(found) for found in (self.speed, self.speed_tuned, self.cpu, self.cpu_tuned, self.start)]
        return [self.name, f"{self.milliseconds:.{1 if self.milliseconds >= 10 else 3}f}", *ratios, f"{self.peak_mib:.0f}", str(self.peak),
                " / ".join(f"{statistics.median(found):.0f}" if found else "-" for found in self.faults),
                "; ".join(self.missed()) or "reached"]


HEAD = ["case", "ms a step or sample", "speed", "against tuned", "by CPU seconds", "against tuned", "start to first step", "peak MiB", "peak",
        "faults a step", "aims"]


def markdown(rows):
    lines = [HEAD, ["---"] * len(HEAD)] + [row.cells() for row in rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def picture(rows, processor):
    """Bars of speed and of memory, a case a band; the line is PyTorch as a user runs it."""
    unit, left, band, scale = 90, 290, 58, max([3.0] + [row.speed.median() for row in rows])
    width, height = left + int(unit * scale) + 90, 70 + band * len(rows)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           '<text x="10" y="20" font-size="14">A training step of Headroom against PyTorch</text>',
           f'<text x="10" y="38" fill="#555">{html.escape(processor)}</text>']
    for number, row in enumerate(rows):
        top = 56 + band * number
        out.append(f'<text x="{left - 8}" y="{top + 26}" text-anchor="end">{html.escape(row.name)}</text>')
        bars = (("x as fast", row.speed, "#2166ac"), ("x as fast as tuned", row.speed_tuned, "#92c5de"),
                ("of its peak", row.peak, "#b2182b"))
        for place, (what, found, colour) in enumerate(bars):
            if found.rounds:
                end = left + unit * found.median()
                out.append(f'<rect x="{left}" y="{top + 14 * place}" width="{end - left:.1f}" height="11" fill="{colour}"/>'
                           f'<text x="{end + 5:.1f}" y="{top + 14 * place + 10}" font-size="10">{found.median():.2f} {what}</text>')
    out.append(f'<line x1="{left + unit}" x2="{left + unit}" y1="48" y2="{height - 8}" stroke="#333" stroke-dasharray="4 3"/>')
    return "\n".join([*out, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="cases whose names hold this")
    parser.add_argument("--picture")
    parser.add_argument("--markdown")
    options = parser.parse_args()
    rows, processor = [], process_tree.processor()
    print(f"on {processor}", flush=True)
    for name, case in CASES.items():
        if options.only in name:
            bench, words = case[:2]
            settings = ["--python", options.python, "--build", options.build, "--rounds", str(options.rounds), *words]
            rows.append(Row(name, case, bench.measure(bench.parser().parse_args(settings))))
            print(", ".join(f"{head} {cell}" for head, cell in zip(HEAD, rows[-1].cells())), flush=True)
    for path, text in ((options.markdown, markdown(rows)), (options.picture, picture(rows, processor))):
        if path:
            with open(path, "w") as file:
                file.write(text)


if __name__ == "__main__":
    main()
