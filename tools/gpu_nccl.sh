#!/usr/bin/env bash
# Runs the backend nccl on a machine with a GPU: one rank, two ranks on one GPU, and a rank per GPU where there are
# several.
#   bash tools/gpu_nccl.sh OUTDIR [PROGRAM]     (build/cuda/bubblescope unless given)
# It needs neither a launcher nor a network: the processes connect over loopback. OUTDIR/nccl.txt says what happened,
# one line per run followed by the output of each process. The exit status is 1 where a run was not as expected.
set -uo pipefail
out=$(mkdir -p "${1:?usage: gpu_nccl.sh OUTDIR [PROGRAM]}" && cd "$1" && pwd)
cd "$(dirname "$0")/.." || exit
program=${2:-build/cuda/bubblescope}
report=$out/nccl.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
port=$((20000 + $$ % 10000))
model=(--work transformer --hidden-size 64 --seq-length 64 --steps 2 --timeout 20s)
failed=0
: > "$report"

say() { echo "nccl: $*" | tee -a "$report"; }

ranks() {  # COUNT HOSTIDS(own|shared) ARGUMENT...: a process per rank; their words in $work/said, rank 0's exit status
  local count=$1 hosts=$2 rank pids=() status=0
  shift 2
  port=$((port + 7))
  for ((rank = count - 1; rank >= 0; --rank)); do
    (
      export RANK=$rank WORLD_SIZE=$count LOCAL_RANK=$rank MASTER_ADDR=127.0.0.1 MASTER_PORT=$port
      if [ "$hosts" = own ]; then
        export NCCL_HOSTID=rank$rank NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1
      fi
      exec timeout -k 5 60 "$program" "$@"
    ) > "$work/rank$rank" 2>&1 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid"; status=$?; done
  : > "$work/said"
  for ((rank = 0; rank < count; ++rank)); do sed "s/^/  rank $rank: /" "$work/rank$rank" | tail -n 40 >> "$work/said"; done
  return "$status"
}

expect() {  # NAME STATUS PATTERN COUNT HOSTIDS ARGUMENT...: says whether rank 0 ended with the status and the words
  local name=$1 wanted=$2 pattern=$3 start=$SECONDS status
  shift 3
  ranks "$@"
  status=$?
  if [ "$status" = "$wanted" ] && grep -qE "$pattern" "$work/said"; then
    say "$name: as expected, in $((SECONDS - start)) s"
  else
    say "$name: NOT AS EXPECTED after $((SECONDS - start)) s: exit status $status, and not $wanted with '$pattern'"
    failed=1
  fi
  cat "$work/said" >> "$report"
}

proof='equal the serial reference'
expect "1 rank" 0 "$proof" 1 shared run gpipe --pp 1 -m 4 --backend nccl "${model[@]}"
gpus=$(nvidia-smi --list-gpus 2> /dev/null | wc -l)
if [ "$gpus" -le 1 ]; then
  expect "2 ranks on one GPU of one host are refused" 3 "share the device" 2 shared run 1f1b --pp 2 -m 4 --backend nccl
fi
for schedule in 1f1b zb-h1 chimera; do
  expect "2 ranks on one GPU under two NCCL_HOSTIDs, $schedule" 0 "$proof" 2 own run "$schedule" --pp 2 -m 4 \
    --backend nccl "${model[@]}"
done
expect "2 ranks, batched messages in one group" 0 "$proof" 2 own run 1f1b --pp 2 -m 4 --p2p-mode batched \
  --backend nccl "${model[@]}"
expect "2 ranks, one dies" 3 "rank 1 died at 1F1" 2 own run 1f1b --pp 2 -m 4 --inject rank=1,op=1F1,die \
  --backend nccl "${model[@]}"
if [ "$gpus" -gt 1 ]; then
  expect "$gpus ranks on $gpus GPUs" 0 "$proof" "$gpus" shared run zb-h1 --pp "$gpus" -m $((2 * gpus)) --backend nccl "${model[@]}"
fi
exit "$failed"
