#!/bin/sh
# run.sh TEST.py BUILD: the test by $HEADROOM_TEST_PYTHON (a program or an environment), with the package of this tree and the
# program of BUILD. 77: skipped.
python=${HEADROOM_TEST_PYTHON-}
if [ -z "$python" ]; then
  echo "skipped: HEADROOM_TEST_PYTHON names no Python (a program or an environment) with numpy and the torch of this build"
  exit 77
fi
if [ -d "$python" ]; then python=$python/bin/python; fi
here=$(dirname "$(readlink -f "$0")")
PYTHONPATH=$here/../../python:$here HEADROOM_ROOT=$2 PYTHONDONTWRITEBYTECODE=1 exec "$python" "$1"
