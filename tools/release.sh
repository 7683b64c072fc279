#!/usr/bin/env bash
# Makes a release's files, and says what is uploaded where. It uploads nothing itself.
#   bash tools/release.sh [VERSION]      (that of CMakeLists.txt unless given)
# Run it on the oldest Debian that the release is for: packages and wheels run on that one and later ones. Its Python should be
# 3.12 or later, so that there is one wheel for all of them.
set -euo pipefail
cd "$(dirname "$0")/.."

refuse() { echo "release.sh: $1" >&2; exit 1; }

stated=$(sed -nE 's/^project\(bubblescope VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
version=${1:-$stated}
[ "$version" = "$stated" ] || refuse "CMakeLists.txt says version $stated, not $version; change it there"
[ -z "$(git status --porcelain)" ] || refuse "the working tree has changes; commit them"
grep -qE "^## \[$version\]" CHANGELOG.md || refuse "CHANGELOG.md has no heading '## [$version]'; give the changes of this version one"

rm -rf build/packages
bash tools/package.sh deb wheel
git archive --format=tar.gz --prefix="bubblescope-$version/" -o "build/packages/bubblescope-$version-source.tar.gz" HEAD
(cd build/packages && sha256sum -- * > SHA256SUMS)
python3 tests/python/check_wheel.py build/packages/bubblescope-"$version"-*.whl

cat <<TEXT

Release $version of commit $(git rev-parse --short HEAD), in build/packages. Upload:

to the release page of the tag v$version (git tag -s v$version && git push origin v$version)
$(cd build/packages && ls -- *-source.tar.gz *.deb SHA256SUMS | sed 's/^/  /')

to the index of Python packages, after 'auditwheel repair' has named the C library that the wheel needs
$(cd build/packages && ls -- *.whl "bubblescope-$version.tar.gz" | sed 's/^/  /')
  twine upload (the index is that of your own configuration)

to the registry of containers, where your tag points
  docker build -f tools/Containerfile --label org.opencontainers.image.version=$version -t bubblescope:$version . && docker push NAME
TEXT
