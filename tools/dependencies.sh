#!/usr/bin/env bash
# Installs what is missing on Debian and Ubuntu; elsewhere says what to install.
#   bash tools/dependencies.sh build|test|ci     (each level holds the ones before it)
set -euo pipefail

packages="g++ cmake ninja-build pkg-config nlohmann-json3-dev libfmt-dev libcli11-dev zlib1g-dev libgraphviz-dev"
case "${1:-build}" in
  build) ;;
  test) packages+=" libgtest-dev libbenchmark-dev python3 libopenblas0 libopenmpi-dev openmpi-bin" ;;
  ci) packages+=" libgtest-dev libbenchmark-dev python3 libopenblas0 libopenmpi-dev openmpi-bin ccache git clang libclang-rt-dev clang-format clang-tidy debootstrap buildah chromium python3-venv" ;;
  *) echo "dependencies.sh: unknown level '$1'; one of build, test, ci" >&2; exit 2 ;;
esac

if ! command -v apt-get > /dev/null; then
  cat >&2 <<'TEXT'
This is not a Debian system; nothing was installed. If the next step fails, install:
  Fedora  dnf install gcc-c++ libstdc++-static cmake ninja-build pkgconf json-devel fmt-devel cli11-devel zlib-devel graphviz-devel gtest-devel google-benchmark-devel openblas openmpi-devel
  Arch    pacman -S gcc cmake ninja pkgconf nlohmann-json fmt cli11 zlib graphviz gtest benchmark openblas openmpi
  macOS   brew install cmake ninja pkgconf nlohmann-json fmt cli11 graphviz googletest google-benchmark openblas open-mpi
TEXT
  exit 0
fi

missing=""
for package in $packages; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null || true)
  [ "$status" = installed ] || missing+=" $package"
done
[ -n "$missing" ] || exit 0

root=""
if [ "$(id -u)" != 0 ]; then
  command -v sudo > /dev/null || { echo "dependencies.sh: as root, run: apt-get install$missing" >&2; exit 1; }
  root=sudo
fi
echo "Installing$missing"
start=$SECONDS
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { $root apt-get -o Acquire::Retries=3 update -q &&
       $root env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 install -q -y --no-install-recommends $missing
     } < /dev/null > "$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "dependencies.sh: apt-get could not install$missing" >&2
  exit 1
fi
echo "Installed in $((SECONDS - start)) s"
