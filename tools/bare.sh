#!/usr/bin/env bash
# Runs the README's commands, or another, on a fresh clone in a Debian that holds nothing.
#   bash tools/bare.sh [--objects] SUITE [COMMAND]      (bookworm, trixie, ...; COMMAND is the shell's, run in the clone)
# The clone is of the last commit. Roots are made by debootstrap from the mirror that this machine's own apt uses, kept
# in $BUBBLESCOPE_BARE_CACHE (~/.cache/bubblescope/bare) and copied for each run. The exit status is 77, with one line
# that says why, where no root can be made; otherwise it is that of the first command that fails.
#
# With --objects the root has ccache and a copy of this machine's cache, so that nothing is compiled twice where both have
# the same compiler. All sources are still preprocessed in the root, and so every header must be there. Without it, times
# are those of a new machine.
#
# It runs as root, so it is built not to hurt its host: mounts are made in namespaces that end with it, nothing of the
# host is mounted in the root, devices are six harmless ones, and a root is deleted only where nothing is mounted under
# it, and only on its own file system.
set -euo pipefail

refuse() { echo "bare.sh: $1" >&2; exit 1; }

give_up() { echo "bare.sh: not checked: $1" >&2; exit 77; }

mounted_under() {  # FOLDER: what is mounted on it or below, here
  local folder
  folder=$(realpath -- "$1")
  awk -v top="$folder" '$5 == top || index($5, top "/") == 1 { print $5 }' /proc/self/mountinfo
}

expect_nothing_mounted() {  # FOLDER
  local found
  found=$(mounted_under "$1" | head -n 1)
  [ -z "$found" ] || refuse "$found is mounted; unmount it, nothing under $1 was touched"
}

remove_root() {  # FOLDER: one that lies in the cache
  local folder
  [ -e "$1" ] || return 0
  folder=$(realpath -- "$1")
  [ "$(dirname -- "$folder")" = "$cache" ] || refuse "$folder is not a root in $cache; it was not deleted"
  expect_nothing_mounted "$folder"
  rm -rf --one-file-system -- "$folder"
}

remove_forgotten() {  # what runs left behind that were killed
  local folder
  for folder in "$cache"/run.* "$cache"/part.*; do
    [ -e "$folder" ] && ! kill -0 "${folder##*.}" 2> /dev/null || continue
    remove_root "$folder"
  done
}

apt_targets() { apt-get indextargets --format "$1" 'Created-By: Packages' 'Component: main' 2> /dev/null || true; }

find_mirror() {  # where this machine's apt has Debian from
  apt_targets '$(ORIGIN) $(RELEASE) $(SITE)' |
    awk '$1 == "Debian" && $2 !~ /-/ || NF == 2 && $1 !~ /-/ && $2 ~ /debian\/?$/ { print $NF; exit }'
}

find_keyring() {  # MIRROR: the keys that this machine's apt asks of it; empty: those of debootstrap
  apt_targets '$(SITE) $(SOURCESENTRY)' | awk -v site="$1" '$1 == site { sub(/:[0-9]+$/, "", $2); print $2; exit }' |
    xargs -r sed -nE 's/^Signed-By: *(\/[^ ]+).*/\1/p; s/.*signed-by=(\/[^] ,]+).*/\1/p' | head -n 1
}

apt_proxies() { apt-config dump | grep -E '^Acquire::(http|https)::Proxy(::[^ ]+)? ' || true; }

make_root() {  # SUITE: the root that is kept
  local keyring mirror log part=$cache/part.$$
  log=$cache/$1.log
  mirror=$(find_mirror)
  [ -n "$mirror" ] || give_up "this machine's apt knows no mirror of Debian"
  keyring=$(find_keyring "$mirror")
  eval "$(apt-config shell http_proxy Acquire::http::Proxy https_proxy Acquire::https::Proxy)"
  export http_proxy=${http_proxy:-} https_proxy=${https_proxy:-}
  remove_root "$part"
  if ! unshare --mount --propagation private debootstrap --variant=minbase ${keyring:+"--keyring=$keyring"} "$1" "$part" \
    "$mirror" > "$log" 2>&1 < /dev/null; then
    tail -n 5 "$log" >&2
    remove_root "$part"
    give_up "debootstrap could not make a root of $1 (all it said: $log)"
  fi
  [ -z "$keyring" ] || cp -- "$keyring" "$part/etc/apt/trusted.gpg.d/"
  apt_proxies > "$part/etc/apt/apt.conf.d/90proxies"
  rm -f "$part/etc/hosts"  # a bare root has none
  expect_nothing_mounted "$part"
  mv -- "$part" "$cache/$1"
}

readme_commands() {  # as the README has them
  sed -n '/^## Two commands/,/^## How/p' README.md | sed -nE '/^```sh/,/^```$/s/^(bash [^#]*[^ #]) *(#.*)?$/\1/p'
}

copy_pip_settings() {  # ROOT: how pip reaches its index from this machine
  local name value
  command -v python3 > /dev/null || return 0
  { python3 -m pip config list 2> /dev/null || true; } | sed -nE "s/^(global|:env:)\.(cert|index-url|proxy|trusted-host)='(.*)'$/\2 \3/p" |
    while read -r name value; do
      if [ "$name" = cert ]; then
        cp -L -- "$value" "$1/etc/pip-certificates.pem"
        value=/etc/pip-certificates.pem
      fi
      echo "$name = $value"
    done | { echo "[global]"; sort -u; } > "$1/etc/pip.conf"
}

fill_root() {  # ROOT: a clone of the last commit, and what the clone cannot know
  git clone --quiet --no-hardlinks "file://$PWD" "$1/root/bubblescope"
  rm -f "$1/etc/resolv.conf"
  cp -L /etc/resolv.conf "$1/etc/resolv.conf"
  copy_pip_settings "$1"
}

copy_objects() {  # SUITE ROOT: ccache, and what it holds here
  local folder log=$cache/log.${2##*.}
  folder=$(ccache --get-config cache_dir 2> /dev/null) && [ -d "$folder" ] ||
    { echo "bare.sh: $1: this machine has no compiler cache; everything is compiled" && return 0; }
  run_in_root "$2" "apt-get update -q && apt-get install -q -y --no-install-recommends ccache" > "$log" 2>&1 ||
    { tail -n 5 "$log" >&2; rm -f "$log"; give_up "ccache could not be installed in a root of $1"; }
  rm -f "$log"
  mkdir -p "$2/root/.cache" "$2/root/.config/ccache"
  cp -a --reflink=auto -- "$folder" "$2/root/.cache/ccache"
  # An object that was compiled here with warnings as errors is the same without.
  echo "ignore_options = -Werror" > "$2/root/.config/ccache/ccache.conf"
}

mount_devices() {  # ROOT
  local name
  mount -t tmpfs -o mode=755,nosuid tmpfs "$1/dev"
  for name in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0; do
    IFS=: read -r name major minor <<< "$name"
    mknod -m 666 "$1/dev/$name" c "$major" "$minor"
  done
  ln -s /proc/self/fd "$1/dev/fd"
  for name in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${name%%:*}" "$1/dev/${name#*:}"; done
  mkdir "$1/dev/shm" "$1/dev/pts"
  mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$1/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$1/dev/pts"
  ln -s pts/ptmx "$1/dev/ptmx"
}

enter() {  # HOST_NAMESPACE ROOT COMMAND...: in namespaces of its own
  [ "$(readlink /proc/self/ns/mnt)" != "$1" ] || refuse "this is the host's mount namespace; nothing was mounted"
  local root=$2
  shift 2
  expect_nothing_mounted "$root"
  mount -t proc -o ro,nosuid,nodev,noexec proc "$root/proc"
  mount_devices "$root"
  exec chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    LANG=C.UTF-8 bash -c 'cd /root/bubblescope && eval "$1"' bash "$1"
}

run_in_root() {  # ROOT COMMAND
  unshare --mount --propagation private --pid --fork --kill-child --ipc --uts -- \
    bash "$script" --enter "$(readlink /proc/self/ns/mnt)" "$1" "$2" < /dev/null
}

timed() {  # SUITE ROOT COMMAND: how long it takes, and how much of that packages do
  local start=$SECONDS status=0 packages log=$cache/log.${2##*.}
  echo "bare.sh: $1: $3"
  run_in_root "$2" "$3" 2>&1 | tee "$log" || status=$?
  packages=$(sed -nE 's/^Installed in ([0-9]+) s$/\1/p' "$log" | awk '{ sum += $1 } END { print sum + 0 }')
  warnings=$((warnings + $(grep -c 'warning:' "$log" || true)))
  rm -f "$log"
  echo "times: $1: $3: $((SECONDS - start)) s, of which packages $packages s"
  return "$status"
}

main() {
  local objects="" suite status=0 commands command
  [ "${1:-}" != --objects ] || { objects=yes; shift; }
  suite=${1:?usage: bare.sh [--objects] SUITE [COMMAND]}
  [[ $suite =~ ^[a-z]+$ ]] || refuse "'$suite' is not a name of a Debian release"
  [ "$(id -u)" = 0 ] || give_up "only root can make a root"
  command -v debootstrap > /dev/null || give_up "debootstrap is not installed"
  unshare --mount --pid --fork true 2> /dev/null || give_up "this machine gives no mount namespace"
  mkdir -p "$cache"
  remove_forgotten
  [ -d "$cache/$suite" ] || make_root "$suite"
  root=$cache/run.$$  # not local: the trap needs it
  trap 'remove_root "$root"' EXIT
  expect_nothing_mounted "$cache/$suite"
  cp -a --reflink=auto -- "$cache/$suite" "$root"
  fill_root "$root"
  [ -z "$objects" ] || copy_objects "$suite" "$root"
  mapfile -t commands < <(if [ $# -gt 1 ]; then echo "$2"; else readme_commands; fi)
  [ "${#commands[@]}" -gt 0 ] || refuse "README.md has no commands under 'Two commands'"
  for command in "${commands[@]}"; do
    timed "$suite" "$root" "$command" || { status=$?; echo "bare.sh: $suite: exit status $status: $command"; break; }
  done
  [ "$warnings" = 0 ] || { echo "bare.sh: $suite: $warnings warnings"; [ "$status" != 0 ] || status=1; }
  return "$status"
}

script=$(realpath -- "${BASH_SOURCE[0]}")
cd "$(dirname -- "$script")/.."
cache=$(realpath -m -- "${BUBBLESCOPE_BARE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/bubblescope/bare}")
warnings=0
[ "${BASH_SOURCE[0]}" = "$0" ] || return 0  # a test wants its parts
case "${1:-}" in
  --enter) shift; enter "$@" ;;
  *) main "$@" ;;
esac
