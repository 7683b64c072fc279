#!/usr/bin/env python3
"""Every schedule gets the same training results over MPI, with one process per rank, as on a single rank.

  train_over_mpi.py PROGRAM [RANKS [MICROBATCHES]]

mpirun is started once per number of stages: `compare all` runs and verifies every schedule that trains and accepts the shape.
"""
import json
import os
import subprocess
import sys
import tempfile

MODEL = ["--work", "transformer", "--hidden-size", "8", "--seq-length", "4", "--vocab-size", "13", "--warmup", "1",
         "--steps", "1"]


def launch(ranks, program, *arguments):
    """Runs the program over MPI and returns the completed process."""
    command = ["mpirun", "--oversubscribe", "--allow-run-as-root", "-np", str(ranks), program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


def write_costs(path, stages):
    """Writes costs for the prediction that compare needs; it is not checked here."""
    stage = {"forward": "100us", "input_grad": "100us", "weight_grad": "100us"}
    with open(path, "w") as file:
        json.dump({"format": "bubblescope-costs/1", "stages": [stage] * stages}, file)


def prove(program, ranks, microbatches, chunks, folder):
    """Returns the schedules that passed verification; exits if one did not."""
    costs = os.path.join(folder, "costs.json")
    write_costs(costs, ranks * chunks)
    done = launch(ranks, program, "compare", "all", "--pp", str(ranks), "-m", str(microbatches), "--vpp", str(chunks),
                  "--costs", costs, "--backend", "mpi", "--format", "json", "--timeout", "60s", *MODEL)
    if done.returncode != 0:
        sys.exit(f"exit status {done.returncode}\n{done.stderr}{done.stdout[-2000:]}")
    reports = json.loads(done.stdout)["reports"]
    for report in reports:
        match = report["gradients_match"]
        print(f"{report['schedule']}: {report['verification'] if match else 'WRONG'}")
        if match is not True:
            sys.exit(1)
    return {report["schedule"] for report in reports}


def prove_what_messages_carry_else(program, ranks, microbatches):
    """Runs slices, offloading to other ranks, and gradients that ranks reduce within the step."""
    runs = [["seq1f1b", "--slices", "2"],
            ["pipedream", "--replicas", {2: "1,1", 3: "2,1", 4: "2,2"}[ranks], "--optimizer", "local"]]
    if ranks >= 4:  # with fewer ranks nothing is evicted
        runs += [["bpipe", "--optimizer", "local"], ["bpipe", "--recompute", "selective"]]
    if ranks % 2 == 0 and microbatches % ranks == 0:
        runs.append(["chimera", "--optimizer", "local", "--grad-reduction", "overlap"])
        runs.append(["chimera-halving", "--optimizer", "barrier"])
    runs += [["1f1b", "--policy", "ready"], ["zb-h1", "--policy", "ready:backward", "--optimizer", "local"]]
    for run in runs:
        done = launch(ranks, program, "run", *run, "--pp", str(ranks), "-m", str(microbatches), "--backend", "mpi",
                      "--format", "json", "--timeout", "60s", *MODEL)
        if done.returncode != 0 or json.loads(done.stdout)["gradients_match"] is not True:
            sys.exit(f"{' '.join(run)}: exit status {done.returncode}\n{done.stderr}{done.stdout[-2000:]}")
        print(f"{' '.join(run)}: {json.loads(done.stdout)['verification']}")


def peaks(program, schedule):
    """Returns the peak bytes of activations of each of four ranks."""
    done = launch(4, program, "run", schedule, "--pp", "4", "-m", "8", "--backend", "mpi", "--format", "json", *MODEL)
    if done.returncode != 0:
        sys.exit(f"{schedule}: exit status {done.returncode}\n{done.stderr}")
    return [rank["peak_memory_bytes"] for rank in json.loads(done.stdout)["ranks"]]


def evict(program):
    """On four ranks, the first rank of 1F1B holds four micro-batches and that of bpipe three: the fourth is in the
    process of the last rank, with those that this rank holds itself."""
    plain = peaks(program, "1f1b")
    moved = peaks(program, "bpipe")
    print(f"peaks in bytes: 1f1b {plain}, bpipe {moved}")
    if not 0.7 * plain[0] < moved[0] < 0.8 * plain[0]:
        sys.exit("rank 0 does not hold three quarters of what it holds in 1f1b")
    if moved[3] < plain[3] + 0.2 * plain[0]:
        sys.exit("rank 3 does not hold what rank 0 evicts")


def refuse(program):
    """One process too few is refused, with the command to use instead."""
    done = launch(2, program, "run", "gpipe", "--pp", "3", "-m", "3", "--backend", "mpi")
    if done.returncode != 2 or "mpirun -np 3 bubblescope" not in done.stderr:
        sys.exit(f"2 processes for 3 ranks: exit status {done.returncode}\n{done.stderr}")


def main():
    program = os.path.abspath(sys.argv[1])
    ranks = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    microbatches = int(sys.argv[3]) if len(sys.argv) > 3 else 8
    with tempfile.TemporaryDirectory() as folder:
        proven = prove(program, ranks, microbatches, 1, folder) | prove(program, ranks, microbatches, 2, folder)
    prove_what_messages_carry_else(program, ranks, microbatches)
    evict(program)
    refuse(program)
    print(f"{len(proven)} schedules proven over MPI with {ranks} processes")
    if ranks == 4 and len(proven) < 20:  # fewer schedules accept smaller and odd shapes
        sys.exit("too few schedules were run")
    if "bpipe" not in proven:
        sys.exit("bpipe was not proven")


if __name__ == "__main__":
    main()
