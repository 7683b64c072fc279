#!/usr/bin/env bash
# Makes what is released, for the Debian and the Python that it runs on, in build/packages:
#   bash tools/package.sh KIND...
#   deb      bubblescope_*.deb, the program, and libbubblescope-dev_*.deb, the library with its headers
#   wheel    the Python package: its sources, and a wheel, which from Python 3.12 on is for all later versions, too
# The packages have no modules for Graphviz, MPI, CUDA and NCCL, so that they need nothing but the C library and zlib.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$PWD/build/packages

build_deb() {
  local name
  for name in cmake ninja dpkg-shlibdeps file; do
    command -v "$name" > /dev/null ||
      { echo "package.sh: $name is missing; run: bash tools/dependencies.sh build && apt-get install dpkg-dev file" >&2; exit 1; }
  done
  cmake -S . -B build/deb -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr -DBUBBLESCOPE_TESTS=OFF \
    -DBUBBLESCOPE_UNITY=ON -DBUBBLESCOPE_STATIC_RUNTIME=ON -DBUBBLESCOPE_GRAPHVIZ=OFF -DBUBBLESCOPE_MPI=OFF \
    -DBUBBLESCOPE_CUDA=OFF -DBUBBLESCOPE_NCCL=OFF > build/deb.log || { tail -n 20 build/deb.log >&2; exit 1; }
  cmake --build build/deb --target bubblescope bubblescope_archive -- --quiet
  (cd build/deb && cpack -G DEB -B "$out/parts") > build/cpack.log 2>&1 || { tail -n 20 build/cpack.log >&2; exit 1; }
  mv "$out"/parts/*.deb "$out"
  rm -rf "$out/parts"
}

build_wheel() {
  python3 -m venv build/package-env
  build/package-env/bin/pip install -q build
  build/package-env/bin/python -m build --outdir "$out" . > build/wheel.log 2>&1 || { tail -n 30 build/wheel.log >&2; exit 1; }
}

mkdir -p "$out"
[ $# -gt 0 ] || { echo "usage: package.sh deb|wheel..." >&2; exit 2; }
for kind in "$@"; do
  case $kind in
    deb) build_deb ;;
    wheel) build_wheel ;;
    *) echo "package.sh: unknown kind '$kind'; one of deb, wheel" >&2; exit 2 ;;
  esac
done
ls -l "$out" | awk 'NR > 1 { print $5 " bytes  build/packages/" $9 }'
