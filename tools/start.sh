#!/usr/bin/env bash
# From a fresh machine to a first simulation: installs what is missing, builds, runs.
#   bash tools/start.sh [PRESET]      (release unless given)
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}

bash tools/dependencies.sh build
bash tools/build.sh "$preset" bubblescope
set -x
"build/$preset/bubblescope" simulate 1f1b --pp 4 --microbatches 8
