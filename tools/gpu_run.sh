#!/usr/bin/env bash
# Measures everything of interest on a machine with a GPU, in sections that fit into calls with a time limit.
#   bash tools/gpu_run.sh SECTION OUTDIR [SECONDS]
#   bash tools/gpu_run.sh --rehearse BUILD SECTION OUTDIR [SECONDS]   the same, small, on a simulated device
# Sections (tools/gpu_sections.sh), in the order in which to run them, with their seconds:
#   smoke 60, speed 180, correctness 540, predict4 260, predict8 420, nccl 180, or all.
# Nothing is built, downloaded or installed: the program and its modules are those of build/cuda or of a bundle
# (tools/gpu_bundle.sh). cuBLAS is found through LD_LIBRARY_PATH, the toolkit or Python's packages. Every command has a
# limit, a failure does not affect the others, and a test that skips is a failure here. OUTDIR/SECTION holds each result
# as soon as it exists; at the end of a section, also if the script is stopped, OUTDIR/SECTION.tar.gz holds them all,
# and OUTDIR/SECTION/summary.md names what passed, failed and is missing. The exit status is 0 if every step passed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
usage="usage: gpu_run.sh [--rehearse BUILD] smoke|speed|correctness|predict4|predict8|nccl|all OUTDIR [SECONDS]"
rehearses=false
build=$PWD/build/cuda
[ -d "$build" ] || build=$PWD
if [ "${1:-}" = --rehearse ]; then
  rehearses=true
  build=$(cd "${2:?$usage}" && pwd) || exit 2
  shift 2
fi
wanted=${1:?$usage}
out=$(mkdir -p "${2:?$usage}" && cd "$2" && pwd) || exit 2
budget=${3:-}
program=$build/bubblescope
declare -A seconds_of=([smoke]=60 [speed]=180 [correctness]=540 [predict4]=260 [predict8]=420 [nccl]=180)
order="smoke speed correctness predict4 predict8 nccl"
max_archive=$((16 * 1024 * 1024))
max_limit=${BUBBLESCOPE_GPU_MAX_LIMIT:-600}  # of any command, in seconds; tests of faults lower it
slack=1  # a rehearsal is not about speed, unless it is given a time
! $rehearses || [ -n "$budget" ] || slack=5
failed=0
section="" folder="" log="" planning=false deadline=0 sampler=""

# shellcheck source=tools/gpu_sections.sh
. tools/gpu_sections.sh

left() { echo $((deadline - SECONDS)); }

say() { echo "$*" | tee -a "$log"; }

note_end() { printf '%s\t%s\t%s\n' "$1" "$2" "$3" >> "$folder/steps.tsv"; }  # NAME HOW SECONDS

step() {  # NAME LIMIT COMMAND...: runs within the limit and the time that is left, and notes how it ended
  local name=$1 limit=$2 start=$SECONDS status=0
  shift 2
  if $planning; then
    echo "$name" >> "$folder/planned.txt"
    return 0
  fi
  [ "$slack" = 1 ] || limit=$((limit * slack))
  [ "$(left)" -gt 3 ] || { say "$name: left out, the time is up"; failed=1; return 1; }
  [ "$limit" -lt "$(left)" ] || limit=$(left)
  [ "$limit" -lt "$max_limit" ] || limit=$max_limit
  # A step without progress is stopped well before, so that the program can say where it is blocked.
  patience=$((limit / 3 > 2 ? limit / 3 : 2))
  export BUBBLESCOPE_GPU_STEP=$name patience
  # In the background, so that a signal to this script is handled while it waits; by bash, so that it may be a function.
  # The shell stays until its command has ended, else the limit would end with the shell and a blocked command stay.
  timeout -k 3 "$limit" bash -c 'trap : TERM; "$@"' step "$@" >> "$log" 2>&1 < /dev/null &
  running=$!
  wait "$running" || status=$?
  kill -KILL -- "-$running" 2> /dev/null  # nothing that a step began holds the device during the next
  running=""
  if [ "$status" = 0 ]; then
    say "$name: passed in $((SECONDS - start)) s"
    note_end "$name" passed $((SECONDS - start))
  else
    failed=1
    [ "$status" = 124 ] || [ "$status" = 137 ] && status="$status (it ran into its limit of $limit s)"
    say "$name: FAILED with status $status after $((SECONDS - start)) s"
    note_end "$name" "failed: $status" $((SECONDS - start))
    return 1
  fi
}

find_libraries() {  # folders with cuBLASLt, NCCL and CUPTI
  timeout 10 python3 - 2> /dev/null <<'PYTHON'
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
  if command -v nvidia-smi > /dev/null; then
    timeout 10 nvidia-smi --query-gpu="$state" --format=csv 2>&1
  else
    echo "nvidia-smi: not installed"
  fi
  timeout -k 1 $(($(left) / 3 + 1)) "$program" run gpipe --pp 1 -m 1 --backend cuda --work sleep --f 1us --b 1us --steps 1 2>&1 |
    grep -E '^measured on|while measured|were not noted'
  timeout 2 "$program" --version 2>&1 | head -n 1
  timeout 5 git rev-parse HEAD 2> /dev/null
  uname -srm
}

watch_state() {  # clocks, power and temperature, twice a second, until the end of the section
  command -v nvidia-smi > /dev/null || return 0
  nvidia-smi --query-gpu=timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu --format=csv,nounits -lms 500 \
    > "$folder/state.csv" 2> /dev/null &
  sampler=$!
}

stop_children() {
  [ -z "$sampler" ] || kill "$sampler" 2> /dev/null
  [ -z "${running:-}" ] || kill "$running" 2> /dev/null
  sampler="" running=""
}

finish_section() {  # the summary, and one archive that is small enough to be carried
  stop_children
  [ -n "$section" ] || return 0
  local archive=$out/$section.tar.gz left_out="" largest
  timeout 60 python3 tools/gpu_summary.py "$folder" 2>&1 | tee -a "$log"
  timeout 60 python3 tools/gpu_summary.py --merge "$out" 2>&1 | tee -a "$log"
  while tar -czf "$archive" -C "$out" "$section" && [ "$(stat -c %s "$archive")" -gt "$max_archive" ]; do
    largest=$(find "$folder" -type f -printf '%s %p\n' | sort -n | tail -n 1 | cut -d' ' -f2-)
    [ -n "$largest" ] || break
    left_out="$left_out ${largest#"$folder"/}"
    rm -f "$largest"
    echo "Left out of the archive, which would be too large:$left_out" > "$folder/left_out.txt"
  done
  [ -z "$left_out" ] || say "too large for the archive:$left_out"
  section=""
}

run_section() {  # NAME SECONDS
  section=$1
  deadline=$((SECONDS + $2 * slack))
  folder=$out/$section
  rm -rf "$folder" && mkdir -p "$folder" || exit 2
  log=$folder/run.log
  : > "$log"
  : > "$folder/steps.tsv"
  planning=true
  "run_$section"
  planning=false
  say "== $section, within $2 s"
  describe_machine > "$folder/machine.txt" 2>&1
  watch_state
  "run_$section"
  finish_section
}

trap 'finish_section' EXIT
trap 'failed=1; exit 143' TERM INT
mapfile -t folders < <(find_libraries | sort -u)
for found in "${folders[@]}"; do LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$found; done
if $rehearses; then
  export BUBBLESCOPE_CUDA_MODULE=$build/tests/bubblescope_simulated_gpu.so BUBBLESCOPE_SPEED_WIDTH=32
  export BUBBLESCOPE_SIMULATED_GPU_TRAITS=gaps,drift
  LD_LIBRARY_PATH=$build/tests/nvml${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi
export LD_LIBRARY_PATH build program folder

if [ "$wanted" = all ]; then
  end=$((SECONDS + ${budget:-1640}))
  for each in $order; do
    within=${seconds_of[$each]}
    [ $((end - SECONDS)) -ge "$within" ] || within=$((end - SECONDS))
    [ "$within" -gt 5 ] || { echo "$each: left out, the time is up"; failed=1; continue; }
    run_section "$each" "$within"
  done
elif [ -n "${seconds_of[$wanted]:-}" ]; then
  run_section "$wanted" "${budget:-${seconds_of[$wanted]}}"
else
  echo "$usage" >&2
  exit 2
fi
exit $failed
