"""Experiments run by the program, from Python: run(), sweep(), and what evaluate() and predict() of a run ask of it."""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import command, toml_text
from .progress import Progress
from .runs import Run, Where
from .sweeps import Sweep

Experiment = Union[Where, Mapping[str, Any]]

_RESUMABLE, _INTERRUPTED = 75, 130


class RunError(RuntimeError):
    """The program did not do what it was asked to.

    exit_code: docs/errors.md lists them. sentence: what it said. run: the Run (of sweep(): the Sweep) that it had
        begun, else None. postmortem: why it was killed or crashed, as `headroom postmortem` tells it, else "".
    """

    def __init__(self, exit_code: int, sentence: str, run: Any = None, postmortem: str = "") -> None:
        super().__init__(exit_code, sentence, run, postmortem)
        self.exit_code, self.sentence, self.run, self.postmortem = exit_code, sentence, run, postmortem

    def __str__(self) -> str:
        lines = [f"{self.sentence} (exit code {self.exit_code})"]
        lines += [line for line in self.postmortem.splitlines() if line != self.sentence]
        lines += [f"folder: {self.run.folder}"] if self.run is not None else []
        return "\n".join(lines)


def _sentence(said: str) -> str:
    """The line that says why; every one of the program's errors begins with its [component]."""
    lines = said.splitlines()
    errors = [
        line
        for line in lines
        if re.match(r"\[[^\]]+\] ", line) and not re.match(r"\[(postmortem|rescue|Step \d+)\] ", line)
    ]
    if errors:
        return errors[-1]
    plain = [line for line in lines if not line.startswith(("[", "Run with --help"))]
    return plain[-1] if plain else "the program said nothing"


def _error(ended: command.Ended, run: Any = None) -> RunError:
    killed = [line.partition("] ")[2] for line in ended.said.splitlines() if line.startswith("[postmortem] ")]
    sentence = killed[0] if killed else _sentence(ended.said)
    if ended.timed_out:
        sentence = "it was stopped at its timeout" + (
            ", and goes on with resume=" if ended.exit_code == _RESUMABLE else ""
        )
    elif ended.exit_code == _RESUMABLE and not killed:
        sentence = "it was stopped before its end, and goes on with resume="
    return RunError(ended.exit_code, sentence, run, "\n".join(killed))


def _of_file(scratch: Path, experiment: Mapping[str, Any], cwd: Optional[Where]) -> List[str]:
    """What only a file can say goes to a file; the rest is set, so that its paths are relative to the working folder
    and errors name keys, not lines that nobody has written."""
    file = scratch / "experiment.toml"
    of_file = {key: experiment[key] for key in ("extends", "remove") if key in experiment}
    base = os.path.join(os.getcwd() if cwd is None else os.fspath(cwd), os.fspath(of_file.get("extends", "")))
    if "extends" in of_file and os.path.isfile(base):
        of_file["extends"] = os.path.abspath(base)
    file.write_text("".join(f"{key} = {toml_text.value_text(value)}\n" for key, value in of_file.items()))
    words = [str(file)]
    for key, value in toml_text.settings({k: v for k, v in experiment.items() if k not in of_file}):
        words += ["--set", f"{key}={value}"]
    return words


def _start(
    name: str,
    experiment: Optional[Experiment],
    resume: Optional[Where],
    words: List[str],
    cwd: Optional[Where],
    progress: Progress,
    timeout: Optional[float],
) -> Tuple[command.Ended, Optional[Path]]:
    """Calls `headroom NAME` with an experiment, or the folder to go on in: how it ended, and the folder that it has made
    or gone on in, None where there is none. KeyboardInterrupt."""
    if (experiment is None) == (resume is None):
        raise TypeError(f"{name}() needs an experiment, or resume= with a folder, and not both")
    with tempfile.TemporaryDirectory(prefix="headroom-") as scratch:
        folder_to = Path(scratch) / "folder"
        if resume is not None:
            of_python = isinstance(resume, (Run, Sweep))  # whose folder is relative to this Python's, not to `cwd`
            what = ["--resume", os.path.abspath(resume) if of_python else os.fspath(resume)]
        elif isinstance(experiment, Mapping):
            what = _of_file(Path(scratch), experiment, cwd)
        else:
            what = [os.fspath(experiment)]  # type: ignore[arg-type]
        all_words = [name, "--folder-to", str(folder_to), *what, *words]
        ended = command.call(all_words, progress=progress, timeout=timeout, cwd=cwd)
        folder = Path(folder_to.read_text().rstrip("\n")) if folder_to.exists() else None
    if ended.interrupted:
        raise KeyboardInterrupt(f"headroom.{name}(resume={str(folder)!r}) goes on" if folder else "nothing was begun")
    return ended, folder


def set_words(values: Optional[Mapping[str, Any]]) -> List[str]:
    return [word for key, value in (values or {}).items() for word in ("--set", f"{key}={toml_text.value_text(value)}")]


def _common_words(
    set: Optional[Mapping[str, Any]], resume: Optional[Where], out: Where, plan: bool, plugin_dirs: Sequence[Where]
) -> List[str]:
    words = set_words(set) + ["--no-plan"] * (not plan)
    words += [] if resume is not None else ["--out", os.fspath(out)]
    for folder in plugin_dirs:
        words += ["--plugin-dir", os.fspath(folder)]
    return words


def run(
    experiment: Optional[Experiment] = None,
    *,
    set: Optional[Mapping[str, Any]] = None,
    resume: Optional[Where] = None,
    changed: bool = False,
    out: Where = "runs",
    nproc: Optional[int] = None,
    until_epoch: Optional[int] = None,
    plan: bool = True,
    plugin_dirs: Sequence[Where] = (),
    progress: Progress = None,
    check: bool = True,
    timeout: Optional[float] = None,
    cwd: Optional[Where] = None,
) -> Run:
    """Runs an experiment to its end in a process of its own, as `headroom run` does, and returns its Run.

    experiment: the path of a TOML file, the name of one that comes with Headroom, or a dict of sections, whose paths
        are relative to the working folder: {"extends": "quick_demo", "train": {"epochs": 2}}.
    set: key -> value, over those of the experiment: {"train.batch_size": 8, "memory.limit": "2 GiB"}.
    resume: instead of an experiment, a Run or its folder that is to go on; `changed`: also where that changes the
        mathematics.
    out: parent of runs/<name>/<time>-<id>. nproc: processes that share each window. until_epoch: saves and stops at its
        end.
    plan: whether memory is predicted first. plugin_dirs: folders where plugins are looked for first.
    progress: None: as it suits this Python (a terminal's bar, a line that is rewritten in a notebook, lines); False:
        nothing; a function: it is called with each line.
    check: raise headroom.RunError where the run does not end well. Without it a Run comes back whose status tells, if
        it got as far as having a folder.
    timeout: seconds after which it saves and stops (exit code 75).
    cwd: working folder; None: this Python's.

    Ctrl-C saves and stops the run, then KeyboardInterrupt is raised; a second Ctrl-C ends it at once. From another
    thread than the main one Ctrl-C does not reach it. Neither torch nor numpy is imported.

    RunError: exit code, the program's sentence, the run and its post-mortem. TypeError: a value that TOML has no word
    for.
    """
    words = _common_words(set, resume, out, plan, plugin_dirs) + ["--changed"] * changed
    words += [] if nproc is None else ["--nproc", str(nproc)]
    words += [] if until_epoch is None else ["--until-epoch", str(until_epoch)]
    ended, folder = _start("run", experiment, resume, words, cwd, progress, timeout)
    ended_well = ended.exit_code == 0 or (
        until_epoch is not None and ended.exit_code == _RESUMABLE and not ended.timed_out
    )
    if folder is None:
        raise _error(ended)
    found = Run(folder)
    found.plugin_dirs, found._said = [os.path.abspath(os.path.join(cwd or "", p)) for p in plugin_dirs], ended.said
    if check and not ended_well:
        raise _error(ended, found)
    return found


def sweep(
    experiment: Optional[Experiment] = None,
    *,
    set: Optional[Mapping[str, Any]] = None,
    resume: Optional[Where] = None,
    out: Where = "runs",
    jobs: Optional[int] = None,
    plan: bool = True,
    plugin_dirs: Sequence[Where] = (),
    progress: Progress = None,
    check: bool = True,
    timeout: Optional[float] = None,
    cwd: Optional[Where] = None,
) -> Sweep:
    """Runs an experiment with the settings of its [sweep], as `headroom sweep` does, and returns the Sweep. jobs:
    largest number of trials at once. resume: a Sweep or its folder that is to go on. The rest as run(); trials that
    fail or do not fit are in Sweep.table() and raise nothing."""
    words = _common_words(set, resume, out, plan, plugin_dirs if resume is None else ())
    words += [] if jobs is None else ["--jobs", str(jobs)]
    ended, folder = _start("sweep", experiment, resume, words, cwd, progress, timeout)
    if folder is None:
        raise _error(ended)
    found = Sweep(folder)
    if check and ended.exit_code != 0:
        raise _error(ended, found)
    return found


def ask(
    of: Run,
    words: List[str],
    which: Union[str, int],
    set: Optional[Mapping[str, Any]] = None,
    progress: Progress = False,
    timeout: Optional[float] = None,
) -> Dict[str, Any]:
    """What a command that uses a run's model answers in JSON. RunError where it fails."""
    checkpoint = which if which in ("best", "last") else str(of.checkpoint(which))
    more = ["--json", "--checkpoint", str(checkpoint), *set_words(set)]
    for folder in of.plugin_dirs:
        more += ["--plugin-dir", folder]
    ended = command.call(words + more, progress=progress, timeout=timeout, answers=True)
    if ended.interrupted:
        raise KeyboardInterrupt
    if ended.exit_code != 0:
        raise _error(ended, of)
    return json.loads(ended.answer)
