"""Headroom in Python: runs and their results, memory limits for loops of your own, and the data loader.

This folder is the package `headroom`. Names without an underscore are for its users. A name is imported when it is
first used, so that `import headroom` itself needs neither numpy nor torch:

    run, sweep, RunError            experiments.py        an experiment is run by the program
    Run, Sweep                      runs.py, sweeps.py    what a run folder or a sweep's folder holds
    limit, postmortem               guard.py              a hard limit on the tensors of this process
    Accumulator                     accumulator.py        windows of samples in a loop of one's own
    Loader, LoaderError             loader.py             the program's data loader as an iterable
    program                         installation.py       the path of the program

docs/python.md shows them in use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List

from .installation import check_torch, program, version as __version__

if TYPE_CHECKING:  # for editors and checkers of types: nothing is imported
    from .accumulator import Accumulator
    from .experiments import RunError, run, sweep
    from .guard import limit, postmortem
    from .loader import Loader, LoaderError
    from .runs import Run
    from .sweeps import Sweep

_MODULES = {
    "run": "experiments",
    "sweep": "experiments",
    "RunError": "experiments",
    "Run": "runs",
    "Sweep": "sweeps",
    "limit": "guard",
    "postmortem": "guard",
    "Accumulator": "accumulator",
    "Loader": "loader",
    "LoaderError": "loader",
}

__all__ = ["program", *_MODULES]

check_torch()  # ImportError where torch is not the one that Headroom was built with


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'headroom' has no attribute {name!r}; it has {', '.join(__all__)}")
    from importlib import import_module

    value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> List[str]:
    return sorted({*globals(), *_MODULES})
