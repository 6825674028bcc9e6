#!/usr/bin/env bash
# wheel_test.sh PROJECT BUILD FOLDER: makes the wheel of the build, installs it into an empty environment that sees the packages
# of $HEADROOM_TEST_PYTHON (a program or an environment, with torch and h5py), and uses it as its readers would.
set -euo pipefail

project=$1 build=$2 folder=$3
python=${HEADROOM_TEST_PYTHON-}
[[ ! -d $python ]] || python=$python/bin/python3

skip() {
  echo "skipped: $*"
  exit 77
}
fail() {
  echo "$*"
  exit 1
}

[[ -n $python ]] || skip "HEADROOM_TEST_PYTHON names no Python (a program or an environment) with torch and h5py"
wanted=$(sed -n 's/.*"torch": "\([^"]*\)".*/\1/p' "$build/wheel.json")
found=$("$python" -c 'import torch, h5py; print(torch.__version__.split("+")[0])') || skip "$python lacks torch or h5py"
[[ $found == "$wanted" ]] || skip "$python has torch $found, and this build is of $wanted"
packages=$("$python" -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))')

rm -rf "$folder"
mkdir -p "$folder/here"
for attempt in first second; do
  code=0
  python3 "$project/cmake/wheel/build.py" "$build" "$folder/$attempt" 2>"$folder/said" || code=$?
  ! grep -q 'needs patchelf' "$folder/said" || skip "$(<"$folder/said")"
  ((code == 0)) || fail "no wheel: $(<"$folder/said")"
done
wheel=$(echo "$folder"/first/headroom-*-py3-none-manylinux_*.whl)
cmp "$wheel" "$folder/second/${wheel##*/}" || fail "the same build gave two different wheels"

environment=$folder/environment
"$python" -m venv "$environment" >"$folder/said" || skip "$python makes no environment with pip: $(<"$folder/said")"
bin=$environment/bin site=$("$environment/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
"$bin/pip" install --quiet --no-deps --no-index "$wheel" || fail "pip does not install $wheel"

# refused SENTENCE: what the command and `import headroom` say in this environment.
refused() {
  local code=0 said
  said=$("$bin/headroom" limits 2>&1) || code=$?
  ((code == 2)) && [[ $said == "$1"* && $said != *$'\n'* ]] || fail "expected exit code 2 and \"$1\", not $code and: $said"
  said=$("$bin/python" -c 'import headroom' 2>&1) && fail "import headroom should refuse: $1"
  [[ $said == *"ImportError: $1"* ]] || fail "expected an ImportError \"$1\", not: $said"
}
refused "headroom $("$site/headroom/bin/headroom" --version) needs torch $wanted, and none is installed: "
mkdir "$site/torch"
touch "$site/torch/__init__.py"
echo "__version__ = '1.2.3+cpu'" >"$site/torch/version.py"
refused "headroom $("$site/headroom/bin/headroom" --version) needs torch $wanted, and $site/torch is torch 1.2.3+cpu: "
rm -r "$site/torch"

# Where torch is in another folder, as the system's below an environment, and where it lies beside headroom, as pip puts it.
cd "$folder/here"
for place in elsewhere beside; do
  if [[ $place == elsewhere ]]; then
    echo "$packages" >"$site/elsewhere.pth"
  else
    ln -s "$packages/torch" "$site/torch"
  fi
  "$bin/headroom" run quick_demo --set train.epochs=2 --set data.synth.seconds=3 || fail "the run failed with torch $place"
  "$bin/python" - <<'PYTHON' || fail "import headroom cannot run an experiment with torch $place"
import headroom

run = headroom.run("quick_demo", set={"train.epochs": 2}, progress=False)
assert run.status == "finished" and run == headroom.Run.latest("runs/quick_demo"), run
PYTHON
done
[[ -f $site/headroom/py.typed ]] || fail "the package does not say that it has types"
[[ -d $folder/here/data/quick_demo && -d $folder/here/runs/quick_demo ]] || fail "data and runs are not in the working folder"
"$bin/headroom" new model wrist && [[ -f wrist/wrist.cpp ]] || fail "the package has no SDK"

# Nothing but the C and C++ libraries comes from the system.
for file in "$site"/headroom/bin/* "$site"/headroom/libexec/* "$site"/headroom/lib/*.so "$site"/headroom/lib/headroom/*.so \
  "$site"/headroom.libs/*; do
  others=$(ldd "$file" | grep '=>' | grep -vE "=> ($site|$packages)/" |
    grep -vE '^\s*(ld-linux[^ ]*|lib(c|m|dl|rt|pthread|resolv|util|gcc_s|stdc\+\+))\.so' || true)
  [[ -z $others ]] || fail "$file needs of the system: $others"
done

"$bin/python" - "$site" <<'PYTHON' || fail "h5py does not work in one process with the libraries of the package"
import ctypes, glob, sys
import headroom

def version(library):
    numbers = [ctypes.c_uint() for _ in range(3)]
    assert library.H5get_libversion(*map(ctypes.byref, numbers)) >= 0
    return ".".join(str(number.value) for number in numbers)

assert "torch" not in sys.modules
ours = ctypes.CDLL(glob.glob(sys.argv[1] + "/headroom.libs/libhdf5*")[0])
before = version(ours)
import h5py
with h5py.File("beside.h5", "w") as file:
    file["x"] = range(1000)
with h5py.File("beside.h5") as file:
    assert file["x"][:].sum() == 499500
assert version(ours) == before, (before, version(ours))
print("headroom's libhdf5", before, "beside h5py's", h5py.version.hdf5_version)
PYTHON
rm -rf "$folder"
