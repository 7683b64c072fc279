#!/usr/bin/env bash
# The Python package under AddressSanitizer and UndefinedBehaviorSanitizer: tests/python/sanitized.sh [TEST...]
#
# Links the objects in build/fuzz, which the sanitized tests in C++ use as well, into a Python that has the extension module
# inside, and runs the tests of tests/python/ with it, or only TEST (`test_values.Copies`). Any finding ends the process,
# and so the test. The optional packages and the program are those of build/python-package, where tests/python/run.sh has
# installed them; without them the exit status is 77. What only repeats other tests is left out: the types, the notebooks
# in Jupyter, and PyTorch, whose own code is not instrumented.
set -uo pipefail
cd "$(dirname "$0")/../.."
venv=build/python-package
package=build/fuzz/package/bubblescope
log=build/python-sanitized.log
tests=("$@")
[ $# -gt 0 ] || tests=(test_arguments test_package test_values test_wrong_input test_examples.Examples
                       test_notebooks.Notebooks.test_their_cells_run)

[ -x "$venv/bin/bubblescope" ] || { echo "Python: not sanitized, tests/python/run.sh has installed nothing"; exit 77; }
"$venv/bin/pip" install -q 'nanobind>=2.4,<4' > "$log" 2>&1 || { echo "Python: not sanitized, PyPI cannot be reached ($log)"; exit 77; }
[ -e build/fuzz/build.ninja ] || unity=-DBUBBLESCOPE_UNITY=ON
PATH=$PWD/$venv/bin:$PATH cmake --preset fuzz ${unity:-} -DBUBBLESCOPE_PYTHON=ON -DPython_EXECUTABLE="$PWD/$venv/bin/python" \
  > "$log" 2>&1 || { tail -n 30 "$log"; exit 1; }
cmake --build --preset fuzz --target sanitized_python -- --quiet || exit

# Beside the venv's own interpreter, it finds the venv's packages; the package that is tested comes before them.
python=$venv/bin/sanitized-python
rm -rf "$package"
mkdir -p "$package"
ln -s "$PWD"/tools/python/bubblescope/* "$package" && ln -sf "$PWD/build/fuzz/tools/python/sanitized_python" "$python" || exit
# Blocks of Python's own allocator have no end that is watched. What Python keeps until it exits is no leak.
export PYTHONPATH=$PWD/${package%/*} PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1
python=$PWD/$python
cd tests/python && "$python" -m unittest "${tests[@]}"
