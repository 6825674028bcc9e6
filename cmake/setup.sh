# Set-up, sourced by ./headroom when something it decides has changed: Debian packages, LibTorch, CMake's configuration.
# shellcheck shell=bash disable=SC2154  # root, preset, build, say and die are ./headroom's

readonly torch_version=2.13.0 torch_minimum=2.9 cmake_minimum=3.25
readonly torch_cpu_size="192 MB to download, 0.8 GB on disk" torch_cuda_size="2.7 GB to download, 4.5 GB on disk"
readonly setup_disk_gb=6 setup_disk_cuda_gb=12

readonly library_packages=(libhdf5-dev libboost-dev libtomlplusplus-dev libspdlog-dev libcli11-dev nlohmann-json3-dev
  libjemalloc-dev libdeflate-dev zlib1g-dev libsqlite3-dev libjpeg62-turbo-dev libpng-dev libgtest-dev libgmock-dev)

readonly network_troubles='Could not resolve|Temporary failure|Could not connect|Unable to connect|Network is unreachable|Failed to fetch|Connection (timed out|refused|failed|broken)|ConnectTimeout|NewConnectionError|NameResolutionError'

has_apt() { command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; }

# --- what is missing ------------------------------------------------------------------------------------------------

# Prints the Debian packages that are missing. A tool counts by its command, wherever it comes from.
missing_packages() {
  local torch_found=$1 package installed
  [[ -z ${HEADROOM_SKIP_PACKAGES-} ]] || return 0
  command -v "${CXX:-c++}" >/dev/null && command -v "${CC:-cc}" >/dev/null || echo g++
  command -v cmake >/dev/null || echo cmake
  command -v ninja >/dev/null || echo ninja-build
  command -v pkg-config >/dev/null || echo pkgconf
  if [[ -z $torch_found ]]; then
    python3 -c 'import venv, ensurepip' 2>/dev/null || printf '%s\n' python3 python3-venv
    [[ -e /etc/ssl/certs/ca-certificates.crt ]] || echo ca-certificates
  fi
  has_apt || return 0
  installed=$'\n'$(dpkg-query --show --showformat='${db:Status-Status} ${Package}\n' "${library_packages[@]}" 2>/dev/null)$'\n' || true
  for package in "${library_packages[@]}"; do
    [[ $installed == *$'\n'"installed $package"$'\n'* ]] || echo "$package"
  done
}

# Sets as_root to what runs a command as root, or fails.
may_install() {
  as_root=()
  ((EUID != 0)) || return 0
  command -v sudo >/dev/null || return 1
  if sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
  elif [[ -t 0 && -t 2 ]]; then
    as_root=(sudo)
  else
    return 1
  fi
}

# Ends with exit code 2 and the list where packages are missing that this user cannot install.
list_what_is_missing() {
  local missing
  find_torch
  mapfile -t missing < <(missing_packages "$torch_dir")
  ((${#missing[@]} > 0)) || return 0
  if ! has_apt; then
    die 2 "this system has no apt-get, and these are missing (by their Debian names): ${missing[*]}. Headroom needs a C++20" \
      "compiler, CMake $cmake_minimum, Ninja, pkg-config and the development files of HDF5, Boost, toml++, spdlog, CLI11," \
      "nlohmann-json, jemalloc 5, libdeflate, zlib, SQLite 3, libjpeg-turbo, libpng and GoogleTest: install them with this system's package manager, then run again"
  elif ! may_install; then
    say "these Debian packages are missing, and installing them takes root or sudo: ${missing[*]}"
    say "ask somebody who has it to run:"
    say "  apt-get update && apt-get install --no-install-recommends ${missing[*]}"
    [[ -n $torch_dir ]] || say "LibTorch is missing too; it goes into .venv without root ($torch_cpu_size), or set LIBTORCH_DIR"
    exit 2
  fi
}

# What can be told before anything is written.
check_before_set_up() {
  local free_kb needed_gb=$setup_disk_gb
  if [[ ! -e $root/build/torch-dir ]]; then
    [[ -z ${HEADROOM_TORCH_CUDA-} ]] || needed_gb=$setup_disk_cuda_gb
    free_kb=$(df --output=avail --block-size=1kB "$root" | tail -n 1)
    ((free_kb >= needed_gb * 1000000)) || die 6 "too little disk: setting up needs $needed_gb GB, and the disk that holds" \
      "$root has $((free_kb / 1000000)).$((free_kb / 100000 % 10)) GB free"
  fi
  list_what_is_missing
}

# --- Debian packages ------------------------------------------------------------------------------------------------

apt_get() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -o DPkg::Lock::Timeout=300 "$@"; }

explain_failed_apt() {
  if grep -qE "$network_troubles" "$log"; then
    die 2 "no network: Debian's package servers cannot be reached, and these packages are missing: $*. Connect, or set" \
      "http_proxy, and run the same command again"
  fi
  die 2 "apt-get could not install $*: $(grep -m 1 '^E:' "$log" || tail -n 1 "$log"); the whole log is $log"
}

install_packages() {
  local plan
  may_install || list_what_is_missing
  say "looking up ${#} Debian packages"
  apt_get update >>"$log" 2>&1 || true
  plan=$(apt_get install --assume-no --no-install-recommends "$@" 2>&1) || true
  printf '%s\n' "$plan" >>"$log"
  [[ $plan =~ Need\ to\ get\ ([^$'\n']*)\ of\ archives ]] || explain_failed_apt "$@"
  local download=${BASH_REMATCH[1]} disk=
  [[ ! $plan =~ After\ this\ operation,\ ([^$'\n']*)\ of\ additional ]] || disk=", ${BASH_REMATCH[1]} on disk"
  say "installing Debian packages, with what they need $download to download$disk: $*"
  apt_get install --yes --no-install-recommends "$@" >>"$log" 2>&1 || explain_failed_apt "$@"
}

# --- LibTorch -------------------------------------------------------------------------------------------------------

at_least() { printf '%s\n%s\n' "$1" "$2" | sort --version-sort --check=quiet; }

# Sets torch_dir, empty where LibTorch has to be installed: LIBTORCH_DIR, what was found last time, the active virtual or
# conda environment, .venv.
find_torch() {
  local folder version
  torch_dir=
  if [[ -n ${LIBTORCH_DIR-} ]]; then
    [[ -f $LIBTORCH_DIR/lib/libtorch_cpu.so && -d $LIBTORCH_DIR/include/ATen ]] ||
      die 2 "LIBTORCH_DIR=$LIBTORCH_DIR is not LibTorch's folder: lib/libtorch_cpu.so and include/ATen are not both in it"
    torch_dir=$(readlink -f "$LIBTORCH_DIR")
    return
  fi
  local folders=()
  [[ ! -f $root/build/torch-dir ]] || folders+=("$(<"$root/build/torch-dir")")
  [[ -z ${VIRTUAL_ENV-} ]] || folders+=("$VIRTUAL_ENV"/lib/python3*/site-packages/torch)
  [[ -z ${CONDA_PREFIX-} ]] || folders+=("$CONDA_PREFIX"/lib/python3*/site-packages/torch)
  folders+=("$root"/.venv/lib/python3*/site-packages/torch)
  for folder in "${folders[@]}"; do
    [[ -f $folder/lib/libtorch_cpu.so && -d $folder/include/ATen ]] || continue
    version=$(sed -n "s/^__version__ = '\([0-9.]*\).*/\1/p" "$folder/version.py" 2>/dev/null) || true
    if [[ -z $version ]] || at_least "$torch_minimum" "$version"; then
      torch_dir=$folder
      return
    fi
    say "not using $folder: version $version is older than $torch_minimum"
  done
}

cuda_or_not() {
  say "LibTorch is missing, and the configured package indexes offer only its CUDA build ($torch_cuda_size). Choose one:"
  say "  HEADROOM_TORCH_CUDA=1 ./headroom build              take the CUDA build"
  say "  LIBTORCH_DIR=/path/to/torch ./headroom build        use a LibTorch that is already there"
  say "  PIP_EXTRA_INDEX_URL=URL ./headroom build            take the CPU build ($torch_cpu_size) from an index that has it:"
  say "                                                      the one that PyTorch's own installation page names for CPU"
  say "  PIP_FIND_LINKS=/folder/of/wheels ./headroom build   take the CPU build from a wheel in a folder"
  exit 2
}

# Puts LibTorch into .venv, as a wheel without what its Python part needs; the system's Python is never touched.
install_torch() {
  local python=$root/.venv/bin/python offered wanted='' size=$torch_cpu_size dependencies=(--no-deps)
  "$python" -m pip --version >/dev/null 2>&1 || python3 -m venv "$root/.venv" >>"$log" 2>&1 ||
    die 2 "python3 -m venv $root/.venv failed: $(tail -n 1 "$log")"
  local pip=("$python" -m pip --disable-pip-version-check)
  say "looking for LibTorch $torch_version"
  offered=$("${pip[@]}" --retries 1 index versions torch 2>>"$log") || true
  [[ $offered =~ Available\ versions:\ ([^$'\n']*) ]] && offered=" ${BASH_REMATCH[1]//,/} " || offered=
  if [[ -z $offered ]]; then
    if grep -qE "$network_troubles" "$log"; then
      die 2 "no network: the package index of pip cannot be reached, and LibTorch is missing. Connect and run the same" \
        "command again, or set LIBTORCH_DIR to a LibTorch that is already there"
    fi
    die 2 "the configured package indexes offer no torch for $("$python" --version); set LIBTORCH_DIR to the folder with" \
      "LibTorch's include/ and lib/"
  fi
  if [[ -n ${HEADROOM_TORCH_CUDA-} ]]; then
    [[ ! $offered =~ \ ($torch_version(\+cu[0-9]+)?)\  ]] || wanted=${BASH_REMATCH[1]}
    size=$torch_cuda_size
    dependencies=()
  elif [[ $offered == *" $torch_version+cpu "* ]]; then
    wanted=$torch_version+cpu
  elif [[ $offered =~ \ ($torch_version(\+cu[0-9]+)?)\  ]]; then
    wanted=${BASH_REMATCH[1]}
    [[ $(uname -m) != x86_64 && $wanted == "$torch_version" ]] || cuda_or_not # other machines' plain build is the CPU's
  fi
  [[ -n $wanted ]] || die 2 "the configured package indexes do not offer torch $torch_version for $("$python" --version)," \
    "only:$offered; set LIBTORCH_DIR to a LibTorch of version $torch_minimum or newer"
  say "installing LibTorch $wanted into .venv: $size"
  mkdir -p "$root/build/tmp"
  if ! TMPDIR=$root/build/tmp "${pip[@]}" install --no-compile --progress-bar off "${dependencies[@]}" "torch===$wanted" \
    >>"$log" 2>&1; then
    ! grep -q 'No space left' "$log" || die 6 "the disk filled up while LibTorch was installed ($size); free some space"
    ! grep -qE "$network_troubles" "$log" || die 2 "the network failed while LibTorch was downloaded; run the same command again"
    die 2 "pip could not install LibTorch: $(grep -m 1 '^ERROR' "$log" || tail -n 1 "$log"); the whole log is $log"
  fi
  rm -rf "$root/build/tmp"
  find_torch
  [[ -n $torch_dir ]] || die 70 "pip installed torch $wanted, but LibTorch is not in $root/.venv; the log is $log"
}

# --- all of it ------------------------------------------------------------------------------------------------------

check_tools() {
  local version
  "${CXX:-c++}" -std=c++20 -x c++ -fsyntax-only - >>"$log" 2>&1 <<<$'#include <ranges>\n#include <source_location>\nint main() {}' ||
    die 2 "no C++20 compiler: ${CXX:-c++} is missing or too old (g++ 11 or newer is needed); install one or name it in CXX"
  version=$(cmake --version | sed -n '1s/[^0-9]*//p')
  at_least "$cmake_minimum" "$version" ||
    die 2 "CMake $version is older than $cmake_minimum; a newer one comes with Debian 12 or, in a virtual environment, with pip install cmake"
}

configure() {
  local arguments=(--preset "$preset") home=''
  [[ ! -f $build/CMakeCache.txt ]] || home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$build/CMakeCache.txt")
  [[ -z $home || $home == "$root" ]] || arguments+=(--fresh) # the folder was moved or copied
  if ! (cd "$root" && cmake "${arguments[@]}" -DLIBTORCH_DIR="$torch_dir") >"$build/configure.log" 2>&1; then
    grep -v '^--' "$build/configure.log" | sed 20q >&2 || true
    has_apt || say "this system has no apt-get: what CMake does not find above has to come from its own package manager"
    die 2 "CMake could not configure; the whole log is $build/configure.log"
  fi
}

set_up() {
  local missing
  log=$root/build/setup.log
  : >"$log"
  find_torch
  mapfile -t missing < <(missing_packages "$torch_dir")
  ((${#missing[@]} == 0)) || install_packages "${missing[@]}"
  check_tools
  [[ -n $torch_dir ]] || install_torch
  printf '%s\n' "$torch_dir" >"$root/build/torch-dir"
  configure
  printf '%s\n' "$(fingerprint) $torch_dir" >"$build/.set-up"
}
