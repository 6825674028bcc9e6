"""The module of a run whose model is a Python file (model.plugin = "python"), built as the program builds it."""

from __future__ import annotations

import importlib
import importlib.util
import os
import random
import sys
import sysconfig
from typing import Any, Dict, Mapping, Tuple

_loaded: Dict[str, Any] = {}  # modules that the latest import_file() left in sys.modules, by name
_installed = {os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}


def _folder_and_name(path: str) -> Tuple[str, str]:
    """The folder that imports start from, and the name of the file as a module: of a package, as in plugins/python."""
    folder = os.path.dirname(path)
    name = os.path.splitext(os.path.basename(path))[0]
    while os.path.exists(os.path.join(folder, "__init__.py")):
        name = os.path.basename(folder) + "." + name
        folder = os.path.dirname(folder)
    return folder, name


def _is_own(module: Any) -> bool:
    """Whether it is the user's, not of what is installed."""
    file = os.path.realpath(getattr(module, "__file__", None) or "")
    packaged = set(file.split(os.sep)) & {"site-packages", "dist-packages"}
    return file.endswith(".py") and not packaged and not any(file.startswith(path + os.sep) for path in _installed)


def _named_as_in(folder: str) -> Dict[str, Any]:
    """The user's imported modules whose names the folder has files for, from there or from elsewhere."""
    there = {os.path.splitext(entry)[0] for entry in os.listdir(folder)} - {"__main__", __name__.partition(".")[0]}
    return {n: m for n, m in list(sys.modules.items()) if n.partition(".")[0] in there and _is_own(m)}


def import_file(path: str) -> Any:
    """The file as a module, read anew, with whatever it imports from its own folder. What this Python had imported
    under these names stays its own."""
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path}, the file of the run's model, is gone; load_state_dict() gives its weights")
    folder, name = _folder_and_name(os.path.abspath(path))
    for other, module in _loaded.items():
        if sys.modules.get(other) is module:
            del sys.modules[other]
    _loaded.clear()
    aside = _named_as_in(folder)
    for other in aside:
        del sys.modules[other]
    if folder in sys.path:
        sys.path.remove(folder)
    sys.path.insert(0, folder)  # and it stays: a module may import when it is called
    importlib.invalidate_caches()
    try:
        if "." in name:
            importlib.import_module(name.rpartition(".")[0])
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} is no Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module
    finally:
        _loaded.update({n: m for n, m in _named_as_in(folder).items() if n not in aside})
        sys.modules.update(aside)


def build(options: Mapping[str, Any]) -> Any:
    """The module of [model.options], with first weights of its own. This Python's random numbers stay where they
    were."""
    import torch

    state = random.getstate()
    dtype = torch.get_default_dtype()
    try:
        with torch.random.fork_rng(devices=[]):
            made = getattr(import_file(options["file"]), options["class"])(**options.get("args", {}))
    finally:
        random.setstate(state)
        torch.set_default_dtype(dtype)
    return made


def fill(module: Any, tensors: Mapping[str, Any]) -> Any:
    """Loads the weights and returns the module in eval(). RuntimeError where the names or shapes are others."""
    widths = {tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()}
    if len(widths) == 1:  # of train.precision: a copy into float32 would round those of "fp64"
        module.to(widths.pop())
    missing, unexpected = module.load_state_dict(tensors, strict=False)
    # A checkpoint has a tied weight once; a module has it under each of its names.
    own: Dict[str, Any] = module.state_dict(keep_vars=True)
    places = {own[name].data_ptr() for name in tensors if name in own}
    missing = [name for name in missing if own[name].numel() > 0 and own[name].data_ptr() not in places]
    if missing or unexpected:
        raise RuntimeError(
            f"the checkpoint lacks {', '.join(missing) or 'nothing'} of the module, and has "
            f"{', '.join(unexpected) or 'nothing'} beside it: the file is another one than the run had"
        )
    return module.eval()
