#!/usr/bin/env bash
# tools/bare.sh cannot hurt its host: it deletes only its own roots, and none under which anything is mounted. The test
# must be root with namespaces; otherwise it skips (status 77).
set -uo pipefail
[ "$(id -u)" = 0 ] && unshare --mount true 2> /dev/null || { echo "not root; skipped"; exit 77; }
script=$(realpath "$(dirname "$0")/../../tools/bare.sh")
top=$(mktemp -d)
trap 'rm -rf --one-file-system "$top"' EXIT
export BUBBLESCOPE_BARE_CACHE=$top/cache
mkdir -p "$top/cache/run.1/proc" "$top/elsewhere" "$top/cache/run.2"
touch "$top/elsewhere/kept" "$top/cache/run.2/gone"

try() {  # COMMAND: with the parts of the script, in a mount namespace of its own
  unshare --mount --propagation private bash -c 'source "$1"; eval "$2"' bash "$script" "$1" 2>&1
}

fail() { echo "$*"; exit 1; }

said=$(try "mount -t tmpfs tmpfs $top/cache/run.1/proc; touch $top/cache/run.1/proc/kept; remove_root $top/cache/run.1") &&
  fail "a root was deleted under which something is mounted"
grep -q "run.1/proc is mounted" <<< "$said" || fail "a mount was not named: $said"
try "mount -t tmpfs tmpfs $top/cache/run.1/proc; touch $top/cache/run.1/proc/kept
     remove_root $top/cache/run.1 || true; test -e $top/cache/run.1/proc/kept" > /dev/null
[ -d "$top/cache/run.1/proc" ] || fail "a root with a mount in it was touched"

try "remove_root $top/elsewhere" > /dev/null && fail "a folder outside the cache was deleted"
try "ln -s $top/elsewhere $top/cache/link; remove_root $top/cache/link" > /dev/null && fail "a link was followed out of the cache"
try "remove_root /" > /dev/null && fail "/ was deleted"
[ -e "$top/elsewhere/kept" ] || fail "a file outside the cache was deleted"

try "remove_root $top/cache/run.2" > /dev/null || fail "a root was not deleted"
[ ! -e "$top/cache/run.2" ] || fail "a root is still there"

said=$(bash "$script" --enter "$(readlink /proc/self/ns/mnt)" "$top/cache/run.1" true 2>&1) && fail "it ran in the host's namespace"
grep -q "nothing was mounted" <<< "$said" || fail "the host's namespace was not recognized: $said"

said=$(PATH=/usr/bin:/bin bash "$script" ../../etc 2>&1) && fail "a path passed for a release"
grep -q "not a name of a Debian release" <<< "$said" || fail "a path was not refused: $said"
echo "nothing but unmounted roots of the cache is deleted"
