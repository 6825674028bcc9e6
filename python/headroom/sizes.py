"""Sizes of memory as text: "1.5 GiB"."""

from __future__ import annotations

import re
from typing import Optional

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}


def size_bytes(text: str) -> Optional[int]:
    """The bytes, at least 1; None for what is no size above 0."""
    size = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    if not size or size[2].lower() not in _UNITS or float(size[1]) <= 0:
        return None
    return max(round(float(size[1]) * _UNITS[size[2].lower()]), 1)


def size_text(count: int) -> str:
    value, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
