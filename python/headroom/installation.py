"""Where this package's program and libraries are: in a wheel beside it, in a clone below build/release."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Dict

_PACKAGE = Path(__file__).resolve().parent


def _root() -> Path:
    """The folder that holds bin/headroom and lib/. HEADROOM_ROOT names another build of a clone."""
    if named := os.environ.get("HEADROOM_ROOT"):
        return Path(named)
    if (_PACKAGE / "bin" / "headroom").exists():
        return _PACKAGE
    return _PACKAGE.parent.parent / "build" / "release"


program = str(_root() / "bin" / "headroom")

try:
    from _headroom_command import VERSION as version
except ImportError:  # a clone, whose folder python/ is on PYTHONPATH
    version = "0.1.0"


def library(name: str) -> str:
    """The path of the shared library libNAME.so that the package loads. ImportError where this installation lacks
    it."""
    path = _root() / "lib" / f"lib{name}.so"
    if not path.exists():
        raise ImportError(f"{path} is missing: build Headroom with ./headroom build, or install its wheel again")
    return str(path)


def check_torch() -> None:
    """ImportError with one sentence where the installed torch is not the one that the program was built with."""
    try:
        from _headroom_command import torch_folder
    except ImportError:  # a clone: its program finds the LibTorch that it was built with
        return
    torch_folder()


def environment() -> Dict[str, str]:
    """What the program is started with. ImportError as check_torch()."""
    try:
        from _headroom_command import environment as of_wheel
    except ImportError:
        return dict(os.environ)
    return of_wheel()
