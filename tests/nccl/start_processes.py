#!/usr/bin/env python3
"""Processes of the backend nccl connect under every launcher, and report in one line what is missing.

  start_processes.py PROGRAM

With a GPU for each they run; otherwise all of them must report what is missing and where, and exit with status 3.
"""
import os
import shutil
import socket
import subprocess
import sys
import time

LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_", "OMPI_", "PMI_", "SLURM_", "NCCL_", "TORCHELASTIC_",
             "BUBBLESCOPE_")
RUN = ["run", "1f1b", "--pp", "2", "-m", "2", "--backend", "nccl", "--f", "100us", "--b", "100us", "--timeout", "20s"]


def environment(**variables):
    """Returns our environment without launchers' variables, and with the given ones."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
    return kept | variables


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def finish(process):
    out, err = process.communicate(timeout=90)
    return process.returncode, out, err


def start(program, variables):
    return subprocess.Popen([program, *RUN], env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def expect_one_line(what, status, err, *parts):
    lines = err.splitlines()
    if status == 0:
        return
    if status != 3 or len(lines) != 1 or not all(part in lines[0] for part in parts):
        sys.exit(f"{what}: exit status {status}, and it says\n{err}")
    print(f"{what}: {lines[0]}")


def alone(program):
    status, _, err = finish(start(program, environment()))
    if status == 2 and "one process per rank" in err:
        return  # there is a GPU
    expect_one_line("alone", status, err, "the backend nccl: ")


def by_hand(program):
    port = free_port()
    variables = [environment(RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1",
                             MASTER_PORT=port) for rank in (0, 1)]
    for rank, process in enumerate([start(program, one) for one in variables]):
        status, _, err = finish(process)
        expect_one_line(f"by hand, rank {rank}", status, err, "rank 0", "cannot take part")


def with_secrets(program):
    """Over another interface two processes connect with the same secret, and not with different ones."""
    for secrets in (("a secret of the tests",) * 2, ("a secret of the tests", "another secret of them")):
        port = free_port()
        processes = [start(program, environment(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.2", MASTER_PORT=port,
                                                BUBBLESCOPE_INTERFACE="127.0.0.2", BUBBLESCOPE_SECRET=secret))
                     for rank, secret in enumerate(secrets)]
        if secrets[0] == secrets[1]:
            for rank, process in enumerate(processes):
                status, _, err = finish(process)
                expect_one_line(f"with one secret, rank {rank}", status, err, "rank 0", "cannot take part")
            continue
        status, _, err = finish(processes[1])
        expect_one_line("with another secret", status, err, "its secret is not that of rank 0")
        processes[0].terminate()
        err = finish(processes[0])[2]
        if status == 0 or err.count("does not have this run's secret and was rejected") != 1:
            sys.exit(f"rank 0 says of a caller with another secret\n{err}")


def by_mpirun(program):
    command = ["mpirun", "--oversubscribe", "--allow-run-as-root", "-np", "2", program, *RUN]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120, check=False)
    lines = [line for line in done.stderr.splitlines() if line.startswith("bubblescope")]
    if done.returncode == 0:
        return
    if not lines or not all("rank 0" in line and "cannot take part" in line for line in lines):
        sys.exit(f"by mpirun: exit status {done.returncode}, and it says\n{done.stderr}")
    print(f"by mpirun: {lines[0]}")


def refusals(program):
    """Invalid variables, and a rank that does not connect, are errors."""
    cases = [
        (2, "RANK='x' is not a number", {"RANK": "x", "WORLD_SIZE": "2"}),
        (2, "set MASTER_ADDR", {"RANK": "0", "WORLD_SIZE": "2"}),
        (2, "so the processes need a secret; export BUBBLESCOPE_SECRET", {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "node1"}),
        (2, "a secret of 5 characters can be guessed", {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "node1",
                                                       "BUBBLESCOPE_SECRET": "short"}),
        (3, "rank 0 does not answer at 127.0.0.1", {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                                                    "MASTER_PORT": free_port()}),
        (3, "did not connect to rank 0 within --timeout: rank 1", {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                                                                 "MASTER_PORT": free_port()}),
    ]
    for status, words, variables in cases:
        command = [program, *RUN[:-1], "1s"]
        done = subprocess.run(command, env=environment(**variables), capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != status or words not in done.stderr:
            sys.exit(f"{variables}: exit status {done.returncode} instead of {status}, and it says\n{done.stderr}")


def unknown_name(program):
    """A host name that cannot be resolved is tried again until the timeout."""
    variables = environment(RANK="1", WORLD_SIZE="2", MASTER_ADDR="rank-0.invalid", MASTER_PORT=free_port(),
                            BUBBLESCOPE_SECRET="a secret of the tests")
    begin = time.monotonic()
    done = subprocess.run([program, *RUN[:-1], "1s"], env=variables, capture_output=True, text=True, timeout=60,
                          check=False)
    took = time.monotonic() - begin
    if done.returncode != 3 or "the host rank-0.invalid cannot be resolved" not in done.stderr or took < 1:
        sys.exit(f"an unknown name: exit status {done.returncode} after {took:.1f} s, and it says\n{done.stderr}")


def main():
    program = os.path.abspath(sys.argv[1])
    alone(program)
    by_hand(program)
    with_secrets(program)
    if shutil.which("mpirun") and os.path.exists(os.path.join(os.path.dirname(program), "bubblescope_mpi.so")):
        by_mpirun(program)
    refusals(program)
    unknown_name(program)


if __name__ == "__main__":
    main()
