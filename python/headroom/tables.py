"""Files of a run as columns: lists first, then arrays of numpy or a DataFrame of pandas."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any, Dict, List, Tuple

Columns = Dict[str, List[Any]]


def _whole_lines(file: Path) -> List[str]:
    """Without the last one where it is being written; none where there is no file yet."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    return text.split("\n")[:-1]  # not splitlines(), which would also cut at separators inside of a text


def json_lines(file: Path) -> List[Dict[str, Any]]:
    """Each line that is an object of JSON."""
    found = []
    for line in _whole_lines(file):
        try:
            value = json.loads(line)
        except ValueError:  # of a run that was killed
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def scalars(file: Path) -> List[Tuple[int, int, str, float]]:
    """(step, epoch, "split/metric", value) of each row of metrics.csv."""
    rows = csv.reader(_whole_lines(file)[1:])
    return [
        (int(row[0]), int(row[1]), f"{row[2]}/{row[3]}" if row[2] else row[3], float(row[4] or "nan"))
        for row in rows
        if len(row) == 5
    ]


def a_row_a_step(rows: List[Tuple[int, int, str, float]]) -> Columns:
    """step, epoch, and a column for each name: NaN where a step has no such value."""
    columns: Columns = {"step": [], "epoch": []}
    for step, epoch, name, value in rows:
        if not columns["step"] or columns["step"][-1] != step:
            for key, column in columns.items():
                column.append({"step": step, "epoch": epoch}.get(key, math.nan))
        if name not in columns:
            columns[name] = [math.nan] * len(columns["step"])
        columns[name][-1] = value
    return columns


def of_records(records: List[Dict[str, Any]]) -> Columns:
    """A column for each key of any record, None where one lacks it. Members of objects: "plugin_bytes/NAME"."""
    flat = []
    for record in records:
        row: Dict[str, Any] = {}
        for key, value in record.items():
            row.update(
                {f"{key}/{name}": inner for name, inner in value.items()} if isinstance(value, dict) else {key: value}
            )
        flat.append(row)
    return {key: [row.get(key) for row in flat] for key in dict.fromkeys(key for row in flat for key in row)}


def arrays(columns: Columns) -> Dict[str, Any]:
    """int64, float64 (NaN for None), bool, or objects, as the values of a column are; "time": datetime64[ms], in UTC.
    ImportError without numpy."""
    try:
        import numpy
    except ImportError:
        raise ImportError("arrays need the package numpy: pip install numpy") from None

    def array(name: str, values: List[Any]) -> Any:
        kinds = {type(value) for value in values}
        if name == "time":
            return numpy.array([str(value).rstrip("Z") for value in values], dtype="datetime64[ms]")
        if kinds == {bool}:
            return numpy.array(values)
        if kinds <= {int}:
            return numpy.array(values, dtype="int64")
        if kinds <= {int, float, type(None)}:
            return numpy.array([math.nan if value is None else value for value in values], dtype="float64")
        return numpy.array(values + [None], dtype=object)[:-1]  # lists among them stay lists

    return {name: array(name, values) for name, values in columns.items()}


def frame(columns: Columns) -> Any:
    """The same as a DataFrame. ImportError without pandas."""
    try:
        import pandas
    except ImportError:
        raise ImportError("a DataFrame needs the package pandas: pip install pandas") from None
    return pandas.DataFrame(arrays(columns))
