#!/usr/bin/env bash
# Measures everything of interest on a machine with a GPU, in one call with a time limit: is the build sound, are
# kernels and gradients right, what do ops cost, do predictions hold, how fast is it.
#   bash tools/gpu_run.sh OUTDIR [SECONDS]          (540 seconds unless given)
#   bash tools/gpu_run.sh --rehearse OUTDIR BUILD   the same, small, on a simulated device; BUILD has the program
# A build of `bash tools/build.sh cuda`, made here or elsewhere, is used if it runs; otherwise it is built. Nothing is
# downloaded or installed. cuBLAS is found through LD_LIBRARY_PATH, the toolkit or Python's packages. Every step has
# its own limit, and a failing one does not affect the others' results: correctness comes first, then speed.
# OUTDIR/summary.md is the file to read, runs.json the one to keep in traces/measured. The exit status is 0 when every
# step passed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
usage="usage: gpu_run.sh OUTDIR [SECONDS], or gpu_run.sh --rehearse OUTDIR BUILD"
rehearses=false
if [ "${1:-}" = --rehearse ]; then
  rehearses=true
  shift
fi
out=$(mkdir -p "${1:?$usage}" && cd "$1" && pwd) || exit 2
work=$(mktemp -d)
sampler=""
trap '[ -z "$sampler" ] || kill "$sampler" 2> /dev/null; rm -rf "$work"' EXIT
log=$out/run.log
: > "$log"
failed=0

if $rehearses; then
  build=$(cd "${2:?$usage}" && pwd)
  deadline=$((SECONDS + 540))
  export BUBBLESCOPE_CUDA_MODULE=$build/tests/bubblescope_simulated_gpu.so BUBBLESCOPE_SPEED_WIDTH=32
  ranks_tried="4"
  factors="2"
  # the simulated device computes nothing but fp32
  model=(--work transformer --precision fp32 --hidden-size 32 --num-attention-heads 2 --seq-length 16 --vocab-size 61
         --no-verify --graph --warmup 2)
  blocks=2
else
  build=$PWD/build/cuda
  deadline=$((SECONDS + ${2:-540}))
  ranks_tried="4 8"
  factors="2 3 4 5 6 8"
  model=(--work transformer --precision bf16 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024
         --vocab-size 2048 --no-verify --graph --warmup 3)
  blocks=2
fi
program=$build/bubblescope

left() { echo $((deadline - SECONDS)); }

say() { echo "$*" | tee -a "$log"; }

step() {  # NAME LIMIT COMMAND...: runs within the limit and the time that is left; tells how it ended
  local name=$1 limit=$2 start=$SECONDS status=0
  shift 2
  ! $rehearses || limit=$((limit * 5))  # a rehearsal is not about speed
  [ "$(left)" -gt 10 ] || { say "$name: left out, the time is up"; failed=1; return 1; }
  [ "$limit" -lt "$(left)" ] || limit=$(left)
  timeout -k 5 "$limit" "$@" >> "$log" 2>&1 || status=$?
  if [ "$status" = 0 ]; then
    say "$name: passed in $((SECONDS - start)) s"
  else
    failed=1
    say "$name: FAILED with status $status after $((SECONDS - start)) s"
    return 1
  fi
}

find_libraries() {  # folders with cuBLASLt, NCCL and CUPTI
  python3 - 2> /dev/null <<'PYTHON'
import glob, sys
places = sys.path + ["/usr/local/cuda"]
for place in places:
    for name in ("libcublasLt.so.*", "libnccl.so.2", "libcupti.so.13"):
        for pattern in (f"{place}/nvidia/*/lib/{name}", f"{place}/lib64/{name}", f"{place}/extras/CUPTI/lib64/{name}"):
            for found in glob.glob(pattern):
                print(found.rsplit("/", 1)[0])
PYTHON
}

describe_machine() {
  local state=name,driver_version,memory.total,clocks.sm,clocks.mem,clocks.max.sm,power.draw,power.limit,temperature.gpu
  date -u
  $rehearses && echo "REHEARSAL on a simulated device: no figure here is one of hardware"
  nvidia-smi --query-gpu="$state" --format=csv 2>&1
  "$program" run gpipe --pp 1 -m 1 --backend cuda --work sleep --f 1us --b 1us --steps 1 2>&1 |
    grep -E '^measured on|while measured|were not noted'
  git rev-parse HEAD 2>&1
  uname -srm
}

watch_state() {  # clocks, power and temperature, twice a second, until the end
  command -v nvidia-smi > /dev/null || return
  nvidia-smi --query-gpu=timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu --format=csv,nounits -lms 500 \
    > "$out/state.csv" 2> /dev/null &
  sampler=$!
}

is_carried() {  # the program and its module need nothing that another machine may lack
  local file needs sound=true
  for file in "$program" "$build/bubblescope_cuda.so"; do
    needs=$(ldd "$file") || sound=false
    echo "$needs"
    if grep -E 'libstdc\+\+|libfmt|libcuda|libcublas|not found' <<< "$needs"; then
      echo "$file needs what is named above"
      sound=false
    fi
  done
  $sound
}

tests() { "$build/tests/gpu_tests" --gtest_filter="$1"; }

prove() {  # PRECISION: the gradients of schedules of every kind against one thread of the host
  local schedule
  for schedule in 1f1b zb-h1 zb-v dualpipe pipedream pipedream-2bw bpipe "1f1b --offload 1" "1f1b --attention flash" "seq1f1b --slices 2" \
    "terapipe --slices 4" "slimpipe --slices 4" "1f1b --epilogue separate" \
    "pipedream --replicas 2,1,1 --optimizer local" "zb-h1 --graph" \
    "1f1b --graph --training-optimizer adam"; do
    # shellcheck disable=SC2086  # a name and its options
    "$program" run $schedule --pp 4 -m 8 --backend cuda --work transformer --hidden-size 32 --seq-length 16 \
      --precision "$1" --steps 2 --format csv || return
  done
}

compare() {  # FILE ARGUMENT...: predicted and measured, as json
  local file=$1
  shift
  step "$file" 60 bash -c '"$@" > "$0"' "$work/$file.json" "$program" compare "$@" --backend cuda --format json ||
    mv "$work/$file.json" "$work/$file.failed" 2> /dev/null
}

calibrate() {  # RANKS CHUNKS BLOCKS: costs of every stage, alone and in company, from other shapes than are predicted
  local schedules=1f1b,zb-h1
  [ "$2" = 1 ] || schedules=interleaved,interleaved-zb
  step "calibration of $1 ranks x $2 chunks" 60 "$program" calibrate "$schedules" --backend cuda "${model[@]}" \
    --pp "$1" --vpp "$2" -m $(($1 * 7)) --layers-per-stage "$3" --steps 5 -o "$work/costs-$1x$2.json"
}

validate() {  # RANKS MICROBATCHES: thirteen schedules, each predicted and measured
  local common=("${model[@]}" --pp "$1" -m "$2" --steps 3)
  [ ! -f "$work/costs-$1x1.json" ] || compare "run-$1x1-$2" gpipe,1f1b,eager-1f1b,zb-h1,zb-h2,zb-1p "${common[@]}" \
    --layers-per-stage $blocks --costs "$work/costs-$1x1.json"
  [ ! -f "$work/costs-$1x2.json" ] || compare "run-$1x2-$2" interleaved,bfs,zb-v,interleaved-zb,v-half,v-min,dualpipev \
    "${common[@]}" --vpp 2 --layers-per-stage $((blocks / 2)) --costs "$work/costs-$1x2.json"
}

sanitize() {  # TOOL
  compute-sanitizer --tool "$1" --error-exitcode 9 "$program" run zb-h1 --pp 2 -m 2 --backend cuda \
    --work transformer --hidden-size 64 --steps 1
}

mapfile -t folders < <(find_libraries | sort -u)
for folder in "${folders[@]}"; do LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder; done
export LD_LIBRARY_PATH build program
export -f is_carried tests prove sanitize

say "== the build"
if ! $rehearses; then
  if ! "$program" --version >> "$log" 2>&1; then
    say "the build that is here does not run; building"
    step build 400 bash tools/build.sh cuda || exit 1
  fi
  step "the build can be carried to other machines" 10 bash -c is_carried
fi
describe_machine > "$out/machine.txt"
watch_state

say "== what is right"
if ! $rehearses; then
  step "kernels and steps on the GPU" 90 bash -c 'tests "-GpuGradients.*:*GpuSpeed*:GpuExecutor.*"'
  step "gradients of every schedule, fp32 and bf16" 120 bash -c 'tests "GpuGradients.*"'
fi
step "proofs from the command line, fp32" 90 bash -c 'prove fp32'
$rehearses || step "proofs from the command line, bf16" 90 bash -c 'prove bf16'
if $rehearses; then
  :
elif command -v compute-sanitizer > /dev/null; then
  for tool in memcheck racecheck; do step "$tool" 60 bash -c "sanitize $tool"; done
else
  say "compute-sanitizer is not here: memory and races are not checked"
fi

say "== calibration, and predictions of other shapes"
for ranks in $ranks_tried; do
  calibrate "$ranks" 1 $blocks
  calibrate "$ranks" 2 $((blocks / 2))
done
for factor in $factors; do
  for ranks in $ranks_tried; do validate "$ranks" $((ranks * factor)); done
done

$rehearses || step "processes over NCCL" 120 bash tools/gpu_nccl.sh "$out" "$program"

say "== ops of known length"
for ranks in $ranks_tried; do
  compare "spin-$ranks" gpipe,1f1b,zb-h1,zb-h2,interleaved,zb-v,v-half --pp "$ranks" -m $((2 * ranks)) --work spin --steps 3
  compare "spin-graph-$ranks" gpipe,1f1b,zb-h1,zb-h2 --pp "$ranks" -m $((2 * ranks)) --work spin --steps 3 --graph
done

say "== timelines"
for name in 1f1b zb-v; do
  step "timeline of $name" 40 "$program" run "$name" --pp 4 -m 8 --backend cuda "${model[@]}" \
    --layers-per-stage $((blocks / 2)) --steps 3 --trace "$out/$name.json.gz"
done

# Runs without a graph, because ops cannot be told apart in one.
step "kernels of 1f1b" 40 "$program" run 1f1b --pp 4 -m 8 --backend cuda "${model[@]/--graph/--share=green}" \
  --layers-per-stage $((blocks / 2)) --steps 2 --activity "$out/1f1b-kernels.json.gz"

say "== what is fast"
step "products next to plain cuBLAS" 60 bash -c 'tests "*GpuSpeed*"'
step "what the executor adds" 60 bash -c 'tests "GpuExecutor.*"'

python3 tools/gpu_summary.py "$out" "$work" | tee -a "$log"
say "$([ $failed = 0 ] && echo 'every step passed' || echo 'some steps FAILED or were left out'), after $SECONDS s"
exit $failed
