#!/usr/bin/env bash
# PyTorch itself judges the files: tests/pytorch/run.sh [PROGRAM]; or only the installation: tests/pytorch/run.sh --packages
#
# Installs the current PyTorch and Megatron-Core into build/pytorch (3 GB to fetch, once), compares its lowering and its
# files with ours, trains what we write in its pipeline runtime, four processes over gloo, and reads profiles of both.
# Takes up to twelve minutes on two cores.
# Exit status: 0 agreed, 1 did not, 77 PyPI cannot be reached.
set -uo pipefail
cd "$(dirname "$0")/../.."
program=${1:-build/ci/bubblescope}
venv=build/pytorch/venv
torch='torch>=2.15,<2.16'

installed() { "$venv/bin/python" -c 'import sys, torch; sys.exit(not torch.__version__.startswith("2.15."))' 2> /dev/null; }
has_megatron() { "$venv/bin/python" -c 'import einops, megatron.core' 2> /dev/null; }

if ! installed; then
  mkdir -p build/pytorch
  python3 -m venv "$venv" > build/pytorch/venv.log 2>&1 || { tail -n 5 build/pytorch/venv.log; exit 1; }
  if ! "$venv/bin/pip" index versions torch > build/pytorch/pip.log 2>&1; then
    echo "PyTorch: not checked, PyPI cannot be reached (build/pytorch/pip.log)"
    exit 77
  fi
  "$venv/bin/pip" install -q --no-cache-dir "$torch" numpy > build/pytorch/pip.log 2>&1 ||
    { tail -n 5 build/pytorch/pip.log; exit 1; }
fi

if ! has_megatron; then  # without what it would install besides, such as libraries for GPUs
  "$venv/bin/pip" install -q --no-cache-dir --no-deps 'megatron-core>=0.16,<0.17' packaging einops > build/pytorch/pip.log 2>&1 ||
    { tail -n 5 build/pytorch/pip.log; exit 1; }
fi

[ "$program" != --packages ] || exit 0
status=0
"$venv/bin/python" tests/pytorch/lower_as_pytorch.py "$program" || status=1
timeout 300 "$venv/bin/python" tests/pytorch/train_in_pytorch.py "$program"
trained=$?
[ $trained = 124 ] && echo "PyTorch: not trained to the end within 300 s"
[ $trained = 0 ] || status=1
timeout 200 "$venv/bin/python" tests/pytorch/record_in_pytorch.py "$program" || status=1
timeout 200 "$venv/bin/python" tests/pytorch/record_in_megatron.py "$program" || status=1
exit $status
