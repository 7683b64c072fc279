# Runs steps against one deadline, for .ci/run and its test. Sourcing it starts nothing.
#
# A step passes, fails, is cut off at the deadline, or is left out, either because too little time remains or because it
# exits with status 77. Steps that fail or exceed their own limit fail the run; steps that were cut off or left out are
# named at the end.

deadline=${deadline:-5280}      # seconds after the start by which everything has ended, reports included: 88 minutes
least_time=${least_time:-60}    # a step starts only if this many seconds remain
is_on_trial=""                  # yes: a step that fails is named, but does not fail the run
declare -A begun=()             # steps that run beside others: process, limit, time that was left, file
failed=""
missed=""
times=""

# Runs a step that has not been seen passing whole: where it fails it is named, but does not fail the run.
on_trial() {  # COMMAND...
  is_on_trial=yes
  "$@"
  is_on_trial=""
}

note_failed() {  # NAME
  if [ "$is_on_trial" = yes ]; then note_missed "$1 (FAILED, on trial)"; else failed+=" $1"; fi
}

note_missed() { missed+="${missed:+; }$1"; }

in_time() {  # SECONDS COMMAND...: runs it in a process group, which is killed as a whole
  local group status=0
  group=$(mktemp) || return
  timeout --kill-after=10 "$1" bash -o pipefail -c 'echo "$PPID" > "$0"; "$@"' "$group" "${@:2}" < /dev/null || status=$?
  kill -KILL -- "-$(cat "$group")" 2> /dev/null  # what ignores its end must not disturb the next step
  rm -f "$group"
  return "$status"
}

measured() {  # FILE SECONDS COMMAND...: in_time(), and writes to a file how many seconds of processor time it took
  local status=0 TIMEFORMAT='%U %S'
  { time in_time "${@:2}" 2>&3 || status=$?; } 3>&2 2> "$1"
  awk '{ printf "%d\n", $1 + $2 }' "$1" > "$1.sum" && mv "$1.sum" "$1"
  return "$status"
}

# Runs a command within its limit and the remaining time, and notes its result.
step() {  # NAME LIMIT COMMAND...
  local start=$SECONDS status=0 file
  enter_step "$1" "$2" || return 0
  file=$(mktemp) || exit
  measured "$file" "$limit" "${@:3}" || status=$?
  leave_step "$1" "$status" "$((SECONDS - start))" "$limit" "$left" "$(cat "$file")"
  rm -f "$file"
}

# Starts a step beside those that follow, for steps that wait for a network or use one core; finish_step() shows what it
# printed and notes its result.
begin_step() {  # NAME LIMIT COMMAND...
  local name=$1 file start=$SECONDS
  enter_step "$1" "$2" || return 0
  file=$(mktemp) || exit
  echo "=== $name: runs beside the next steps"
  {
    status=0
    measured "$file.used" "$limit" "${@:3}" > "$file" 2>&1 || status=$?
    echo "$status $((SECONDS - start)) $(cat "$file.used")" > "$file.end"
  } &
  begun[$name]="$! $limit $left $file"
}

finish_step() {  # NAME
  local pid limit left file status took used
  [ -n "${begun[$1]:-}" ] || return 0  # there was no time for it
  read -r pid limit left file <<< "${begun[$1]}"
  wait "$pid"
  read -r status took used < "$file.end"
  printf '\n=== %s, which ran beside the steps above\n' "$1"
  cat "$file"
  rm -f "$file" "$file.end" "$file.used"
  unset "begun[$1]"
  leave_step "$1" "$status" "$took" "$limit" "$left" "$used"
}

enter_step() {  # NAME LIMIT: sets left and limit, in seconds; false if too little time remains
  left=$((deadline - SECONDS))
  limit=$2
  printf '\n=== %s\n' "$1"
  if [ "$left" -lt "$least_time" ]; then
    echo "=== $1: left out, $SECONDS s after the start"
    note_missed "$1 (left out, for lack of time)"
    return 1
  fi
  [ "$limit" -lt "$left" ] || limit=$left
}

leave_step() {  # NAME STATUS SECONDS LIMIT LEFT SECONDS-OF-PROCESSOR-TIME
  local name=$1 status=$2 took=$3 load
  load=$(cut -d' ' -f1 /proc/loadavg 2> /dev/null || true)
  times+="$name $took s ($6 s of processor time, load $load)"$'\n'
  case $status in
    0) echo "=== $name: passed in $took s" ;;
    77) echo "=== $name: not checked"; note_missed "$name (cannot be checked here)" ;;
    124 | 137)
      if [ "$took" -ge "$4" ] && [ "$4" = "$5" ]; then
        echo "=== $name: cut off after $took s, without a fault until then"
        note_missed "$name (cut off after $took s)"
      else
        echo "=== $name: FAILED with status $status after $took s"
        note_failed "$name"
      fi
      ;;
    *) echo "=== $name: FAILED with status $status after $took s"; note_failed "$name" ;;
  esac
}

report() {  # finishes what still runs; prints times, what was not checked and what failed; returns the status of the run
  local name
  for name in "${!begun[@]}"; do finish_step "$name"; done
  printf '\n=== times, of %d s in all\n%s' "$SECONDS" "$times"
  [ -z "$failed" ] || echo "FAILED:$failed"
  echo "NOT CHECKED WHOLE: ${missed:-nothing}"
  [ -z "$failed" ]
}
