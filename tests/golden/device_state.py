"""The state of a device beside a run: told in one line and in json where there is an NVML, here one of the tests, and not
known, in one line, where there is none.

    device_state.py BUBBLESCOPE MODULE FOLDER_OF_NVML
"""

import json
import os
import re
import subprocess
import sys

PROGRAM, MODULE, NVML = sys.argv[1:]
RUN = "run 1f1b --pp 2 -m 4 --backend cuda --work spin --f 1ms --b 2ms --steps 2".split()


def run(folder, *arguments):
    environment = {**os.environ, "BUBBLESCOPE_CUDA_MODULE": MODULE, "LD_LIBRARY_PATH": folder}
    done = subprocess.run([PROGRAM, *RUN, *arguments], capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        sys.exit(f"{arguments}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(holds, what):
    if not holds:
        sys.exit(f"device_state.py: {what}")


def main():
    lines = [line for line in run(NVML).splitlines() if "while measured" in line]
    expect(len(lines) == 1 and re.match(r"0000:01:00\.0 while measured: SM \d+", lines[0]), lines)
    expect("650.0 W of 700.0 W" in lines[0] and lines[0].endswith("throttled by power cap"), lines)
    (device,) = json.loads(run(NVML, "--format", "json"))["device_state"]
    expect(device["before"]["sm_mhz"] == [1980, 1980] and device["before"]["throttled_by"] == "", device)
    expect(device["during"]["samples"] >= 1 and device["after"]["sm_mhz"][0] < device["during"]["sm_mhz"][0], device)
    if not os.path.exists("/dev/nvidiactl"):
        text = run("/nowhere")
        expect(text.count("could not be read: libnvidia-ml.so.1 was not found\n") == 1, text)
        state = json.loads(run("/nowhere", "--format", "json"))["device_state"]
        expect(state == "libnvidia-ml.so.1 was not found", state)
    print("the state of the device is told, and its absence")


if __name__ == "__main__":
    main()
