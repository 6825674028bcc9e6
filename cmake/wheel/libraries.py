"""The shared libraries that a tree of programs needs, put beside it."""

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

# What every system that the wheel's tag names has itself.
SYSTEM = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|gcc_s|stdc\+\+))\.so\.")


def is_elf(path):
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def places_of_libraries(file):
    """Name to path, of all that the loader would load with the file; without those that it does not find."""
    listed = subprocess.run(["ldd", str(file)], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout
    return dict(re.findall(r"^\s*(\S+) => (/.*) \(0x", listed, re.MULTILINE))


def own_name(name, path):
    """libhdf5-0123abcd.so.103: a name that no other package's library has. The loader takes libraries of one name for one."""
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:8]
    stem, dot_so, rest = name.partition(".so")
    return f"{stem}-{digest}{dot_so}{rest}"


def needed_names(file, patchelf):
    listed = subprocess.run([patchelf, "--print-needed", str(file)], capture_output=True, text=True, check=True).stdout
    return listed.split()


def bundle(site, torch_libraries, patchelf):
    """Copies into `site`/headroom.libs, under names of their own, what the programs and libraries below `site` need beyond
    the system's and LibTorch, and points all of them there and at `site`/torch/lib. Paths are relative to each file, because
    pip puts headroom, headroom.libs and torch side by side wherever the environment is. Returns the copies and what they
    are copies of. LookupError with a sentence where a library is missing."""
    folder = site / "headroom.libs"
    folder.mkdir()
    copies, sources = {}, {}
    waiting = sorted(filter(is_elf, site.rglob("*")))
    while waiting:
        file = waiting.pop()
        places = places_of_libraries(sources.get(file, file))  # a copy has lost its neighbours
        words, folders = [], {folder}
        for name in needed_names(file, patchelf):
            if SYSTEM.match(name):
                continue
            if (torch_libraries / name).exists():
                folders.add(site / "torch/lib")
                continue
            if name not in copies:
                if name not in places:
                    raise LookupError(f"{file.name} needs {name}, which this system does not find: install it, or add its "
                                      "folder to LD_LIBRARY_PATH")
                copies[name] = folder / own_name(name, places[name])
                sources[copies[name]] = places[name]
                shutil.copyfile(places[name], copies[name])
                copies[name].chmod(0o755)
                waiting.append(copies[name])
            words += ["--replace-needed", name, copies[name].name]
        if file in sources:
            words += ["--set-soname", file.name]
        search = ":".join("$ORIGIN/" + os.path.relpath(path, file.parent) for path in sorted(folders))
        # An rpath of the old kind: LD_LIBRARY_PATH, which may lead to another LibTorch, comes behind it.
        subprocess.run([patchelf, *words, "--force-rpath", "--set-rpath", search, str(file)], check=True)
    return sources


def copyright_of(library):
    """The page of its licence that its Debian package installs; None where there is none."""
    path = os.path.realpath(library)
    for name in (path, path.removeprefix("/usr")):  # the package database may know either
        try:
            found = subprocess.run(["dpkg-query", "--search", name], capture_output=True, text=True)
        except FileNotFoundError:
            return None
        package = found.stdout.partition(":")[0]
        page = f"/usr/share/doc/{package}/copyright"
        if found.returncode == 0 and os.path.exists(page):
            return page
    return None
