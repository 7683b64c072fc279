#!/usr/bin/env bash
# Configures and builds one preset, quietly: output is shown only on failure or on a terminal.
#   bash tools/build.sh PRESET [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift

mkdir -p "build/$preset"
log=build/$preset/configure.log
from_nothing=()
if [ ! -e "build/$preset/build.ninja" ] && [ "$preset" != dev ]; then
  # Unity groups halve the time of a full build. For many small changes, configure the preset without them.
  from_nothing=(-DBUBBLESCOPE_UNITY=ON)
fi
if ! cmake --preset "$preset" "${from_nothing[@]}" > "$log" 2>&1; then
  tail -n 40 "$log" >&2
  echo "build.sh: CMake could not configure the preset $preset; is everything installed that tools/dependencies.sh names?" >&2
  exit 1
fi
quiet=()
[ -t 1 ] || quiet=(--quiet)
cmake --build --preset "$preset" --target "${@:-all}" -- "${quiet[@]}"
