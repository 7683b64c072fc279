# The sections of tools/gpu_run.sh, which sources this file. A section is called twice: first with $planning set, when
# step() only notes what belongs to it, so that the summary can name what is missing.
# shellcheck shell=bash disable=SC2154  # gpu_run.sh sets the variables

if $rehearses; then
  # The simulated device computes nothing but fp32.
  model=(--work transformer --precision fp32 --hidden-size 32 --num-attention-heads 2 --seq-length 16 --vocab-size 61
         --no-verify --warmup 2)
  factors="2 3"
  proof_size="--hidden-size 16 --seq-length 8"
else
  model=(--work transformer --precision bf16 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024
         --vocab-size 2048 --no-verify)
  factors="2 3 4 5 6 8"
  proof_size="--hidden-size 32 --seq-length 16"
fi
blocks=2  # per stage with one chunk per rank

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

tests() {  # FILTER: a test that skips for want of a GPU is a failure here, and so is a filter without tests
  local told status=0
  # The ops of a rehearsal are so short that the simulated gaps would exceed the limits of real ones.
  told=$(BUBBLESCOPE_SIMULATED_GPU_TRAITS=drift "$build/tests/gpu_tests" --gtest_filter="$1" 2>&1) || status=$?
  echo "$told"
  if grep -q 'SKIPPED' <<< "$told"; then
    echo "a test was skipped"
    status=1
  fi
  grep -qE '^\[ +PASSED +\] [1-9]' <<< "$told" || status=1
  return "$status"
}

on_gpu() {  # RESULT ARGUMENT...: one call of the program, whose output goes to a file of the section
  local result=$folder/$1
  shift
  # A file has the name of a result only once it is whole: the program, and this shell, may be killed at any time.
  "$program" "$@" --backend cuda --timeout "${patience}s" > "$result.failed" || return
  mv "$result.failed" "$result"
}

prove() {  # PRECISION RANKS SCHEDULE...: gradients against one thread of the host
  local precision=$1 ranks=$2 schedule status=0
  shift 2
  for schedule in "$@"; do
    # shellcheck disable=SC2086  # names with their options
    "$program" run $schedule --pp "$ranks" -m 8 --backend cuda --work transformer $proof_size \
      --precision "$precision" --steps 2 --format csv --timeout "${patience}s" || { echo "$schedule: status $?"; status=1; }
  done
  return "$status"
}

sanitize() {  # TOOL: cuBLAS's own kernels are slow to check, and are not ours
  timeout --foreground -k 3 110 compute-sanitizer --tool "$1" --error-exitcode 9 --kernel-name-exclude kns=nvjet \
    --kernel-name-exclude kns=cublas "$program" run zb-h1 --pp 2 -m 2 --backend cuda --work transformer \
    --hidden-size 64 --steps 1
}

compare() {  # FILE LIMIT ARGUMENT...: predicted and measured; FILE.jsonl grows with every schedule that is measured
  local file=$1 limit=$2
  shift 2
  step "$file" "$limit" on_gpu "$file.json" compare "$@" --format json --results "$folder/$file.jsonl"
}

run_smoke() {
  $rehearses || step "the program and its module can be carried" 5 is_carried
  step "the device and its partitions" 20 on_gpu sleep.csv run gpipe --pp 4 -m 4 --work sleep --f 1us --b 1us \
    --steps 1 --format csv
  local ranks
  for ranks in 4 8; do
    step "spin on $ranks green contexts" 20 on_gpu "spin-$ranks.csv" run 1f1b --pp "$ranks" -m 8 --work spin --format csv
    step "spin on $ranks green contexts in a graph" 20 on_gpu "spin-graph-$ranks.csv" run 1f1b --pp "$ranks" -m 8 \
      --work spin --graph --format csv
  done
  step "gradients on two ranks, fp32" 20 prove fp32 2 1f1b zb-h1
  $rehearses || step "gradients on two ranks, bf16" 20 prove bf16 2 1f1b zb-h1
}

time_attention_of_pytorch() {
  local status=0
  python3 tools/gpu_attention.py || status=$?
  [ "$status" != 77 ] || status=0  # it is there or not, and the figures say which
  return "$status"
}

run_speed() {
  step "GEMMs next to plain cuBLAS" 60 tests 'Ranks/GpuSpeed.*:GpuSpeedOfEpilogues.*'
  $rehearses || step "norms, softmax and attention" 30 tests 'GpuSpeedOfLayers.*'
  $rehearses || step "attention of PyTorch" 40 time_attention_of_pytorch
  step "what the executor adds" 60 tests 'GpuExecutor.*'
  local ranks
  for ranks in 4 8; do
    compare "spin-$ranks" 20 gpipe,1f1b,zb-h1,zb-h2,interleaved,zb-v,v-half --pp "$ranks" -m $((2 * ranks)) --work spin --steps 3
    compare "spin-graph-$ranks" 20 gpipe,1f1b,zb-h1,zb-h2 --pp "$ranks" -m $((2 * ranks)) --work spin --steps 3 --graph
  done
}

run_correctness() {
  local schedules=(1f1b zb-h1 zb-v dualpipe pipedream pipedream-2bw bpipe "1f1b --offload 1" "1f1b --attention flash"
    "seq1f1b --slices 2" "terapipe --slices 4" "slimpipe --slices 4" "1f1b --epilogue separate"
    "pipedream --replicas 2,1,1 --optimizer local" "zb-h1 --graph" "1f1b --training-optimizer adam")
  if ! $rehearses; then
    step "kernels and steps on the GPU" 90 tests '-GpuGradients.*:*GpuSpeed*:GpuExecutor.*'
    step "gradients of every schedule, fp32 and bf16" 120 tests 'GpuGradients.*'
  fi
  step "proofs from the command line, fp32" 90 prove fp32 4 "${schedules[@]}"
  $rehearses || step "proofs from the command line, bf16" 90 prove bf16 4 "${schedules[@]}"
  local name tool
  for name in 1f1b zb-v; do
    step "timeline of $name" 40 on_gpu "$name.csv" run "$name" --pp 4 -m 8 "${model[@]}" \
      --layers-per-stage $((blocks / 2)) --steps 3 --format csv --trace "$folder/$name.json.gz"
  done
  step "kernels of 1f1b" 40 on_gpu 1f1b-kernels.csv run 1f1b --pp 4 -m 8 "${model[@]}" \
    --layers-per-stage $((blocks / 2)) --steps 2 --format csv --activity "$folder/1f1b-kernels.json.gz"
  $rehearses && return
  for tool in memcheck racecheck; do step "$tool of our kernels" 120 sanitize "$tool"; done
}

predict() {  # RANKS: costs from other shapes than are predicted, then thirteen schedules in every shape
  local ranks=$1 chunks schedules factor limit=$((20 * $1 / 2))
  for chunks in 1 2; do
    schedules=1f1b,zb-h1
    [ "$chunks" = 1 ] || schedules=interleaved,interleaved-zb
    step "costs-${ranks}x$chunks" "$limit" on_gpu "costs-${ranks}x$chunks.txt" calibrate "$schedules" "${model[@]}" \
      --pp "$ranks" --vpp "$chunks" -m $((ranks * 7)) --layers-per-stage $((blocks / chunks)) --steps 5 \
      -o "$folder/costs-${ranks}x$chunks.json"
  done
  for factor in $factors; do
    for chunks in 1 2; do
      schedules=gpipe,1f1b,eager-1f1b,zb-h1,zb-h2,zb-1p
      [ "$chunks" = 1 ] || schedules=interleaved,bfs,zb-v,interleaved-zb,v-half,v-min,dualpipev
      compare "run-${ranks}x$chunks-$((ranks * factor))" "$limit" "$schedules" "${model[@]}" --pp "$ranks" --vpp "$chunks" \
        -m $((ranks * factor)) --steps 3 --layers-per-stage $((blocks / chunks)) \
        --costs "$folder/costs-${ranks}x$chunks.json"
    done
  done
}

run_predict4() { predict 4; }

run_predict8() { predict 8; }

run_nccl() {
  $rehearses || step "processes over NCCL" 170 bash tools/gpu_nccl.sh "$folder" "$program"
}

export proof_size
export -f is_carried tests on_gpu prove sanitize time_attention_of_pytorch
