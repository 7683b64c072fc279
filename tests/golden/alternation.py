"""compare on a device alternates between its schedules step by step, in two blocks, of which the second goes backwards: the
NVML of the tests gets hotter with every sample, and tells the order. Where the device cannot hold the schedules at once,
each runs its blocks whole, and the program says so.

    alternation.py BUBBLESCOPE MODULE FOLDER_OF_NVML
"""

import json
import os
import subprocess
import sys
import tempfile

PROGRAM, MODULE, NVML = sys.argv[1:]
COMPARE = ("compare gpipe,1f1b --pp 2 -m 4 --backend cuda --work transformer --hidden-size 32 --num-attention-heads 2 "
           "--seq-length 16 --vocab-size 61 --no-verify --steps 4 --format json").split()
COSTS = {"format": "bubblescope-costs/1", "stages": [{"forward": 1, "backward": 2}] * 2}


def run(traits):
    """The order of the steps, as letters, and what was said."""
    environment = {**os.environ, "BUBBLESCOPE_CUDA_MODULE": MODULE, "LD_LIBRARY_PATH": NVML,
                   "BUBBLESCOPE_SIMULATED_GPU_TRAITS": traits}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(COSTS, file)
        file.flush()
        done = subprocess.run([PROGRAM, *COMPARE, "--costs", file.name], capture_output=True, text=True,
                              env=environment, check=False)
    if done.returncode != 0:
        sys.exit(f"status {done.returncode}\n{done.stdout}{done.stderr}")
    samples = []
    for name, report in zip("AB", json.loads(done.stdout)["reports"]):
        (device,) = report["device_state"]
        samples += [(step["celsius"][0], name) for step in device["steps"]]
    return "".join(name for _, name in sorted(samples)), done.stderr


def main():
    order, said = run("")
    if order != "ABABBABA" or "at once" in said:
        sys.exit(f"together: {order}\n{said}")
    order, said = run("small")
    if order != "AABBAABB" or "cannot hold all schedules at once" not in said:
        sys.exit(f"apart: {order}\n{said}")
    print("schedules alternate step by step, or block by block where memory is short")


if __name__ == "__main__":
    main()
