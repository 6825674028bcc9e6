"""What the program says while it runs, shown where this Python is used: as it is on a terminal, one line that is
rewritten in a notebook, lines elsewhere."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import sys
import termios
import time
from typing import Any, Callable, List, Optional, Union

Progress = Union[None, bool, Callable[[str], Any]]

_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def plain_lines(text: str) -> List[str]:
    """The lines that a terminal would be left with: what a line break or a carriage return did not overwrite."""
    lines = (_CONTROL.sub("", line).rstrip("\r").rpartition("\r")[2].rstrip() for line in text.split("\n"))
    return [line for line in lines if line]


def notebook() -> Any:
    """IPython's shell where this runs in a notebook's kernel, else None."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell if getattr(shell, "kernel", None) is not None else None


class Silent:
    """Shows nothing; what the others have in common."""

    columns = 0  # of a terminal of its own that the program gets; 0: a pipe
    environment = {}  # type: dict

    def show(self, text: str) -> None:
        pass

    def end(self) -> None:
        pass


class OnTerminal(Silent):
    @property
    def columns(self) -> int:  # type: ignore[override]
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80

    def show(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


class InNotebook(Silent):
    """One line that is rewritten: what moves, or what was said last. At the end it is the result."""

    columns = 100
    environment = {"TERM": "xterm", "NO_COLOR": "1"}
    _seconds_between = 0.1

    def __init__(self) -> None:
        from IPython.display import display

        self._display, self._handle = display, None  # type: ignore[var-annotated]
        self._line = self._result = ""
        self._shown = 0.0

    def show(self, text: str) -> None:
        for line in plain_lines(text.replace("\r", "\n")):
            self._line = line
            if re.match(r"(finished|stopped_early|resumable|interrupted): ", line):
                self._result = line
        if time.monotonic() - self._shown >= self._seconds_between:
            self._draw(self._line)

    def end(self) -> None:
        self._draw(self._result or self._line)

    def _draw(self, line: str) -> None:
        if not line:
            return
        self._shown = time.monotonic()
        data = {"text/plain": line}
        if self._handle is None:
            self._handle = self._display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)


class AsLines(Silent):
    def __init__(self, take: Callable[[str], Any]) -> None:
        self._take, self._rest = take, ""

    def show(self, text: str) -> None:
        whole, line_break, rest = (self._rest + text).rpartition("\n")
        self._rest = rest
        if line_break:
            for line in whole.split("\n"):
                self._take(line)

    def end(self) -> None:
        if self._rest:
            self._take(self._rest)


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def shown(progress: Progress) -> Silent:
    """None and True: as it suits this Python; False: nothing; a function: it is called with each line."""
    if progress is False:
        return Silent()
    if callable(progress):
        return AsLines(progress)
    if notebook() is not None:
        return InNotebook()
    try:
        return OnTerminal() if sys.stderr.isatty() and sys.stderr.fileno() >= 0 else AsLines(_print)
    except (AttributeError, OSError, ValueError):  # a stream that is no file
        return AsLines(_print)


def open_terminal(columns: int) -> Optional[tuple]:
    """(our end, the program's end) of a terminal that leaves line breaks as they are; None where the system has
    none."""
    try:
        ours, programs = os.openpty()
    except OSError:
        return None
    modes = termios.tcgetattr(programs)
    modes[1] &= ~termios.OPOST
    termios.tcsetattr(programs, termios.TCSANOW, modes)
    resize(ours, columns)
    return ours, programs


def resize(terminal: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
