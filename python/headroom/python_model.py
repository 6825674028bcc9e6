"""The module of a run whose model is a Python file (model.plugin = "python"), built as the program builds it."""

from __future__ import annotations

import importlib
import importlib.util
import os
import random
import sys
from typing import Any, Dict, List, Mapping, Tuple

_loaded: List[str] = []  # names of the modules that the latest import_file() left in sys.modules


def _folder_and_name(path: str) -> Tuple[str, str]:
    """The folder that imports start from, and the name of the file as a module: of a package, as in plugins/python."""
    folder = os.path.dirname(path)
    name = os.path.splitext(os.path.basename(path))[0]
    while os.path.exists(os.path.join(folder, "__init__.py")):
        name = os.path.basename(folder) + "." + name
        folder = os.path.dirname(folder)
    return folder, name


def _imported_from(folder: str) -> List[str]:
    """Names of modules that are files of this folder, whoever imported them."""

    def is_of(name: str, module: Any) -> bool:
        file, base = getattr(module, "__file__", None) or "", os.path.join(folder, *name.split("."))
        return bool(file) and os.path.abspath(file) in (base + ".py", os.path.join(base, "__init__.py"))

    ours = __name__.partition(".")[0]
    return [
        name for name, module in list(sys.modules.items()) if is_of(name, module) and name.partition(".")[0] != ours
    ]


def import_file(path: str) -> Any:
    """The file as a module, read anew, with whatever it imports from its own folder. What this Python had imported
    under these names stays its own."""
    folder, name = _folder_and_name(os.path.abspath(path))
    if not os.path.exists(path):
        raise FileNotFoundError(
            f"{path}, the file of the run's model, is gone; load_state_dict() gives its weights all the same"
        )
    for other in _loaded:
        sys.modules.pop(other, None)
    _loaded.clear()
    aside = {other: sys.modules.pop(other) for other in {name, *_imported_from(folder)} & set(sys.modules)}
    if folder not in sys.path:
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
        _loaded.extend({name, *_imported_from(folder)} - set(aside))
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
