"""TOML: values of Python as the program reads them, and its files as dicts."""

from __future__ import annotations

import json
import math
import os
import re
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Tuple

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")


def key_text(key: str) -> str:
    return key if _BARE_KEY.match(key) else value_text(key)


def value_text(value: Any) -> str:
    """A value as TOML: bool, int, float, str, path, list, tuple, dict, and one number of numpy or torch. TypeError for
    any other."""
    if getattr(value, "ndim", None) == 0:
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, (str, os.PathLike)):
        # JSON's escapes are TOML's, but for a surrogate and DEL.
        return json.dumps(os.fspath(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(value_text, value)) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key_text(key)} = {value_text(inner)}" for key, inner in value.items()) + " }"
    raise TypeError(
        f"{value!r} is a {type(value).__name__}: an experiment holds bool, int, float, str, lists and dicts"
    )


def settings(experiment: Mapping[str, Any]) -> Iterator[Tuple[str, str]]:
    """(key, value as TOML) for each key of each section: ("train.epochs", "3")."""
    for section, keys in experiment.items():
        if not isinstance(keys, Mapping):
            yield key_text(section), value_text(keys)
            continue
        for key, value in keys.items():
            yield f"{key_text(section)}.{key_text(key)}", value_text(value)


def value(text: str) -> Any:
    """What value_text() wrote. Without tomllib only what is JSON too; other values stay text."""
    try:
        import tomllib

        return tomllib.loads(f"v = {text}")["v"]
    except (ImportError, ValueError):
        pass
    try:
        return json.loads(text)
    except ValueError:
        return text


def read(file: Path) -> Dict[str, Any]:
    """The file as a dict. ImportError where Python is older than 3.11 and the package tomli is not installed."""
    try:
        import tomllib
    except ImportError:
        try:
            import tomli as tomllib  # type: ignore[no-redef]
        except ImportError:
            raise ImportError(
                "reading an experiment needs Python 3.11 or the package tomli: pip install tomli"
            ) from None
    with open(file, "rb") as stream:
        return tomllib.load(stream)
