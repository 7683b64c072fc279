#!/usr/bin/env bash
# The Python package as users get it: tests/python/run.sh [--sanitize] [PACKAGES...]
#
# Installs the clone with pip into a new environment under build/python-package, and runs the tests in tests/python/ with
# what is installed. PACKAGES are optional ones for the tests (numpy pandas matplotlib pyarrow mypy nbconvert ipykernel
# torch); without them, the tests that need one are skipped, and say so. With --sanitize the engine and the program in the
# wheel are compiled with AddressSanitizer and UndefinedBehaviorSanitizer, and any finding ends the tests. Exit status: 77
# where PyPI cannot be reached.
set -uo pipefail
cd "$(dirname "$0")/../.."
venv=build/python-package
preload=""
if [ "${1:-}" = --sanitize ]; then
  shift
  venv=build/python-package-sanitized
  export SKBUILD_CMAKE_BUILD_TYPE=Debug SKBUILD_INSTALL_STRIP=false
  export SKBUILD_CMAKE_DEFINE="BUBBLESCOPE_SANITIZE=address,undefined;BUBBLESCOPE_STATIC_RUNTIME=OFF;CMAKE_CXX_FLAGS_DEBUG=-O1 -g1"
  # Python itself is not instrumented, so the runtime is loaded before it. What Python keeps until it exits is not a leak.
  preload="$(g++ -print-file-name=libasan.so):$(g++ -print-file-name=libubsan.so)"
  export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1
fi

rm -rf "$venv"
mkdir -p build
python3 -m venv "$venv" > build/python-package.log 2>&1 || { tail -n 5 build/python-package.log; exit 77; }
if ! "$venv/bin/pip" download -q --no-deps --dest "$venv" nanobind > build/python-package.log 2>&1; then
  echo "Python: not checked, PyPI cannot be reached (build/python-package.log)"
  exit 77
fi
before=$(date +%s)
"$venv/bin/pip" install . > build/python-package.log 2>&1 || { tail -n 30 build/python-package.log; exit 1; }
took=$(($(date +%s) - before))
times > build/python-package.times  # not in a pipe: a subshell has children of its own
echo "pip install .: $took s (user and system time: $(tail -n 1 build/python-package.times))"
if [ $# -gt 0 ]; then
  "$venv/bin/pip" install -q "$@" > build/python-package.log 2>&1 || { tail -n 5 build/python-package.log; exit 1; }
fi
cd "$venv" && LD_PRELOAD=$preload bin/python -W error::ResourceWarning -m unittest discover -s ../../tests/python
