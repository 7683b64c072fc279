#!/usr/bin/env bash
# Everything that is to be known from a machine with a GPU, in one call of less than ten minutes: is the
# build sound, are kernels and gradients right, what do ops cost, and do predictions hold.
#   bash tools/gpu_run.sh OUTDIR [SECONDS]     (540 seconds unless given)
# It needs no network and no package manager: what `bash tools/build.sh cuda` has built is used, as long as it
# runs there; otherwise it is built. cuBLAS is found through LD_LIBRARY_PATH, the toolkit or Python's packages.
# OUTDIR gets at most eight files; summary.md is the one to read, runs.json the one to keep in traces/measured.
set -uo pipefail
cd "$(dirname "$0")/.."
out=$(mkdir -p "${1:?usage: gpu_run.sh OUTDIR [SECONDS]}" && cd "$1" && pwd)
deadline=$((SECONDS + ${2:-540}))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
program=build/cuda/bubblescope
log=$out/run.log
: > "$log"

left() { echo $((deadline - SECONDS)); }

say() { echo "$*" | tee -a "$log"; }

step() {  # NAME LIMIT COMMAND...: runs within the limit and the time that is left; tells how it ended
  local name=$1 limit=$2 start=$SECONDS
  shift 2
  [ "$(left)" -gt 10 ] || { say "$name: left out, the time is up"; return 1; }
  [ "$limit" -lt "$(left)" ] || limit=$(left)
  if timeout -k 5 "$limit" "$@" >> "$log" 2>&1; then
    say "$name: passed in $((SECONDS - start)) s"
  else
    say "$name: FAILED with status $? after $((SECONDS - start)) s"
    return 1
  fi
}

find_libraries() {  # folders with cuBLASLt and NCCL
  python3 - 2> /dev/null <<'PYTHON'
import glob, sys
places = sys.path + ["/usr/local/cuda"]
for place in places:
    for name in ("libcublasLt.so.*", "libnccl.so.2"):
        for pattern in (f"{place}/nvidia/*/lib/{name}", f"{place}/lib64/{name}"):
            for found in glob.glob(pattern):
                print(found.rsplit("/", 1)[0])
PYTHON
}

compare() {  # FILE ARGUMENT...: predicted and measured, as json
  local file=$1
  shift
  timeout -k 5 60 "$program" compare "$@" --backend cuda --format json > "$work/$file.json" 2>> "$log" ||
    { say "compare $*: FAILED"; mv "$work/$file.json" "$work/$file.failed" 2> /dev/null; }
}

model=(--work transformer --precision bf16 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --vocab-size 2048
       --no-proof --graph --warmup 3)

calibrate() {  # RANKS CHUNKS BLOCKS: costs of every stage, from other shapes than those that are predicted
  local schedules=1f1b,zb-h1
  [ "$2" = 1 ] || schedules=interleaved,interleaved-zb
  step "calibrate $1 ranks x $2 chunks" 60 "$program" calibrate "$schedules" --backend cuda "${model[@]}" --pp "$1" --vpp "$2" \
    -m $(($1 * 5)) --layers-per-stage "$3" --steps 5 -o "$work/costs-$1x$2.json"
}

validate() {  # RANKS MICROBATCHES: ten schedules and more, each predicted and measured
  [ "$(left)" -gt 40 ] || { say "validation of $1 ranks, $2 micro-batches: left out, the time is up"; return; }
  local common=("${model[@]}" --pp "$1" -m "$2" --steps 3)
  [ ! -f "$work/costs-$1x1.json" ] || compare "run-$1x1-$2" gpipe,1f1b,eager-1f1b,zb-h1,zb-h2,zb-1p "${common[@]}" \
    --layers-per-stage 2 --costs "$work/costs-$1x1.json"
  [ ! -f "$work/costs-$1x2.json" ] || compare "run-$1x2-$2" interleaved,bfs,zb-v,interleaved-zb,v-half,v-min,dualpipev \
    "${common[@]}" --vpp 2 --layers-per-stage 1 --costs "$work/costs-$1x2.json"
}

mapfile -t folders < <(find_libraries | sort -u)
for folder in "${folders[@]}"; do LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder; done
export LD_LIBRARY_PATH

{
  date -u
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.mem,temperature.gpu,power.draw --format=csv 2>&1
  git rev-parse HEAD 2>&1
  uname -srm
} > "$out/machine.txt"

if ! "$program" --version >> "$log" 2>&1; then
  say "the carried build does not run here; building"
  step build 400 bash tools/build.sh cuda || exit 1
fi

say "== gradients, kernels, times"
step "tests on the GPU" 150 build/cuda/tests/gpu_tests
small=(run zb-h1 --pp 2 -m 2 --backend cuda --work transformer --hidden-size 64 --steps 1)
step "a proof from the command line" 60 "$program" "${small[@]}"
if command -v compute-sanitizer > /dev/null; then
  for tool in memcheck racecheck; do
    step "$tool" 60 compute-sanitizer --tool "$tool" --error-exitcode 9 "$program" "${small[@]}"
  done
else
  say "compute-sanitizer is not here: memory and races are not checked"
fi

step "processes over NCCL" 120 bash tools/gpu_nccl.sh "$out" "$program"

say "== the executor alone: ops of known length"
for ranks in 4 8; do
  compare "spin-$ranks" gpipe,1f1b,zb-h1,zb-h2,interleaved,zb-v,v-half --pp "$ranks" -m $((2 * ranks)) --work spin --steps 3
  compare "spin-graph-$ranks" gpipe,1f1b,zb-h1,zb-h2 --pp "$ranks" -m $((2 * ranks)) --work spin --steps 3 --graph
done

say "== calibration and validation"
for ranks in 4 8; do
  calibrate "$ranks" 1 2
  calibrate "$ranks" 2 1
done
for factor in 2 3 4; do
  for ranks in 4 8; do validate "$ranks" $((ranks * factor)); done
done

say "== timelines"
for name in 1f1b zb-v; do
  step "timeline of $name" 40 "$program" run "$name" --pp 4 -m 8 --backend cuda "${model[@]}" --layers-per-stage 1 \
    --steps 3 --trace "$out/$name.json.gz"
done

python3 tools/gpu_summary.py "$out" "$work" | tee -a "$log"
