#!/usr/bin/env bash
# The Debian packages, made as the container's recipe makes them, and `cmake --install` in a Debian that holds nothing:
#   bash tools/bare.sh bookworm "bash tests/install/bare.sh"      (trixie, ...)
# 1. the commands of the recipe's first stage, which make the packages
# 2. `cmake --install` into an empty folder, and a project that uses it
# 3. the library's package, and the same project
# 4. the program's package where the compiler is gone, and the program
# The container itself is tested by container.sh.
# It changes the system that it runs on, so it runs in such a root only.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ "$PWD" = /root/bubblescope ] || { echo "bare.sh: this is not a bare root; see the first lines of this file"; exit 1; }
export DEBIAN_FRONTEND=noninteractive

say() { printf '\n--- %s\n' "$*"; }

timed() {  # COMMAND...
  local begin=$SECONDS
  "$@" > /root/step.log 2>&1 || { tail -n 40 /root/step.log; echo "bare.sh: failed: $*"; exit 1; }
  echo "$(cut -c 1-100 <<< "$*"): $((SECONDS - begin)) s"
}

recipe_commands() { sed -n '/AS build$/,/^FROM debian:[^ ]*$/s/^RUN //p' tools/Containerfile; }  # of its first stage

use_library() {  # WORK [CMAKE_OPTION...]: builds and runs the project that uses the library
  timed cmake -S tests/install -B "$1" -G Ninja "${@:2}"
  timed cmake --build "$1"
  "$1/consumer" | tail -n 1
}

say "the recipe's first stage"
mapfile -t commands < <(recipe_commands)
before=$(dpkg-query -W -f '${Package}\n' | sort)
for command in "${commands[@]}"; do timed bash -c "$command"; done
ls build/packages
for package in build/packages/*.deb; do dpkg-deb -f "$package" Package Version Depends Suggests Installed-Size; done

say "cmake --install"
timed cmake --install build/deb --prefix /root/prefix
use_library /root/use-prefix -DCMAKE_PREFIX_PATH=/root/prefix
/root/prefix/bin/bubblescope --version

say "the library's package"
timed apt-get install -y -q --no-install-recommends ./build/packages/libbubblescope-dev_*.deb
use_library /root/use-package
grep -q '^bubblescope_DIR:PATH=/usr/' /root/use-package/CMakeCache.txt || { echo "bare.sh: it used another library"; exit 1; }

say "the program's package, without a compiler"
after=$(dpkg-query -W -f '${Package}\n' | sort)
# shellcheck disable=SC2046
timed apt-get purge -y -q $(comm -13 <(echo "$before") <(echo "$after"))
! command -v g++ > /dev/null || { echo "bare.sh: g++ is still there"; exit 1; }
timed apt-get install -y -q --no-install-recommends ./build/packages/bubblescope_*.deb
cd /root
bubblescope --version
bubblescope simulate 1f1b --pp 4 -m 8 | grep ideal
bubblescope run 1f1b --pp 2 -m 4 --work transformer --hidden-size 16 --seq-length 8 | tail -n 1
dpkg -L bubblescope | grep -v '/$' | xargs ls -ld | awk '!/^d/ { print $5, $9 }'
