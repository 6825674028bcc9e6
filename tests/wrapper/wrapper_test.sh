#!/usr/bin/env bash
# wrapper_test.sh PROJECT CASE: one case of what ./headroom does and says. The wrapper runs in a copy of its own, as a user
# without root, with a PATH of stand-ins only; each stand-in notes its call in $calls.
# shellcheck disable=SC2016  # the stand-ins' scripts expand where they run
set -euo pipefail

project=$1
box=$(mktemp -d "${TMPDIR:-/tmp}/headroom wrapper.XXXXXX")
trap 'rm -rf "$box"' EXIT
home="$box/the project" bin=$box/bin calls=$box/calls
mkdir -p "$home/cmake" "$bin"
cp "$project/headroom" "$project/CMakePresets.json" "$home/"
cp "$project/cmake/setup.sh" "$home/cmake/"
touch "$calls"

for tool in bash cat chmod cksum cp dirname env flock grep head mkdir mv nproc readlink rm sed sleep sort tail touch true uname; do
  ln -s "$(type -P $tool)" "$bin/$tool"
done

# stand_in NAME: makes a command of the script on stdin.
stand_in() {
  { printf '#!/usr/bin/env bash\necho "%s $*" >>"%s"\n' "$1" "$calls" && cat; } >"$bin/$1"
  chmod 755 "$bin/$1"
}

torch=$box/torch
mkdir -p "$torch/lib" "$torch/include/ATen"
touch "$torch/lib/libtorch_cpu.so"

# A machine where everything is there, and a program that shows how it was called.
stand_in c++ </dev/null
stand_in cc </dev/null
stand_in pkg-config </dev/null
stand_in apt-get </dev/null
stand_in ctest </dev/null
stand_in dpkg-query <<<'for p; do [[ $p == --* ]] || echo "installed $p"; done'
stand_in cmake <<<'[[ $1 == --version ]] && echo "cmake version 3.25.1" || mkdir -p build/release/bin'
stand_in ninja <<<'echo "ninja: no work to do."'
stand_in df <<<'printf "Avail\n9000000\n"'
mkdir -p "$home/build/release/bin"
cat >"$home/build/release/bin/headroom" <<'END'
#!/usr/bin/env bash
printf '[%s]' "$PWD" "$@"
exit 7
END
chmod 755 "$home/build/release/bin/headroom"

as_user=()
if ((EUID == 0)); then
  as_user=("$(type -P setpriv)" --reuid=65534 --regid=65534 --clear-groups)
fi

# run [NAME=VALUE...] -- ARGUMENT...: ./headroom's stdout, stderr and exit code land in $out, $err and $code.
run() {
  local variables=()
  while [[ $1 != -- ]]; do
    variables+=("$1")
    shift
  done
  chmod -R a+rwX "$box"
  code=0
  env -i PATH="$bin" "${variables[@]}" "${as_user[@]}" "${command:-$home/headroom}" "${@:2}" >"$box/out" 2>"$box/err" || code=$?
  out=$(<"$box/out") err=$(<"$box/err")
}

fail() {
  printf '%s\n' "$*" "exit code: ${code-}" "stdout: ${out-}" "stderr: ${err-}" "calls:" >&2
  cat "$calls" >&2
  exit 1
}
expect_code() { ((code == $1)) || fail "expected exit code $1"; }
expect_said() { [[ $err == *"$1"* ]] || fail "expected on stderr: $1"; }
expect_called() { grep -qF -- "$1" "$calls" || fail "expected a call: $1"; }
expect_no_call() { ! grep -qF -- "$1" "$calls" || fail "unexpected call: $1"; }

test_hands_over_arguments_folder_and_exit_code() {
  mkdir "$box/else where"
  cd "$box/else where"
  run LIBTORCH_DIR="$torch" -- run 'a b.toml' '' --set 'x="*"'
  expect_code 7
  [[ $out == "[$box/else where][run][a b.toml][][--set][x=\"*\"]" ]] || fail "arguments changed"
}

test_works_through_a_symbolic_link() {
  ln -s "$home/headroom" "$box/link"
  command=$box/link run LIBTORCH_DIR="$torch" -- limits
  expect_code 7
  expect_called "ninja -C $home/build/release"
}

test_is_silent_and_asks_only_ninja_when_nothing_changed() {
  run LIBTORCH_DIR="$torch" -- limits
  : >"$calls"
  run -- limits
  expect_code 7
  [[ -z $err ]] || fail "expected silence"
  [[ $(<"$calls") == "ninja -C $home/build/release -j "*" headroom_app" ]] || fail "expected one call of ninja"
}

test_sets_up_again_when_libtorch_has_gone() {
  run LIBTORCH_DIR="$torch" -- limits
  cp -r "$torch" "$box/other"
  rm -r "$torch"
  : >"$calls"
  run LIBTORCH_DIR="$box/other" -- limits
  expect_called "-DLIBTORCH_DIR=$box/other"
}

test_without_root_lists_exactly_what_is_missing() {
  stand_in dpkg-query <<<'for p; do [[ $p == --* || $p == libhdf5-dev ]] || echo "installed $p"; done'
  rm "$bin/ninja"
  run LIBTORCH_DIR="$torch" -- build
  expect_code 2
  expect_said "these Debian packages are missing, and installing them takes root or sudo: ninja-build libhdf5-dev"
  expect_said "apt-get update && apt-get install --no-install-recommends ninja-build libhdf5-dev"
  expect_no_call "apt-get"
}

missing_until_installed() {
  stand_in sudo <<<'[[ $1 != -n ]] || shift; exec "$@"'
  stand_in dpkg-query <<<'[[ -e '"'$box/installed'"' ]] && echo "installed libhdf5-dev"; for p; do [[ $p == --* || $p == libhdf5-dev ]] || echo "installed $p"; done'
}

test_tells_the_size_before_it_installs_with_sudo() {
  missing_until_installed
  stand_in apt-get <<<'case "$*" in
    *--assume-no*) echo "Need to get 10.1 MB/12 MB of archives."; echo "After this operation, 40.5 MB of additional disk space will be used."; exit 1 ;;
    *--yes*) touch '"'$box/installed'"' ;;
  esac'
  run LIBTORCH_DIR="$torch" -- limits
  expect_code 7
  expect_said "installing Debian packages, with what they need 10.1 MB/12 MB to download, 40.5 MB on disk: libhdf5-dev"
  expect_called "install --yes --no-install-recommends libhdf5-dev"
}

test_no_network_for_debian_packages() {
  missing_until_installed
  stand_in apt-get <<<'echo "W: Failed to fetch http://mirror/  Temporary failure resolving mirror"; echo "E: Unable to locate package libhdf5-dev"; exit 100'
  run LIBTORCH_DIR="$torch" -- limits
  expect_code 2
  expect_said "no network: Debian's package servers cannot be reached, and these packages are missing: libhdf5-dev."
}

test_apt_refuses() {
  missing_until_installed
  stand_in apt-get <<<'echo "E: Unable to locate package libhdf5-dev"; exit 100'
  run LIBTORCH_DIR="$torch" -- limits
  expect_code 2
  expect_said "apt-get could not install libhdf5-dev: E: Unable to locate package libhdf5-dev"
}

test_other_system_without_apt() {
  rm "$bin/apt-get" "$bin/ninja"
  run LIBTORCH_DIR="$torch" -- limits
  expect_code 2
  expect_said "this system has no apt-get, and these are missing (by their Debian names): ninja-build."
}

test_too_little_disk() {
  stand_in df <<<'printf "Avail\n5400000\n"'
  run LIBTORCH_DIR="$torch" -- limits
  expect_code 6
  expect_said "too little disk: setting up needs 6 GB, and the disk that holds $home has 5.4 GB free"
}

test_compiler_too_old() {
  stand_in c++ <<<'exit 1'
  run LIBTORCH_DIR="$torch" -- limits
  expect_code 2
  expect_said "no C++20 compiler: c++ is missing or too old (g++ 11 or newer is needed)"
}

test_cmake_too_old() {
  stand_in cmake <<<'echo "cmake version 3.22.1"'
  run LIBTORCH_DIR="$torch" -- limits
  expect_code 2
  expect_said "CMake 3.22.1 is older than 3.25"
}

test_libtorch_dir_is_wrong() {
  run LIBTORCH_DIR=/nowhere -- limits
  expect_code 2
  expect_said "LIBTORCH_DIR=/nowhere is not LibTorch's folder: lib/libtorch_cpu.so and include/ATen are not both in it"
}

# virtual_environment PYTHON-LINES: python3 -m venv makes an environment whose pip does as told; its install makes a LibTorch.
virtual_environment() {
  cat >"$box/pip" <<END
#!/usr/bin/env bash
echo "pip \$*" >>"$calls"
case "\$*" in
  *"index versions"*) $1 ;;
  *install*) mkdir -p "$home/.venv/lib/python3.11/site-packages"; cp -r "$torch" "$home/.venv/lib/python3.11/site-packages/torch" ;;
  --version) echo "Python 3.11.2" ;;
esac
END
  stand_in python3 <<END
[[ \$1 == -c ]] || { mkdir -p "\$3/bin" && cp "$box/pip" "\$3/bin/python" && chmod 755 "\$3/bin/python"; }
END
}

test_takes_the_cpu_build_without_its_python_dependencies() {
  virtual_environment 'echo "Available versions: 2.14.0, 2.13.0+cpu, 2.13.0"'
  run -- limits
  expect_code 7
  expect_said "installing LibTorch 2.13.0+cpu into .venv: 192 MB to download"
  expect_called "--no-deps torch===2.13.0+cpu"
  expect_called "-DLIBTORCH_DIR=$home/.venv/lib/python3.11/site-packages/torch"
}

test_only_the_cuda_build_is_offered() {
  [[ $(uname -m) == x86_64 ]] || exit 77 # elsewhere the plain build is the CPU's
  virtual_environment 'echo "Available versions: 2.14.0, 2.13.0"'
  run -- limits
  expect_code 2
  expect_said "offer only its CUDA build (2.7 GB to download, 4.5 GB on disk). Choose one:"
  expect_said "HEADROOM_TORCH_CUDA=1 ./headroom build"
  expect_no_call "install"
}

test_the_cuda_build_is_accepted() {
  stand_in df <<<'printf "Avail\n12000000\n"'
  virtual_environment 'echo "Available versions: 2.14.0, 2.13.0+cpu, 2.13.0"'
  run HEADROOM_TORCH_CUDA=1 -- limits
  expect_code 7
  expect_said "installing LibTorch 2.13.0 into .venv: 2.7 GB to download"
  expect_called "torch===2.13.0"
  expect_no_call "--no-deps"
}

test_no_network_for_libtorch() {
  virtual_environment 'echo "WARNING: Retrying: NewConnectionError(Failed to establish a new connection)" >&2; exit 1'
  run -- limits
  expect_code 2
  expect_said "no network: the package index of pip cannot be reached, and LibTorch is missing."
}

test_index_without_the_version() {
  virtual_environment 'echo "Available versions: 2.14.0, 2.12.0"'
  run -- limits
  expect_code 2
  expect_said "do not offer torch 2.13.0 for Python 3.11.2, only: 2.14.0 2.12.0 ; set LIBTORCH_DIR"
}

test_uses_the_active_environment_and_passes_an_old_torch_by() {
  mkdir -p "$box/env/lib/python3.11/site-packages" "$box/conda/lib/python3.12/site-packages"
  cp -r "$torch" "$box/env/lib/python3.11/site-packages/torch"
  cp -r "$torch" "$box/conda/lib/python3.12/site-packages/torch"
  echo "__version__ = '2.8.1+cpu'" >"$box/env/lib/python3.11/site-packages/torch/version.py"
  echo "__version__ = '2.11.0'" >"$box/conda/lib/python3.12/site-packages/torch/version.py"
  run VIRTUAL_ENV="$box/env" CONDA_PREFIX="$box/conda" -- limits
  expect_code 7
  expect_said "version 2.8.1 is older than 2.9"
  expect_called "-DLIBTORCH_DIR=$box/conda/lib/python3.12/site-packages/torch"
}

test_failed_build_shows_the_error() {
  stand_in ninja <<<'echo "[1/2] Building a.o"; echo "FAILED: a.o"; echo "a.cpp:1: error: no"; exit 1'
  run LIBTORCH_DIR="$torch" -- limits
  expect_code 70
  expect_said "a.cpp:1: error: no"
  expect_said "the build failed; the whole log is $home/build/release/build.log"
  [[ -z $out ]] || fail "stdout is the program's alone"
}

test_full_disk_while_building() {
  stand_in ninja <<<'echo "FAILED: a.o"; echo "a.s: fatal error: No space left on device"; exit 1'
  run LIBTORCH_DIR="$torch" -- limits
  expect_code 6
  expect_said "the disk that holds $home is full"
}

test_compiler_killed_for_memory() {
  stand_in ninja <<<'echo "FAILED: a.o"; echo "c++: fatal error: Killed signal terminated program cc1plus"; exit 1'
  run LIBTORCH_DIR="$torch" -- limits
  expect_code 2
  expect_said "a compiler was killed for lack of memory; HEADROOM_JOBS=1 ./headroom build"
}

test_a_number_of_compilers_that_is_none() {
  for jobs in 0 -1 many 1e3 99999; do
    run LIBTORCH_DIR="$torch" HEADROOM_JOBS=$jobs -- build
    expect_code 2
    expect_said "HEADROOM_JOBS=$jobs is no number of compilers from 1 to 9999"
  done
  expect_no_call "ninja -C"
  run LIBTORCH_DIR="$torch" HEADROOM_JOBS=3 -- build
  expect_called "-j 3 all"
}

test_fast_tests_unless_all() {
  run LIBTORCH_DIR="$torch" -- test -R order
  expect_code 0
  expect_called 'ctest --preset release -L ^fast$ -R order'
  run -- test --all --preset asan
  expect_called 'ctest --preset asan'
  expect_no_call 'ctest --preset asan -L'
  run -- test --cpu avx2
  expect_called 'ctest --preset release -L ^avx2$'
  run -- test --cpu sse
  expect_code 2
  expect_said 'not understood: --cpu sse; one of avx2, baseline'
}

test_unknown_preset() {
  run -- build debug
  expect_code 2
  expect_said "not understood: build debug; ./headroom build [release|dev|asan|tsan]"
}

test_a_wheel_is_packed_into_dist_unless_told() {
  stand_in python3 </dev/null
  run LIBTORCH_DIR="$torch" -- wheel
  expect_code 0
  expect_called "python3 $home/cmake/wheel/build.py $home/build/release dist"
  run -- wheel "a folder"
  expect_called "python3 $home/cmake/wheel/build.py $home/build/release a folder"
  run -- wheel --help
  expect_code 0
  run -- wheel one two
  expect_code 2
  expect_said "not understood: wheel one two; ./headroom wheel [FOLDER]"
}

test_two_at_once_take_turns() {
  run LIBTORCH_DIR="$torch" -- limits
  exec 8>"$home/build/.lock"
  flock 8
  { sleep 1 && flock --unlock 8; } &
  run -- limits 8>&-
  expect_code 7
  expect_said "waiting for another ./headroom that is building"
}

test_folder_that_cannot_be_written() {
  ((EUID == 0)) || exit 77 # takes a folder of somebody else's
  run LIBTORCH_DIR="$torch" -- limits
  rm -r "$home/build"
  chmod -R a-w "$home"
  code=0
  env -i PATH="$bin" LIBTORCH_DIR="$torch" "${as_user[@]}" "$home/headroom" limits >"$box/out" 2>"$box/err" || code=$?
  out=$(<"$box/out") err=$(<"$box/err")
  expect_code 6
  expect_said "cannot write to $home, where Headroom builds"
}

"test_$2"
