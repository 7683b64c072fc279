#!/usr/bin/env bash
# Installs what the tests need, builds everything and runs the tests.
#   bash tools/test.sh [PRESET] [ARGUMENT OF CTEST...]      (release unless given)
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
[ $# -eq 0 ] || shift

bash tools/dependencies.sh test
bash tools/build.sh "$preset"
ctest --preset "$preset" "$@"
