"""Starts the program and waits for its end. What it says is shown as it comes, Ctrl-C and a time limit reach it."""

from __future__ import annotations

import codecs
import os
import select
import signal
import subprocess
import tempfile
import threading
import time
from typing import IO, Any, List, NamedTuple, Optional, Sequence, Union

from . import installation, progress as _progress

_LOOK_SECONDS = 0.2
_SAVING_SECONDS = 60.0  # that a run has to save itself at its time limit


class Ended(NamedTuple):
    exit_code: int  # 128 + the signal where one ended it
    said: str  # all that it said, as lines
    answer: str  # its stdout, where that was asked for
    interrupted: bool  # Ctrl-C came meanwhile, and was passed on
    timed_out: bool


class _Interrupts:
    """While this is entered, Ctrl-C goes to the program, which saves; a second one ends it at once. Python can take
    signals in its main thread only: elsewhere nothing changes."""

    def __init__(self) -> None:
        self.count, self.process = 0, None  # type: int, Optional[subprocess.Popen]
        self._before: Any = None

    def __enter__(self) -> _Interrupts:
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            if before not in (signal.SIG_IGN, None):
                self._before = before
                signal.signal(signal.SIGINT, self._pass_on)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def started(self, process: subprocess.Popen) -> None:
        self.process = process
        if self.count > 0:
            process.send_signal(signal.SIGINT)

    def _pass_on(self, *_: object) -> None:
        self.count += 1
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(signal.SIGINT)


class _Output:
    """What the program writes, through a pipe or a terminal of its own."""

    def __init__(self, view: _progress.Silent) -> None:
        self._view = view
        self._lines: List[str] = []
        self._rest = ""  # of the last line; of a bar only what it shows now, since it moves for days
        self._columns = view.columns
        ends = _progress.open_terminal(self._columns) if self._columns else None
        self._is_terminal = ends is not None
        self.ours, self.programs = ends or os.pipe()
        self._ready = select.poll()  # select() takes no descriptor beyond 1023
        self._ready.register(self.ours, select.POLLIN)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def close_programs(self) -> None:
        os.close(self.programs)

    def wait(self, seconds: float) -> bool:
        """Shows what comes in that time. False: no more will come."""
        columns = self._view.columns
        if self._is_terminal and columns and columns != self._columns:
            self._columns = columns
            _progress.resize(self.ours, columns)
        if not self._ready.poll(1000 * seconds):
            return True
        try:
            data = os.read(self.ours, 65536)
        except OSError:  # a terminal whose other end is closed
            data = b""
        text = self._decoder.decode(data, final=not data)
        if text:
            whole, _, self._rest = (self._rest + text).rpartition("\n")
            self._lines += _progress.plain_lines(whole)
            self._rest = self._rest[max(self._rest.rfind("\r", 0, -1), 0) :]
            self._view.show(text)
        return bool(data)

    def mute(self) -> None:
        """Shows nothing from now on."""
        self._view = _progress.Silent()

    def drain(self) -> str:
        """What there is still; a child that outlives the program may hold the other end for long."""
        try:
            while self._ready.poll(0) and self.wait(0):
                pass
        finally:
            os.close(self.ours)
        self._view.end()
        return "\n".join(self._lines + _progress.plain_lines(self._rest))


def _environment(view: _progress.Silent) -> dict:
    # The program gets SIGTERM when this Python is killed (memory/supervised.hpp): it saves, and ends.
    return {**installation.environment(), **view.environment, "HEADROOM_SWEEP_PID": str(os.getpid())}


def _wait(process: subprocess.Popen, output: _Output, timeout: Optional[float]) -> bool:
    """True: it was ended at its time limit."""
    deadline = None if timeout is None else time.monotonic() + timeout
    timed_out = False
    while process.poll() is None:
        if not output.wait(_LOOK_SECONDS):
            time.sleep(0.01)
        if deadline is not None and time.monotonic() >= deadline:
            if timed_out:
                os.killpg(process.pid, signal.SIGKILL)  # the program alone would leave its trainer behind
            else:
                process.terminate()
            timed_out, deadline = True, time.monotonic() + _SAVING_SECONDS
    return timed_out


def call(
    words: Sequence[str],
    *,
    progress: _progress.Progress = None,
    timeout: Optional[float] = None,
    cwd: Union[None, str, os.PathLike[str]] = None,
    answers: bool = False,
) -> Ended:
    """Runs `headroom WORDS...` to its end. `answers`: its stdout is not shown but returned. FileNotFoundError where
    this installation has no program."""
    if not os.path.exists(installation.program):
        raise FileNotFoundError(
            f"{installation.program} is missing: build Headroom with ./headroom build, or install its wheel again"
        )
    view = _progress.shown(progress)
    answer: IO[bytes]
    with _Interrupts() as interrupts, tempfile.TemporaryFile() as answer:
        output = _Output(view)
        try:
            # In a session of its own: a notebook sends Ctrl-C to all processes of its group, and the program would
            # take the second one, which we pass on, for a wish to end without saving.
            process = subprocess.Popen(
                [installation.program, *words],
                stdin=subprocess.DEVNULL,
                stdout=answer if answers else output.programs,
                stderr=output.programs,
                cwd=cwd,
                env=_environment(view),
                start_new_session=True,
            )
        except BaseException:
            os.close(output.ours)
            raise
        finally:
            output.close_programs()
        try:
            interrupts.started(process)
            timed_out = _wait(process, output, timeout)
        except BaseException:  # of whoever shows the progress
            output.mute()
            process.terminate()
            _wait(process, output, None)  # and reads on: a program that can write nothing more does not end
            raise
        finally:
            said = output.drain()
        answer.seek(0)
        code = process.returncode
        text = answer.read().decode("utf-8", "replace")
        return Ended(code if code >= 0 else 128 - code, said, text, interrupts.count > 0, timed_out)
