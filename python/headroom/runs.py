"""Runs that are on the disk: what their folders hold, and what can be asked of their models. docs/results.md lists the
files. Nothing is kept: a run that goes on has more at the next call."""

from __future__ import annotations

import fcntl
import html
import json
import os
import re
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Union

from . import python_model, tables, tensors, toml_text
from .predictions import Prediction

Where = Union[str, "os.PathLike[str]"]


def _json(file: Path) -> Dict[str, Any]:
    """{} where the file is missing or damaged."""
    try:
        value = json.loads(file.read_text(encoding="utf-8", errors="replace"))
    except (FileNotFoundError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def runs_below(folder: Path, levels: int = 2) -> List[Path]:
    """Run folders in this one and `levels` - 1 below; a sweep's trials are its own."""
    found: List[Path] = []
    for entry in sorted(folder.iterdir()) if folder.is_dir() else []:
        if (entry / "experiment.toml").is_file():
            found.append(entry)
        elif levels > 1 and entry.is_dir() and not (entry / "sweep.json").exists():
            found += runs_below(entry, levels - 1)
    return found


def newest(runs: Sequence[Path]) -> Path:
    """The one that was started or resumed last: a run writes its experiment.toml then. REQUIRES one."""
    return max(runs, key=lambda run: ((run / "experiment.toml").stat().st_mtime_ns, run.name))


class Run:
    """A run by its folder, runs/<name>/<time>-<id>. FileNotFoundError where that is none.

    >>> run = headroom.Run.latest("runs/quick_demo")
    >>> run.status, run.summary["metrics"]["val/loss"]
    >>> step, loss = run.curve("val/loss")
    """

    def __init__(self, folder: Where) -> None:
        self.folder = Path(folder)
        self.settings: Dict[str, Any] = {}  # of a sweep's trial: its values of the swept keys
        self.plugin_dirs: List[str] = []  # where evaluate() and predict() look for plugins first
        self._said: Optional[str] = None
        if not (self.folder / "experiment.toml").is_file():
            below = runs_below(self.folder, 3)
            hint = f"the newest run in it is {newest(below)}" if below else "give a run's own, runs/<name>/<time>-<id>"
            raise FileNotFoundError(f"{self.folder} is not a run folder: {hint}")

    @classmethod
    def latest(cls, folder: Where = "runs") -> Run:
        """The run in runs/<name>, or in runs, that was started or resumed last; not a sweep's trial. FileNotFoundError
        where there is none."""
        found = runs_below(Path(folder))
        if not found:
            raise FileNotFoundError(f"{folder} holds no run: name the folder that `headroom run` made, runs/<name>")
        return cls(newest(found))

    # -- what it was and how it went --

    @property
    def name(self) -> str:
        return self.folder.resolve().parent.name

    @property
    def config(self) -> Dict[str, Any]:
        """The resolved experiment: with what it extends, what was set and all defaults; paths absolute. ImportError on
        Python before 3.11 without the package tomli."""
        return toml_text.read(self.folder / "experiment.toml")

    @property
    def summary(self) -> Dict[str, Any]:
        """summary.json: "state", "metrics" (of the last evaluation), "best", "steps", "epochs", "memory" (bytes), ...
        {} until the run has ended for the first time."""
        return _json(self.folder / "summary.json")

    @property
    def postmortem(self) -> Optional[Dict[str, Any]]:
        """postmortem.json, how the run ended, unless it ended well: docs/postmortem.md. None without one."""
        return _json(self.folder / "postmortem.json") or None

    @property
    def status(self) -> str:
        """ "running", "finished", "stopped_early", "resumable", "interrupted", "failed" or "ended_badly" (killed or
        crashed), as `headroom runs list` says."""
        if self._is_written():
            return "running"
        state = str(self.summary.get("state", ""))
        ended = (self.postmortem or {}).get("ended", {})
        if state and (not ended or ended.get("kind") in ("stopped", "failed")):
            return state
        return "failed" if ended.get("kind") == "failed" else "ended_badly"

    def _is_written(self) -> bool:
        try:
            lock = os.open(self.folder / "lock", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(
                lock, fcntl.LOCK_SH | fcntl.LOCK_NB
            )  # shared: those who look do not take each other for the run
            return False
        except BlockingIOError:
            return True
        except OSError:  # a file system without locks
            return False
        finally:
            os.close(lock)

    @property
    def log(self) -> str:
        """What the program said: of a run that this Python started, and of a sweep's trial. Else "", since the folder
        keeps events and not lines."""
        if self._said is not None:
            return self._said
        trial = self.folder.resolve().parent.parent  # of a sweep: sweep/sweep_folder.hpp
        if trial.parent.name != "trials" or not (trial / "log.txt").is_file():
            return ""
        return (trial / "log.txt").read_text(encoding="utf-8", errors="replace")

    def events(self, kind: Optional[str] = None) -> List[Dict[str, Any]]:
        """The lines of events.jsonl, or those of a kind: "start", "scalars", "out_of_memory", "checkpoint", ..."""
        found = tables.json_lines(self.folder / "events.jsonl")
        return [event for event in found if kind is None or event.get("kind") == kind]

    def metrics(self, pandas: bool = False) -> Any:
        """All scalars, a row for each step that has any: "step" and "epoch" (from 1) int64 [rows], and for each name,
        as "train/loss_step" and "val/loss", float64 [rows], NaN where the step has none. A dict of numpy arrays, or a
        DataFrame. ImportError without numpy or pandas."""
        columns = tables.a_row_a_step(tables.scalars(self.folder / "metrics.csv"))
        return tables.frame(columns) if pandas else tables.arrays(columns)

    def curve(self, name: str) -> tuple:
        """(steps int64 [n], values float64 [n]) of one scalar, ready to plot. KeyError names those that there are."""
        rows = tables.scalars(self.folder / "metrics.csv")
        chosen = [(step, value) for step, _, of, value in rows if of == name]
        if not chosen:
            raise KeyError(f"{name!r} is not measured: there are {', '.join(dict.fromkeys(row[2] for row in rows))}")
        columns: tables.Columns = {"step": [step for step, _ in chosen], "value": [value for _, value in chosen]}
        return tuple(tables.arrays(columns).values())

    def memory(self, pandas: bool = False) -> Any:
        """What was held, every memory.log_every steps: "time" datetime64[ms], "step" int64 [rows], and bytes by owner
        int64 [rows]: "held_bytes" in all, "parameters_bytes", "activations_bytes", ... As metrics()."""
        columns = tables.of_records(tables.json_lines(self.folder / "memory.jsonl"))
        return tables.frame(columns) if pandas else tables.arrays(columns)

    # -- its model --

    @property
    def checkpoints(self) -> Dict[int, Path]:
        """Step -> folder of each checkpoint that is there, in order."""
        found = (re.fullmatch(r"step-(\d{8,})", path.name) for path in (self.folder / "checkpoints").glob("step-*"))
        steps = sorted(int(match[1]) for match in found if match)
        return {step: self.folder / "checkpoints" / f"step-{step:08d}" for step in steps}

    def checkpoint(self, which: Union[str, int] = "best") -> Path:
        """The folder of "best" (by experiment.metric), "last" or a step. FileNotFoundError where there is none."""
        steps = self.checkpoints
        if isinstance(which, str):
            path = self.folder / "checkpoints" / which
            if which in ("best", "last") and path.is_dir():
                return path.resolve()
        elif which in steps:
            return steps[which]
        there = ", ".join(map(str, steps)) or "none"
        raise FileNotFoundError(
            f'{self.folder} has no checkpoint {which!r}: give "best", "last" or a step; there are {there}'
        )

    def load_state_dict(self, which: Union[str, int] = "best", average: bool = True) -> Dict[str, Any]:
        """Name -> tensor of torch on the CPU, parameters and buffers, mapped from the file: nothing is unpickled. The
        averages of a run with train.ema in place of its parameters, as evaluate() uses them, unless `average` is False.
        FileNotFoundError without such a checkpoint."""
        checkpoint = self.checkpoint(which)
        found = tensors.torch_tensors(checkpoint / "model.safetensors")
        if average and (self.config.get("train", {}).get("ema") or {}).get("decay", 0) > 0:
            state = tensors.torch_tensors(checkpoint / "state.safetensors")
            found.update({name: state["ema/" + name] for name in found if "ema/" + name in state})
        return found

    def load_model(self, which: Union[str, int] = "best") -> Any:
        """The run's torch.nn.Module on the CPU, with its weights, in eval(): of model.plugin = "python". The run's file
        is imported, so its code runs here. ValueError for a model of C++, RuntimeError where the file has changed too
        much.
        """
        model = self.config["model"]
        if Path(model["plugin"]).name not in ("python", "python.so"):
            raise ValueError(
                f"the model of {self.folder} is the plugin {model['plugin']!r}, which is no Python: load_state_dict() "
                "gives its weights, and `headroom export --format torchscript` the model as a program (docs/export.md)"
            )
        module = python_model.build(model["options"])
        return python_model.fill(module, self.load_state_dict(which))

    # -- what its model does --

    def evaluate(self, split: str = "val", which: Union[str, int] = "best", **options: Any) -> Dict[str, Any]:
        """Loss and metrics on "train", "val" or "test", by the program: a dict with "metrics", "channels", "classes",
        "samples", "seconds". Options: set, progress, timeout. headroom.RunError where it fails."""
        from .experiments import ask

        return ask(self, ["evaluate", str(self.folder), "--split", split], which, **options)

    def predict(
        self, input: Where, which: Union[str, int] = "best", out: Optional[Where] = None, **options: Any
    ) -> Prediction:
        """What the model does on one recording, written to predictions/<name of the input> or `out`. Options as
        evaluate(). headroom.RunError where it fails."""
        from .experiments import ask

        words = ["predict", str(self.folder), "--input", os.fspath(input)]
        report = ask(self, words + (["--out", os.fspath(out)] if out else []), which, **options)
        return Prediction(Path(report["out"]).parent, report)

    @property
    def predictions(self) -> Dict[str, Prediction]:
        """Name of the recording -> what predict() and `headroom predict` have written."""
        found = sorted(path for path in (self.folder / "predictions").glob("*") if path.is_dir())
        return {path.name: Prediction(path) for path in found}

    # -- as a notebook shows it --

    def _facts(self) -> Dict[str, str]:
        summary = self.summary
        facts = {"status": self.status}
        if "steps" in summary:
            facts["trained"] = f"{summary['steps']} steps, {summary.get('epochs')} epochs"
        best = summary.get("best") or {}
        if best.get("value") is not None:
            facts["best"] = f"{best['metric']} {best['value']:.6g} at epoch {best['epoch']}"
        last = {
            name: value for name, value in (summary.get("metrics") or {}).items() if isinstance(value, (int, float))
        }
        facts.update({name: f"{value:.6g}" for name, value in last.items()})
        return facts

    def __repr__(self) -> str:
        facts = self._facts()
        shown = [f"{name} {facts[name]}" for name in ("train/loss", "val/loss", "best") if name in facts]
        return f"Run({str(self.folder)!r}, {', '.join([facts['status']] + shown)})"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in self._facts().items())
        return f"<table><caption>{html.escape(str(self.folder))}</caption>{rows}</table>"

    def __fspath__(self) -> str:
        return str(self.folder)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and self.folder.resolve() == other.folder.resolve()

    def __hash__(self) -> int:
        return hash(self.folder.resolve())
