#!/usr/bin/env bash
# python_test.sh PROJECT BUILD PLUGINS FILE [PACKAGE...]: runs the unittest FILE with the Python package of PROJECT and the
# program of BUILD. Without PACKAGEs by python3, which has none; with them by $HEADROOM_TEST_PYTHON (a program or an
# environment), which must have them.
set -euo pipefail

project=$1 build=$2 plugins=$3 file=$4
shift 4

skip() {
  echo "skipped: $*"
  exit 77
}

python=python3
if (($# > 0)); then
  python=${HEADROOM_TEST_PYTHON-}
  [[ -n $python ]] || skip "HEADROOM_TEST_PYTHON names no Python (a program or an environment) with $*"
  [[ ! -d $python ]] || python=$python/bin/python3
  for package in "$@"; do
    "$python" -c "import $package" 2>/dev/null || skip "$python has no $package"
  done
fi
command -v "$python" >/dev/null || skip "there is no $python"
export PYTHONPATH=$project/python HEADROOM_ROOT=$build HEADROOM_TEST_PLUGIN_DIR=$plugins
exec "$python" -B "$file"
