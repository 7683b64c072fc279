# Runs steps against one deadline, for .ci/run and its test. Sourcing it starts nothing.
#
# A step passes, fails, is cut off at the deadline, or is left out, either because too little time remains or because it
# exits with status 77. Steps that fail or exceed their own limit fail the run; steps that were cut off or left out are
# named at the end.

deadline=${deadline:-5280}      # seconds after the start by which everything has ended, reports included: 88 minutes
least_time=${least_time:-60}    # a step starts only if this many seconds remain
on_trial=""                     # yes: a step that fails is named, but does not fail the run
failed=""
missed=""
times=""

note_failed() {  # NAME
  if [ "$on_trial" = yes ]; then note_missed "$1 (FAILED, on trial)"; else failed+=" $1"; fi
}

note_missed() { missed+="${missed:+; }$1"; }

in_time() {  # SECONDS COMMAND...: runs it in a process group, which is killed as a whole
  timeout --kill-after=10 "$1" bash -o pipefail -c '"$@"' bash "${@:2}" < /dev/null
}

step() {  # NAME LIMIT COMMAND...: runs it within its limit and the remaining time
  local name=$1 limit=$2 start=$SECONDS status=0 left=$((deadline - SECONDS)) took load
  shift 2
  printf '\n=== %s\n' "$name"
  if [ "$left" -lt "$least_time" ]; then
    echo "=== $name: left out, $SECONDS s after the start"
    note_missed "$name (left out, for lack of time)"
    return
  fi
  [ "$limit" -lt "$left" ] || limit=$left
  in_time "$limit" "$@" || status=$?
  took=$((SECONDS - start))
  load=$(cut -d' ' -f1 /proc/loadavg 2> /dev/null || true)
  times+="$name $took s (load $load)"$'\n'
  case $status in
    0) echo "=== $name: passed in $took s" ;;
    77) echo "=== $name: not checked"; note_missed "$name (cannot be checked here)" ;;
    124 | 137)
      if [ "$took" -ge "$limit" ] && [ "$limit" = "$left" ]; then
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

report() {  # prints times, what was not checked and what failed; returns the status of the run
  printf '\n=== times, of %d s in all\n%s' "$SECONDS" "$times"
  [ -z "$failed" ] || echo "FAILED:$failed"
  echo "NOT CHECKED WHOLE: ${missed:-nothing}"
  [ -z "$failed" ]
}
