#!/usr/bin/env bash
# The Python package in a Debian that holds nothing, as a new user gets it:
#   bash tools/bare.sh trixie "bash tests/python/bare.sh"      (bookworm, ...)
# 1. the commands of the README's Python section, up to `pip install .`
# 2. its examples, and a notebook
# 3. the wheel: what is in it, and that it works where there is Python and no compiler
# Times are printed, and none is judged. It changes the system that it runs on, so it runs in such a root only.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ "$PWD" = /root/bubblescope ] || { echo "bare.sh: this is not a bare root; see the first lines of this file"; exit 1; }
export DEBIAN_FRONTEND=noninteractive PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
export PIP_NO_CLEAN=1 TMPDIR=/root/tmp  # keeps the wheel that `pip install .` makes
mkdir -p /root/tmp
! command -v ccache > /dev/null || export CXX=c++  # the name by which the cache knows the objects of the program

say() { printf '\n--- %s\n' "$*"; }

timed() {  # NAME COMMAND...
  local name=$1 begin=$SECONDS
  shift
  "$@" > /root/step.log 2>&1 || { tail -n 40 /root/step.log; echo "bare.sh: failed: $name"; exit 1; }
  echo "$name: $((SECONDS - begin)) s"
}

apt-get() { command apt-get -y -q --no-install-recommends "$@"; }

readme_commands() { sed -n '/^## From Python/,/^## The library/p' README.md | sed -n '/^```sh/,/^```$/p' | sed '/^```/d'; }

say "the README's commands"
timed "apt-get update" apt-get update
mapfile -t commands < <(readme_commands)
[ "${#commands[@]}" -ge 3 ] || { echo "bare.sh: the README's Python section has no commands"; exit 1; }
for command in "${commands[@]}"; do
  begin=$(awk '{ print $16 + $17 }' /proc/$$/stat)
  case $command in
    *activate) eval "$command" && echo "$command" ;;  # changes this shell
    *) timed "$command" eval "$command" ;;
  esac
  echo "  of that, processor time: $(($(awk '{ print $16 + $17 }' /proc/$$/stat) - begin))0 ms"
done

say "the examples of the README, of docs/python.md and of the docstrings"
timed "pip install pandas matplotlib pyarrow" pip install pandas matplotlib pyarrow
(cd /root && python -m unittest discover -v -s bubblescope/tests/python -p 'test_examples.py' 2>&1 | tail -n 12)

say "a notebook"
timed "pip install nbconvert ipykernel" pip install nbconvert ipykernel
timed "docs/notebooks/choose_a_schedule.ipynb" python -m nbconvert --to html --execute --output-dir /root docs/notebooks/choose_a_schedule.ipynb
ls -l /root/choose_a_schedule.html | awk '{ print $5 " bytes of " $9 }'

say "the wheel"
mkdir /root/wheels
find /root/tmp -name 'bubblescope-*.whl' -exec cp {} /root/wheels \;
wheel=$(ls /root/wheels/bubblescope-*.whl)
echo "$(basename "$wheel"): $(stat -c %s "$wheel") bytes"
python -m zipfile -l "$wheel" | awk 'NR > 1 { print "  " $1 }' | grep -E '_core|scripts/|py.typed'
python tests/python/check_wheel.py "$wheel"

say "Python without a compiler"
deactivate
rm -rf ~/bubblescope-env
packages=$(readme_commands | sed -nE 's/^apt-get install //p')
# shellcheck disable=SC2086
timed "apt-get purge" apt-get purge ${packages/ python3-venv/}
timed "apt-get autoremove" apt-get autoremove --purge
! command -v g++ > /dev/null || { echo "bare.sh: g++ is still there"; exit 1; }
python3 -m venv /root/user
timed "pip install $(basename "$wheel")" /root/user/bin/pip install --no-index "$wheel"
cd /root
user/bin/bubblescope simulate 1f1b --pp 4 -m 8 | tail -n 3
user/bin/python - <<'PYTHON'
import bubblescope as bs
r = bs.schedule("zb-v", pp=4, m=16).simulate(f=10, i=10, w=9, p2p=0.4)
assert r.makespan == 484_200_000, r.makespan
print(repr(r))
PYTHON
user/bin/python bubblescope/tests/python/time_package.py
