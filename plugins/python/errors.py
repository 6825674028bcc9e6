"""Exceptions of the user's code, as C++ takes them: (kind, sentence, traceback, value)."""

import functools
import gc
import os
import traceback

# torch.compile does nothing in the user's file: a step that is compiled is one by model.options.compile.
os.environ["TORCHDYNAMO_DISABLE"] = "1"

import torch

_memory_errors = (MemoryError,) + tuple(
    getattr(torch, name) for name in ("OutOfMemoryError",) if hasattr(torch, name)
) + (torch.cuda.OutOfMemoryError,)
_packages = os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__)))


def _ran_out_of_memory(error):
    return any(
        isinstance(one, _memory_errors)
        or (isinstance(one, RuntimeError) and "DefaultCPUAllocator: " in str(one))
        for one in _chain(error)
    )


def explain(error, folder=""):
    """(kind, sentence, traceback, None) of an exception. Whatever its frames held is free afterwards."""
    memory = _ran_out_of_memory(error)
    if memory:
        result = ("memory", _place(error, folder) + "out of memory", "", None)
    elif type(error).__name__ == "FailOnRecompileLimitHit":
        sentence = (
            "the module is compiled again with every step, since a number of Python in it changes: keep that in a buffer, "
            "or leave model.options.compile out"
        )
        result = ("input", sentence, "", None)
    elif isinstance(error, InputError):
        result = ("input", str(error), "", None)
    else:
        text = str(error).strip() or "no message"
        result = ("code", f"{_place(error, folder)}{type(error).__name__}: {text}", _traceback_text(error), None)
    for one in _chain(error):
        traceback.clear_frames(one.__traceback__)
        one.__traceback__ = one.__cause__ = one.__context__ = None
    del error
    gc.collect()
    return result


def _guarded(function):
    @functools.wraps(function)
    def call(*arguments):
        try:
            return ("", "", "", function(*arguments))
        except BaseException as error:  # SystemExit too: the user's file does not end the run
            problem = error
        folder = getattr(arguments[0], "folder", "") if arguments else ""
        result = explain(problem, folder or _latest_folder)
        return result

    return call
