"""Calibrates the simulated device without moving an activation or asking for optimizer steps, and predicts steps that do:
to the host, to other ranks, with updates. Without what was calibrated of these, the predictions are wrong.

    calibrated_copies.py BUBBLESCOPE MODULE
"""

import json
import os
import subprocess
import sys
import tempfile

PROGRAM, MODULE = sys.argv[1:]
MODEL = (
    "--backend cuda --work transformer --hidden-size 32 --num-attention-heads 2 --seq-length 16 --vocab-size 61 "
    "--no-verify --warmup 2 --steps 3 --pp 4"
).split()


def run(*arguments):
    environment = {**os.environ, "BUBBLESCOPE_CUDA_MODULE": MODULE}
    done = subprocess.run([PROGRAM, *arguments, *MODEL], capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        sys.exit(f"{arguments}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def error_of(costs, *schedule):
    """Returns by which fraction the prediction of a step is off."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(costs, file)
        file.flush()
        told = json.loads(run("compare", *schedule, "-m", "12", "--costs", file.name, "--format", "json"))
    return abs(told["reports"][0]["error"]["makespan"])


def without(costs, *keys):
    rest = {key: value for key, value in costs.items() if key not in keys}
    rest["stages"] = [{key: value for key, value in stage.items() if key not in keys} for stage in costs["stages"]]
    return rest


def main():
    costs = json.loads(run("calibrate", "1f1b", "-m", "16"))
    of_stages = ("evict", "load", "evict_to_rank", "load_from_rank")
    moves = [("bpipe",), ("1f1b", "--offload", "1"), ("zb-h1", "--offload", "0.5")]
    cases = [(schedule, costs, ("copy", *of_stages)) for schedule in moves[:2]]
    cases.append((("gpipe", "--optimizer", "local"), costs, ("optimizer",)))
    costs_of_both = json.loads(run("calibrate", "1f1b,zb-h1", "-m", "16"))
    cases.append((moves[2], costs_of_both, ("copy", *of_stages)))
    for schedule, known, needed in cases:
        error = error_of(known, *schedule)
        blind = error_of(without(known, *needed), *schedule)
        print(f"{' '.join(schedule)}: off by {100 * error:.2f} %, {100 * blind:.1f} % without {needed[0]}")
        if not error < 0.01 < 0.03 < blind:
            sys.exit("that is too far off, or no further than without what it needs")
    # Stages keep 9 matrices, and the last one 12: `copy` has their mean, which is accurate to a tenth.
    general = error_of(without(costs, *of_stages), "1f1b", "--offload", "1")
    print(f"from copy alone: off by {100 * general:.2f} %")
    if general > 0.1:
        sys.exit("copy does not say what evictions take")


if __name__ == "__main__":
    main()
