"""The command `headroom`: becomes the program of that name in the package headroom. Imports neither that nor torch."""

import importlib.util
import os
import re
import sys

VERSION = "@version@"
TORCH_VERSION = "@torch@"  # what the program was built with
TORCH_HAS_CUDA = "@cuda@" == "TRUE"

SITE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(SITE, "headroom", "bin", "headroom")


def torch_folder():
    """The folder of the installed torch. ImportError with one sentence where the program was built with another one."""
    advice = f"{sys.executable} -m pip install torch=={TORCH_VERSION}"
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise ImportError(f"headroom {VERSION} needs torch {TORCH_VERSION}, and none is installed: {advice}")
    folder = os.path.dirname(spec.origin)
    with open(os.path.join(folder, "version.py")) as file:
        version = re.search(r"__version__ = '([^']*)'", file.read()).group(1)
    if version.split("+")[0] != TORCH_VERSION:
        raise ImportError(f"headroom {VERSION} needs torch {TORCH_VERSION}, and {folder} is torch {version}: {advice}")
    if TORCH_HAS_CUDA and not os.path.exists(os.path.join(folder, "lib", "libtorch_cuda.so")):
        raise ImportError(f"headroom {VERSION} needs torch {TORCH_VERSION} with CUDA, and {folder} is torch {version}, without it")
    return folder


def environment():
    """What the program is started with: it looks for torch beside the package. One that lies elsewhere, as the system's
    below a virtual environment, it has to be told. ImportError as torch_folder()."""
    torch, told = torch_folder(), dict(os.environ)
    if not os.path.exists(os.path.join(SITE, "torch", "lib")):
        folders = [os.path.join(torch, "lib"), os.environ.get("LD_LIBRARY_PATH")]
        told["LD_LIBRARY_PATH"] = ":".join(filter(None, folders))
    return told


def main():
    try:
        told = environment()
    except ImportError as problem:
        print(problem, file=sys.stderr)
        return 2
    if sys.argv[1:2] == ["watch"]:  # whose command may have a torch of its own
        told = dict(os.environ)
    os.execve(PROGRAM, ["headroom", *sys.argv[1:]], told)
