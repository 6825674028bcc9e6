#!/bin/sh
# with_python.sh SOURCE BUILD TEST [CASE]...: runs a test of python/headroom by the Python of $HEADROOM_TEST_PYTHON (a program or an
# environment, with the torch of the build); 77 where it names none.
python=${HEADROOM_TEST_PYTHON-}
if [ -z "$python" ]; then
  echo "skipped: HEADROOM_TEST_PYTHON names no Python (a program or an environment) with the torch of this build"
  exit 77
fi
[ -d "$python" ] && python=$python/bin/python
export PYTHONPATH="$1/python" HEADROOM_ROOT="$2" PYTHONDONTWRITEBYTECODE=1
test=$1/tests/python/$3
shift 3
exec "$python" "$test" "$@"
