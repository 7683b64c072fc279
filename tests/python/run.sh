#!/usr/bin/env bash
# The Python package as users get it: tests/python/run.sh [PACKAGES...]
#
# Installs the clone with pip into a new environment under build/python-package, and runs the tests in tests/python/ with
# what is installed. PACKAGES are optional ones for the tests (numpy pandas matplotlib pyarrow mypy nbconvert ipykernel
# torch); without them, the tests that need one are skipped, and say so. sanitized.sh runs them with sanitizers. Exit
# status: 77 where PyPI cannot be reached.
set -uo pipefail
cd "$(dirname "$0")/../.."
venv=build/python-package

rm -rf "$venv"
mkdir -p build
python3 -m venv "$venv" > build/python-package.log 2>&1 || { tail -n 5 build/python-package.log; exit 77; }
if ! "$venv/bin/pip" download -q --no-deps --dest "$venv" nanobind > build/python-package.log 2>&1; then
  echo "Python: not checked, PyPI cannot be reached (build/python-package.log)"
  exit 77
fi
# Where a compiler cache has the objects of the program, it knows them by the compiler's name that CMake chooses; Python's
# own build settings have another name for it.
export CXX=${CXX:-c++}
before=$(date +%s)
"$venv/bin/pip" install . > build/python-package.log 2>&1 || { tail -n 30 build/python-package.log; exit 1; }
took=$(($(date +%s) - before))
times > build/python-package.times  # not in a pipe: a subshell has children of its own
echo "pip install .: $took s (user and system time: $(tail -n 1 build/python-package.times))"
if [ $# -gt 0 ]; then
  "$venv/bin/pip" install -q "$@" > build/python-package.log 2>&1 || { tail -n 5 build/python-package.log; exit 1; }
fi
cd "$venv" && bin/python -W error::ResourceWarning -m unittest discover -s ../../tests/python
