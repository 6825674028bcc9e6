"""Memory of a process and its children while it runs, and curves of it as SVG."""
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data"))
import process_tree  # noqa: E402

MIB = 1 << 20
COLOURS = ("#0b6e4f", "#c44900", "#3d5a98", "#7d4f9e", "#8a8a8a")
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, GAP = 360, 260, 62, 44, 40, 24


def watched(words, every_seconds=0.05, **more):
    """(standard output, [(moment, bytes)])."""
    child, points = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more), []
    ended = threading.Event()

    def watch():
        while not ended.wait(every_seconds):
            points.append((time.monotonic(), process_tree.memory_bytes(child.pid)))

    thread = threading.Thread(target=watch)
    thread.start()
    out, log = child.communicate()
    ended.set()
    thread.join()
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(words)[:300]}\nended with {child.returncode}:\n{log[-2000:]}")
    return out, points


def within(points, began, ended, baseline):
    """[(part of the run, bytes above the baseline)]."""
    return [((moment - began) / (ended - began), size - baseline) for moment, size in points if began <= moment <= ended and size > 0]


def steps(largest):
    unit = 10 ** (len(str(int(largest))) - 1)
    unit = next(step for step in (unit // 5, unit // 2, unit, 2 * unit) if step and largest / step <= 7)
    return range(0, int(largest) + unit, unit)


def panel(title, limit_bytes, curves, epochs, most_mib, offset):
    def x(part):
        return offset + LEFT + part * (WIDTH - LEFT)

    def y(mib):
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - mib / most_mib)

    marks = [f'<text x="{offset + LEFT}" y="{TOP - 10}" class="title">{title}</text>']
    for value in steps(most_mib):
        if value <= most_mib:
            marks.append(f'<line x1="{x(0):.1f}" x2="{x(1):.1f}" y1="{y(value):.1f}" y2="{y(value):.1f}" class="grid"/>'
                         f'<text x="{x(0) - 6:.1f}" y="{y(value) + 4:.1f}" class="value">{value}</text>')
    for epoch in range(0, epochs + 1, -(-epochs // 8)):
        marks.append(f'<text x="{x(epoch / epochs):.1f}" y="{HEIGHT - BOTTOM + 16}" class="epoch">{epoch}</text>')
    if limit_bytes:
        level = y(limit_bytes / MIB)
        marks.append(f'<line x1="{x(0):.1f}" x2="{x(1):.1f}" y1="{level:.1f}" y2="{level:.1f}" class="limit"/>'
                     f'<text x="{x(1):.1f}" y="{level + 13:.1f}" class="value">the cache\'s limit</text>')
    for colour, points in zip(COLOURS, curves.values()):
        path = " ".join(f"{x(part):.1f},{y(max(0, size) / MIB):.1f}" for part, size in points)
        marks.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
    return marks


def svg(panels, epochs):
    """panels: {title: (limit in bytes, {contender: points of within()})}, the same contenders in each."""
    most = max(max([limit, *(size for points in curves.values() for _, size in points)]) for limit, curves in panels.values()) / MIB * 1.05
    width, height = len(panels) * (WIDTH + GAP) + 10, HEIGHT + 30
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
             "<style>text{font:12px sans-serif;fill:#333}.title{font-weight:600}.value{text-anchor:end}.epoch{text-anchor:middle}"
             ".grid{stroke:#e4e4e4}.limit{stroke:#333;stroke-dasharray:5 4}</style>",
             f'<rect width="{width}" height="{height}" fill="#fff"/>',
             '<text x="10" y="16">MiB above what the process held before its dataset; epochs, each run scaled to its own length</text>']
    for number, (title, (limit, curves)) in enumerate(panels.items()):
        lines += panel(title, limit, curves, epochs, most, number * (WIDTH + GAP))
    at = LEFT
    for colour, name in zip(COLOURS, next(iter(panels.values()))[1]):
        lines.append(f'<rect x="{at}" y="{height - 22}" width="14" height="4" fill="{colour}"/>'
                     f'<text x="{at + 20}" y="{height - 16}">{name}</text>')
        at += 40 + 8 * len(name)
    return "\n".join([*lines, "</svg>", ""])
