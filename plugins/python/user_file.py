"""What every Python of the plugin does with a file of the user: imports it, and says where it failed. Needs no torch.
CMake puts it in front of adapter.py and of dataset_worker.py: one module with each."""

import importlib
import importlib.util
import inspect
import os
import sys
import sysconfig
import traceback

_packages = sysconfig.get_path("purelib")
_standard = {os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}
_this_file = (lambda: None).__code__.co_filename


class InputError(Exception):
    """Something that the experiment file or the user's file can correct."""


def _require_suit(make, name, arguments, option):
    """That the class or function `name` can be called with them; `option` gave them."""
    try:
        inspect.signature(make).bind(**arguments)
    except TypeError as problem:
        raise InputError(f"{option} do not suit {name}{inspect.signature(make)}: {problem}") from None
    except ValueError:
        pass  # it has no signature that Python knows


def _chain(error):
    """The exception with all that it was raised from, or while handling."""
    seen, open_ = [], [error]
    while open_:
        error = open_.pop()
        if error is None or any(error is known for known in seen):
            continue
        seen.append(error)
        open_ += [error.__cause__, error.__context__]
    return seen


def _place(error, folder):
    """The innermost line of the user's own: below the folder of the file, or else outside of the packages."""
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    frames = [(code, line) for code, line in frames if code.co_filename != _this_file]
    if isinstance(error, SyntaxError) and error.filename:
        return f"{os.path.basename(error.filename)}, line {error.lineno}: "
    inside = [f for f in frames if folder and os.path.abspath(f[0].co_filename).startswith(folder + os.sep)]
    outside = [f for f in frames if not os.path.abspath(f[0].co_filename).startswith(_packages + os.sep)]
    for found in (inside, outside, frames):
        if found:
            code, line = found[-1]
            return f"{os.path.basename(code.co_filename)}, line {line}, in {code.co_name}: "
    return ""


def _traceback_text(error):
    """Without the lines of torch and of this file, where there are others."""
    whole = traceback.TracebackException.from_exception(error)
    one = whole
    while one is not None:
        kept = [f for f in one.stack if f.filename != _this_file and not f.filename.startswith(_packages + os.sep)]
        if kept:
            one.stack = traceback.StackSummary.from_list(kept)
        one = one.__cause__ or one.__context__
    return "".join(whole.format()).rstrip()


_latest_folder = ""
_local_modules = set()  # of the file's folder: read anew for each model
_own_modules = set()  # those, and what else was imported that is not installed


def _is_own(file):
    """Whether it is code that belongs to the user, not to what is installed."""
    parts = set(file.split(os.sep))
    is_installed = parts & {"site-packages", "dist-packages"} or any(file.startswith(s + os.sep) for s in _standard)
    return file.endswith(".py") and not is_installed


def _import_file(path, option):
    """The file as a module of its own name, beside whatever it imports from its folder. Always read anew."""
    global _latest_folder
    folder = os.path.dirname(path)
    name = os.path.splitext(os.path.basename(path))[0]
    while os.path.exists(os.path.join(folder, "__init__.py")):  # of a package: its relative imports work
        name = os.path.basename(folder) + "." + name
        folder = os.path.dirname(folder)
    for known in list(_local_modules):
        sys.modules.pop(known, None)
    _own_modules.difference_update(_local_modules)
    _local_modules.clear()
    if _latest_folder in sys.path:
        sys.path.remove(_latest_folder)
    sys.path.insert(0, folder)
    _latest_folder = folder
    importlib.invalidate_caches()
    before = set(sys.modules)
    try:
        if "." in name:
            importlib.import_module(name.rpartition(".")[0])
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None:
            raise InputError(f"{option} is {path}, which is no Python file: its name must end in .py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    finally:
        for other in set(sys.modules) - before | {name}:
            file = os.path.abspath(getattr(sys.modules.get(other), "__file__", None) or "")
            if not os.path.isfile(file) or not _is_own(os.path.realpath(file)):  # torch.ops names one that is not there
                continue
            _own_modules.add(other)
            if file.startswith(folder + os.sep):
                _local_modules.add(other)
    return module, folder
