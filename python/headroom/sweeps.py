"""Sweeps that are on the disk: docs/sweeps.md."""

from __future__ import annotations

import html
import math
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from . import tables, toml_text
from .runs import Run, Where, _json, newest, runs_below


class Sweep:
    """A sweep by its folder, runs/<name>/<time>-<id>. FileNotFoundError where that is none.

    >>> sweep = headroom.sweep("sweeps/batch_x_accumulation", jobs=2)
    >>> sweep.best().settings
    >>> sweep.table(pandas=True)
    """

    def __init__(self, folder: Where) -> None:
        self.folder = Path(folder)
        self._plan = _json(self.folder / "sweep.json")
        if "trials" not in self._plan:
            raise FileNotFoundError(f"{self.folder} is not a sweep's folder: it holds no sweep.json")

    @property
    def metric(self) -> str:
        """experiment.metric, by which trials are compared."""
        return self._plan["metric"]

    @property
    def keys(self) -> List[str]:
        """The swept keys."""
        return list(self._plan["keys"])

    def _settings(self, trial: Dict[str, Any]) -> Dict[str, Any]:
        return {key: toml_text.value(trial["set"][key]) for key in self.keys}

    def _run(self, trial: Dict[str, Any]) -> Optional[Run]:
        """Its run that was started or resumed last; None: it never began."""
        found = runs_below(self.folder / "trials" / trial["id"])
        if not found:
            return None
        run = Run(newest(found))
        run.settings = self._settings(trial)
        run.plugin_dirs = list(self._plan.get("plugin_dirs", []))
        return run

    def _decided(self, trial: Dict[str, Any]) -> Dict[str, Any]:
        """What the sweep itself decided about it: "state" and "why" of one that failed or does not fit."""
        return _json(self.folder / "trials" / trial["id"] / "trial.json")

    @property
    def trials(self) -> List[Run]:
        """The runs of all trials that began, each with its `settings`: swept key -> value. Those that never did,
        because they do not fit, are in table() alone."""
        runs = (self._run(trial) for trial in self._plan["trials"])
        return [run for run in runs if run is not None]

    def table(self, pandas: bool = False) -> Any:
        """A row for each trial: "trial", the swept keys, "state" (docs/sweeps.md), "why", "metric" (the best value of
        experiment.metric), "steps", "epochs", "seconds", "peak_bytes". A dict of numpy arrays, or a DataFrame; NaN or
        None where a trial has no such figure."""
        rows = []
        for trial in self._plan["trials"]:
            run, decided = self._run(trial), self._decided(trial)
            summary = run.summary if run is not None else {}
            state = decided.get("state") or self._state(run)
            row = {"trial": trial["id"], **self._settings(trial), "state": state}
            row.update(why=decided.get("why", ""), metric=_value(summary), steps=summary.get("steps"))
            row.update(epochs=summary.get("epochs"), seconds=summary.get("train_seconds"))
            row["peak_bytes"] = (summary.get("memory") or {}).get("measured_peak_bytes")
            rows.append(row)
        columns = tables.of_records(rows)
        return tables.frame(columns) if pandas else tables.arrays(columns)

    @staticmethod
    def _state(run: Optional[Run]) -> str:
        """Of a trial that the sweep has decided nothing about: sweep/results.cpp."""
        if run is None:
            return "waiting"
        status = run.status
        return (
            "finished" if status in ("finished", "stopped_early") else status if status == "running" else "interrupted"
        )

    def best(self, metric: Optional[str] = None, better: str = "lower") -> Run:
        """The finished trial whose best experiment.metric is best; or that whose last evaluation is best by another
        metric ("val/rmse"), of which "lower" or "higher" is `better`. LookupError where none has finished with it."""
        if better not in ("lower", "higher"):
            raise ValueError(f'better is {better!r}: it must be "lower" or "higher"')
        found: List[Tuple[float, int, Run]] = []
        for run in self.trials:
            summary = run.summary
            value = _value(summary) if metric is None else (summary.get("metrics") or {}).get(metric)
            if run.status in ("finished", "stopped_early") and value is not None and not math.isnan(value):
                lower = (summary["best"]["better"] if metric is None else better) == "lower"
                found.append((value if lower else -value, len(found), run))
        if not found:
            raise LookupError(
                f"no trial of {self.folder} has finished with {metric or self.metric}: table() tells their states"
            )
        return min(found)[2]

    def __len__(self) -> int:
        return len(self._plan["trials"])

    def __repr__(self) -> str:
        return f"Sweep({str(self.folder)!r}, {len(self)} trials over {', '.join(self.keys)})"

    def _repr_html_(self) -> str:
        rows = [[*self.keys, "state", self.metric]]
        for trial in self._plan["trials"]:
            run, decided = self._run(trial), self._decided(trial)
            value = _value(run.summary) if run is not None else None
            cells = list(self._settings(trial).values())
            rows.append([*cells, decided.get("state") or self._state(run), "" if value is None else f"{value:.6g}"])
        lines = ("".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) for row in rows)
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        return f"<table><caption>{html.escape(str(self.folder))}</caption>{body}</table>"

    def __fspath__(self) -> str:
        return str(self.folder)


def _value(summary: Dict[str, Any]) -> Optional[float]:
    return (summary.get("best") or {}).get("value")
