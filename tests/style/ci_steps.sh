#!/usr/bin/env bash
# Tests .ci/run with pretended steps: passed, failed, cut off, skipped and unchecked steps are named as such, and only
# steps that ran and failed fail the run.
set -uo pipefail
cd "$(dirname "$0")/../.."

expect() {  # WHAT STATUS EXPECTED_STATUS OUTPUT PATTERN...: the output holds every pattern
  local what=$1 status=$2 expected=$3 output=$4 pattern
  shift 4
  [ "$status" = "$expected" ] || { echo "$what: status $status instead of $expected"; echo "$output"; exit 1; }
  for pattern in "$@"; do
    grep -qE -- "$pattern" <<< "$output" || { echo "$what: no '$pattern' in"; echo "$output"; exit 1; }
  done
}

output=$(source .ci/steps.sh; least_time=1; step good 10 true; report)
expect "what passes" $? 0 "$output" '=== good: passed' 'NOT CHECKED WHOLE: nothing'
output=$(source .ci/steps.sh; least_time=1; step bad 10 bash -c 'exit 3'; step good 10 true; report)
expect "what fails" $? 1 "$output" 'bad: FAILED with status 3' 'good: passed' '^FAILED: bad$' 'NOT CHECKED WHOLE: nothing'
output=$(source .ci/steps.sh; least_time=1; step slow 1 sleep 30; step good 10 true; report)
expect "its own limit" $? 1 "$output" 'slow: FAILED with status 124' 'good: passed' '^FAILED: slow$'
output=$(source .ci/steps.sh; least_time=1; deadline=$((SECONDS + 2)); step slow 100 sleep 30; step late 10 true; report)
expect "the deadline" $? 0 "$output" 'late: left out' 'WHOLE: slow \(cut off .*; late \(left out'
output=$(source .ci/steps.sh; least_time=1; step stubborn 1 bash -c 'trap "" TERM; sleep 5 & wait; sleep 1'; report)
expect "what ignores its end" $? 1 "$output" '^FAILED: stubborn$'
output=$(source .ci/steps.sh; least_time=1; step nowhere 10 bash -c 'echo no root; exit 77'; report)
expect "what cannot be checked" $? 0 "$output" 'nowhere: not checked' 'WHOLE: nowhere \(cannot'
output=$(source .ci/steps.sh; least_time=1; step killed 10 bash -c 'exit 137'; report)
expect "what is killed early" $? 1 "$output" 'killed: FAILED with status 137'
output=$(source .ci/steps.sh; least_time=1; on_trial step new 10 false; step bad 10 false; report)
expect "what is on trial" $? 1 "$output" '=== new: FAILED' '^FAILED: bad$' 'WHOLE: new \(FAILED, on trial\)'
begin=$SECONDS
output=$(source .ci/steps.sh; least_time=1; begin_step beside 10 bash -c 'sleep 2; echo heard; exit 4'; step good 10 sleep 2
         finish_step beside; begin_step other 10 true; report)
expect "what runs beside others" $? 1 "$output" 'good: passed' 'heard' 'beside: FAILED with status 4 after [0-9]+ s' 'other: passed' \
  '^FAILED: beside$'
[ $((SECONDS - begin)) -lt 4 ] || { echo "a step waited for one that was to run beside it"; exit 1; }
output=$(source .ci/steps.sh; least_time=1; deadline=$((SECONDS + 2)); begin_step slow 100 sleep 30; begin_step short 1 sleep 30
         sleep 2; begin_step late 10 true; report)
expect "limits of what runs beside others" $? 1 "$output" 'slow \(cut off after' 'late \(left out' '^FAILED: short$'
begin=$SECONDS
output=$(source .ci/steps.sh; least_time=1; step family 1 bash -c 'sleep 40 & sleep 40 & wait'; report)
expect "a family of processes" $? 1 "$output" '^FAILED: family$'
[ $((SECONDS - begin)) -lt 30 ] || { echo "children outlived their step"; exit 1; }
child=$(mktemp)
output=$(source .ci/steps.sh; least_time=1
         step left 1 bash -c '(trap "" TERM; echo $BASHPID > "$0"; sleep 40; sleep 40) > /dev/null & wait' "$child"; report)
expect "a child that ignores its end" $? 1 "$output" '^FAILED: left$'
state=$(sed 's/.*) \(.\).*/\1/' "/proc/$(cat "$child")/stat" 2> /dev/null)
[[ "$state" =~ ^[ZX]?$ ]] || { kill -KILL "$(cat "$child")"; echo "a child that ignores its end outlived its step"; exit 1; }
rm -f "$child"
echo "steps are named as what they were"
