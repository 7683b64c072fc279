"""On a device that does nothing and takes no time, a run on 8 ranks shows the host's own work: less than a second.

    host_time.py BUBBLESCOPE MODULE
"""

import os
import resource
import subprocess
import sys
import time

PROGRAM, MODULE = sys.argv[1:]
MODEL = ("--pp 8 --backend cuda --work transformer --precision bf16 --hidden-size 1024 --num-attention-heads 16 "
         "--seq-length 1024 --vocab-size 2048 --layers-per-stage 2 --no-verify --steps 3").split()
RUNS = ["zb-h1 -m 32", "zb-h1 -m 32 --graph", "gpipe -m 64 --graph", "interleaved --vpp 2 -m 64 --graph"]
MAX_SECONDS = 1.0


def main():
    for run in RUNS:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        begin = time.monotonic()
        done = subprocess.run([PROGRAM, "run", *run.split(), *MODEL], capture_output=True, text=True, check=False,
                              env={**os.environ, "BUBBLESCOPE_CUDA_MODULE": MODULE})
        passed = time.monotonic() - begin
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if done.returncode != 0 or "a device that does nothing" not in done.stdout:
            sys.exit(f"{run}: status {done.returncode}\n{done.stdout}{done.stderr}")
        print(f"{run}: {used:.3f} s of processor time, {passed:.3f} s passed")
        if used >= MAX_SECONDS:
            sys.exit(f"{run} takes the host {used:.2f} s")


if __name__ == "__main__":
    main()
