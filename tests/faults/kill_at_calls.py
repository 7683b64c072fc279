#!/usr/bin/env python3
"""Kills a training run before each of its calls that change checkpoints, one by one, and resumes it.

  kill_at_calls.py PROGRAM

strace kills the run when it enters the n-th fsync, rename, unlink or write; n grows until the run ends before that. So every
state in which a kill can leave the folder is tried. Exits with 77 where strace is missing or may not trace.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

COMMAND = ("run pipedream --pp 2 -m 4 --work transformer --format json --hidden-size 8 --seq-length 4 --vocab-size 13 "
           "--training-optimizer adam --warmup 1 --steps 4 --resume").split()
CALLS = {"fsync": 15, "rename": 8, "unlink": 4, "write": 8}  # the minimum number of kills


def run(program, folder, prefix=()):
    return subprocess.run([*prefix, program, *COMMAND, "--checkpoint", folder], capture_output=True, text=True, timeout=60,
                          check=False)


def kill_at(program, call, number, folder):
    """Returns whether the run was killed."""
    done = run(program, folder, ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e",
                                 f"inject={call}:signal=SIGKILL:when={number}"])
    return done.returncode != 0


def main():
    program = os.path.abspath(sys.argv[1])
    traced = shutil.which("strace") and subprocess.run(["strace", "-f", "-o", "/dev/null", "true"], capture_output=True, check=False)
    if not traced or traced.returncode != 0:
        print("strace is missing or may not trace; skipped")
        return 77
    with tempfile.TemporaryDirectory() as base:
        expected = json.loads(run(program, os.path.join(base, "whole")).stdout)["training"]
        for call, min_kills in CALLS.items():
            killed = 0
            resumed = set()
            while True:
                folder = os.path.join(base, f"{call}-{killed}")
                if not kill_at(program, call, killed + 1, folder):
                    break
                killed += 1
                done = run(program, folder)
                where = f"killed before {call} {killed}"
                assert done.returncode == 0, f"{where}: exit status {done.returncode}: {done.stderr}"
                assert json.loads(done.stdout)["training"] == expected, f"{where}: the training differs"
                assert "damaged" not in done.stderr, f"{where}: {done.stderr}"
                resumption = re.search(r"resumes after step (\d+)", done.stderr)
                resumed.add(int(resumption[1]) if resumption else 0)
            assert killed >= min_kills, f"only {killed} kills before {call}"
            print(f"{call}: {killed} kills, resumed after the steps {sorted(resumed)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
