#!/usr/bin/env bash
# Builds the container by its recipe and runs it, as the README says, without a daemon and without a registry:
#   bash tests/install/container.sh [SUITE]      (bookworm, trixie; this machine's Debian unless given)
# buildah executes tools/Containerfile as it is, in chroots. The base image is made from the root that tools/bare.sh keeps,
# without what slim images lack. The exit status is 77, with one line that says why, where that is not possible.
#
# Where compiler and Debian are this machine's, its compiler cache is read, and nothing is compiled twice. All mounts are
# in a namespace that ends with the test, and images are in a folder that it deletes.
set -euo pipefail
self=$(realpath -- "${BASH_SOURCE[0]}")
top=$(realpath -- "$(dirname -- "$self")/../..")
source "$top/tools/bare.sh"  # how roots are made and deleted

give_up() { echo "container.sh: not checked: $1"; exit 77; }

fail() { echo "container.sh: $1"; exit 1; }

expect() {  # CLAIM COMMAND...
  "${@:2}" || fail "not so: $1"
}

readme_commands() { sed -nE '/^```sh/,/^```$/s/^(docker [^#]*[^ #]) *(#.*)?$/\1/p' "$top/README.md"; }

# Says of Docker's commands what buildah does instead. buildah knows no entrypoint at `run`.
docker() {  # build OPTION... | run OPTION... IMAGE ARGUMENT...
  local verb=$1 options=() container status=0
  shift
  if [ "$verb" = build ]; then
    nice buildah bud --isolation chroot --pull-never --network host --build-arg "DEBIAN=$suite-slim" "${volumes[@]}" "$@"
    return
  fi
  while [[ $1 = -* ]]; do
    case $1 in
      --rm) shift ;;
      --user | -v) options+=("$1" "$2"); shift 2 ;;
      *) fail "this test does not know the option $1 of docker run" ;;
    esac
  done
  container=$(buildah from --pull-never "$1")
  buildah run --isolation chroot "${options[@]}" "$container" -- ${entrypoint-bubblescope} "${@:2}" || status=$?
  buildah rm "$container" > /dev/null
  return "$status"
}

in_image() { entrypoint="" docker run --rm "$@"; }  # OPTION... IMAGE COMMAND...: any, instead of the program

make_base() {  # the image that the recipe starts from
  local container folder left_out=()
  for folder in dev proc sys var/cache/apt var/lib/apt/lists usr/share/doc usr/share/man usr/share/locale; do
    left_out+=("--exclude=./$folder/*")
  done
  tar -C "$cache/$suite" "${left_out[@]}" -cf "$root/base.tar" .
  container=$(buildah from scratch)
  buildah add -q "$container" "$root/base.tar" / > /dev/null
  buildah config --cmd bash --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
  buildah commit -q --rm "$container" "debian:$suite-slim" > /dev/null
  rm "$root/base.tar"
}

share_objects() {  # sets volumes: this machine's compiler cache, to be read only
  local folder
  volumes=()
  folder=$(ccache --get-config cache_dir 2> /dev/null) && [ -d "$folder" ] || return 0
  mkdir "$root/ccache"
  # An object that was compiled here with warnings as errors is the same without.
  printf '%s\n' "read_only = true" "temporary_dir = /tmp/ccache" "ignore_options = -Werror" > "$root/ccache/ccache.conf"
  volumes=(-v "$folder:/root/.cache/ccache:ro" -v "$root/ccache:/root/.config/ccache:ro")
}

image_bytes() {  # IMAGE: of its layers and its description
  buildah inspect --type image --format '{{.Manifest}}' "$1" | grep -oE '"size":[0-9]+' | awk -F: '{ sum += $2 } END { print sum }'
}

inside() {  # SUITE ROOT: the test, in a mount namespace of its own
  local commands begin=$SECONDS in_base version added
  suite=$1
  root=$2
  export TMPDIR=$root/tmp XDG_RUNTIME_DIR=$root/tmp CONTAINERS_STORAGE_CONF=$root/storage.conf
  mkdir "$root/tmp" "$root/out"
  printf '%s\n' "[storage]" 'driver = "overlay"' "graphroot = '$root/images'" "runroot = '$root/state'" > "$CONTAINERS_STORAGE_CONF"
  buildah images > "$root/log" 2>&1 || sed -i 's/"overlay"/"vfs"/' "$CONTAINERS_STORAGE_CONF"
  make_base > "$root/log" 2>&1 || { tail -n 3 "$root/log"; give_up "buildah cannot make an image here"; }
  in_base=$(buildah from --pull-never "debian:$suite-slim")
  buildah run --isolation chroot "$in_base" -- true > "$root/log" 2>&1 ||
    { tail -n 3 "$root/log"; give_up "buildah cannot run a command here"; }
  buildah rm "$in_base" > /dev/null
  share_objects

  mapfile -t commands < <(readme_commands)
  [ "${#commands[@]}" = 2 ] || fail "README.md has ${#commands[@]} commands of docker instead of 2"
  echo "${commands[0]}"
  (cd "$top" && eval "${commands[0]}") > "$root/log" 2>&1 || { tail -n 30 "$root/log"; fail "the image could not be built"; }
  echo "built in $((SECONDS - begin)) s"

  echo "${commands[1]}"
  chown 4321:4321 "$root/out"
  chmod 711 "$root"
  # A user whom the image does not know.
  (id() { echo 4321; }; cd "$root/out" && eval "${commands[1]}") > "$root/log" 2>&1 || { cat "$root/log"; fail "it did not run"; }
  expect "the bubble is shown" grep -q '^makespan .* ideal' "$root/log"
  expect "the page is the user's" test "$(stat -c %u:%g "$root/out/step.html")" = 4321:4321

  version=$(sed -nE 's/^project\(bubblescope VERSION ([0-9.]+).*/\1/p' "$top/CMakeLists.txt")
  expect "the version is $version" test "$(docker run --rm bubblescope --version)" = "bubblescope $version"
  docker run --rm bubblescope run 1f1b --pp 2 -m 4 --work transformer --hidden-size 16 --seq-length 8 > "$root/log" 2>&1 ||
    { cat "$root/log"; fail "it did not train"; }
  expect "training is verified" grep -q 'equal the serial reference, bit for bit' "$root/log"
  ! docker run --rm bubblescope simulate no-such-schedule > "$root/log" 2>&1 || fail "an error has exit status 0"
  expect "the entrypoint is the program" grep -q '"bubblescope"' \
    <(buildah inspect --type image --format '{{.OCIv1.Config.Entrypoint | printf "%q"}}' bubblescope)
  expect "its user is not root" test "$(in_image bubblescope id -u)" = 1000
  expect "its user can write where it starts" in_image bubblescope touch file
  expect "it has no compiler, sources and objects" in_image --user 0 bubblescope sh -c \
    '! command -v g++ && [ ! -e /bubblescope ] && [ ! -e /image ] && [ ! -e /root/.cache ]'
  added=$(($(image_bytes bubblescope) - $(image_bytes "debian:$suite-slim")))
  echo "the image adds $((added / 1000)) kB to its base, $(image_bytes "debian:$suite-slim" | awk '{ print int($1 / 1000) }') kB"
  expect "the image adds less than 20 MB" test "$added" -lt 20000000
  echo "the container works: $((SECONDS - begin)) s"
}

main() {
  suite=${1:-$(. /etc/os-release && echo "${VERSION_CODENAME:-trixie}")}
  [[ $suite =~ ^[a-z]+$ ]] || refuse "'$suite' is not a name of a Debian release"
  [ "$(id -u)" = 0 ] || give_up "only root can make the base image"
  command -v buildah > /dev/null || give_up "buildah is not installed"
  command -v debootstrap > /dev/null || [ -d "$cache/$suite" ] || give_up "debootstrap is not installed"
  unshare --mount true 2> /dev/null || give_up "this machine gives no mount namespace"
  mkdir -p "$cache"
  remove_forgotten
  [ -d "$cache/$suite" ] || make_root "$suite"
  root=$cache/run.$$
  trap 'remove_root "$root"' EXIT
  mkdir "$root"
  unshare --mount --propagation private -- bash "$self" --inside "$suite" "$root" < /dev/null
}

if [ "${1:-}" = --inside ]; then inside "${@:2}"; else main "$@"; fi
