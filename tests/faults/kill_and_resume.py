#!/usr/bin/env python3
"""Kills training runs at random moments, resumes them until they end, and compares them with runs that were not killed.

  kill_and_resume.py PROGRAM [--count 12] [--seed 1] [--backend cpu,mpi,cuda] [--cuda-module MODULE]

With several backends, each gets as many kills. --cuda-module names the module of a simulated device. A resumed run must have the same losses, the same digest of the weights and the same verification, bit for bit. It may
never resume from an earlier step than the run before it did, and its folder holds nothing but checkpoints.
"""
import argparse
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

# Schedule and flags: synchronous and asynchronous ones, split backwards, chunks, replicas, slices, copies, both
# optimizers and precisions.
TRAININGS = [
    ("1f1b", "--pp 2 -m 4 --training-optimizer adam"), ("zb-h1", "--pp 3 -m 6"),
    ("interleaved", "--pp 2 -m 4 --vpp 2 --training-optimizer adam"), ("pipedream", "--pp 3 -m 6"),
    ("pipedream-2bw", "--pp 2 -m 6 --training-optimizer adam"), ("dualpipe", "--pp 2 -m 4"),
    ("seq1f1b", "--pp 2 -m 4 --slices 2"), ("zb-v", "--pp 2 -m 4 --precision bf16 --training-optimizer adam"),
    ("bpipe", "--pp 4 -m 6"), ("chimera", "--pp 2 -m 4 --optimizer local --grad-reduction overlap"),
    ("pipedream", "--pp 2 -m 6 --replicas 1,1 --optimizer local"), ("gpipe", "--pp 2 -m 4 --recompute selective"),
]
MODEL = "--hidden-size 8 --seq-length 4 --vocab-size 13 --warmup 1".split()
LIMIT = 60  # seconds after which a run counts as hanging
MAX_KILLS = 5  # of one training, before it may end


class Training:
    """One training: its command line, and what an uninterrupted run of it gives."""

    def __init__(self, options, name, flags, steps):
        self.options = options
        ranks = int(re.search(r"--pp (\d+)", flags)[1])
        launched = options.backend == "mpi"
        launcher = ["mpirun", "--oversubscribe", "--allow-run-as-root", "-np", str(ranks)] if launched else []
        self.command = launcher + [options.program, "run", name, *flags.split(), "--backend", options.backend, "--work",
                                   "transformer", "--format", "json", "--timeout", "20s", "--steps", str(steps), *MODEL]
        began = time.monotonic()
        done = subprocess.run(self.command, capture_output=True, text=True, timeout=LIMIT, check=False)
        self.seconds = time.monotonic() - began
        assert done.returncode == 0, f"{self.command}: {done.stderr}"
        self.expected = result_of(done.stdout)
        assert len(self.expected["losses"]) == steps + 1 and self.expected["gradients_match"] is True

    def start(self, folder, every):
        extra = ["--checkpoint", str(folder), "--every", str(every), "--resume"]
        return subprocess.Popen(self.command + extra, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                start_new_session=True)


def result_of(text):
    report = json.loads(text)
    return {**report["training"], "gradients_match": report["gradients_match"], "verification": report["verification"]}


def children_of(process):
    lists = pathlib.Path(f"/proc/{process}/task").glob("*/children")
    return sorted({int(child) for path in lists for child in read_if_there(path).split()})


def read_if_there(path):
    try:
        return path.read_text()
    except OSError:
        return ""


def send(process, number):
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass


def kill(running, dice):
    """Kills the whole run, or over MPI also one of its processes, whose death ends the others."""
    victims = children_of(running.pid)
    if victims and dice.random() < 0.5:
        send(dice.choice(victims), signal.SIGKILL)
        try:
            return running.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:  # mpirun itself may hang
            pass
    send(running.pid, signal.SIGSTOP)  # mpirun then starts no other process
    for process in [*children_of(running.pid), running.pid]:
        send(process, signal.SIGKILL)
    return running.communicate(timeout=LIMIT)


def resumed_step(stderr):
    """The step after which a run resumed, 0 if it began anew; None if it was killed before it said so."""
    told = re.search(r"resumes after step (\d+), from ", stderr)
    if told:
        return int(told[1])
    return 0 if "begins at step 0: " in stderr else None


def expect_only_checkpoints(folder, ended):
    names = [path.name for path in folder.iterdir()] if folder.exists() else []
    known = re.compile(r"step-\d+\.(json|part-\d+)|\.bubblescope-[0-9a-f]{16}-\d+-\d+\.tmp")
    strange = [name for name in names if not known.fullmatch(name)]
    assert not strange, f"left behind: {strange}"
    if ended:
        manifests = [name for name in names if name.endswith(".json")]
        assert 1 <= len(manifests) <= 3, f"{len(manifests)} checkpoints are kept"


def saved_step(folder):
    """The step of the latest whole checkpoint, 0 if there is none."""
    return max((int(path.stem.removeprefix("step-")) for path in folder.glob("step-*.json")), default=0)


def wait_for_checkpoint(running, folder, after, seconds):
    """Waits for a checkpoint later than a step, then for some seconds. Raises TimeoutExpired if the run continues."""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline and saved_step(folder) <= after:
        try:
            return running.communicate(timeout=0.01)
        except subprocess.TimeoutExpired:
            pass
    return running.communicate(timeout=seconds)


def let_run(running, folder, training, dice, kills, best):
    """Lets a run go on until the moment of its kill: a random one, and every second time one that follows a checkpoint,
    since on a busy machine random moments may all precede the first checkpoint."""
    if kills % 2 == 0:
        return running.communicate(timeout=dice.uniform(0, 1.3 * training.seconds))
    return wait_for_checkpoint(running, folder, best, dice.uniform(0, 0.3 * training.seconds))


def kill_until_it_ends(training, folder, dice, left):
    """Returns how often a training was killed until it ended as the uninterrupted one, and how often it resumed."""
    kills = resumes = best = 0
    every = dice.choice([1, 1, 2, 5])
    while True:
        running = training.start(folder, every)
        out_of_kills = kills >= min(left, MAX_KILLS)
        try:
            if out_of_kills:
                stdout, stderr = running.communicate(timeout=LIMIT)
            else:
                stdout, stderr = let_run(running, folder, training, dice, kills, best)
            killed = False
        except subprocess.TimeoutExpired:
            assert not out_of_kills, f"hangs: not ended within {LIMIT} s"
            stdout, stderr = kill(running, dice)
            killed = running.returncode != 0
        step = resumed_step(stderr)
        assert step is None or step >= best, f"resumed after step {step}, but step {best} was whole before"
        best = max(best, step or 0)
        resumes += bool(step)
        expect_only_checkpoints(folder, not killed)
        if killed:
            kills += 1
            continue
        assert running.returncode == 0, f"exit status {running.returncode}: {stderr}"
        result = result_of(stdout)
        assert result == training.expected, f"every {every}, resumed after step {step}:\n  {result}\n  {training.expected}"
        return kills, resumes


def kill_on(options):
    """Kills as often as asked on one backend, and returns whether all is well."""
    dice = random.Random(options.seed)
    trainings = {}
    kills = resumes = ends = failed = 0
    while kills < options.count and failed < 5:
        name, flags = TRAININGS[(ends + failed) % len(TRAININGS)]
        if options.backend == "cuda":
            flags = flags.replace("--precision bf16 ", "") + (" --graph" if ends % 2 else "")
        if (name, flags) not in trainings:
            trainings[name, flags] = Training(options, name, flags, options.steps)
        with tempfile.TemporaryDirectory() as folder:
            try:
                killed, resumed = kill_until_it_ends(trainings[name, flags], pathlib.Path(folder, "saved"), dice,
                                                     options.count - kills)
            except (AssertionError, OSError, ValueError, KeyError) as error:
                failed += 1
                print(f"FAILED ({name} {flags}, seed {options.seed}, after {kills} kills): {error}", flush=True)
                continue
        print(f"{name} {flags}: killed {killed} times, resumed {resumed} times, equal", flush=True)
        kills, resumes, ends = kills + killed, resumes + resumed, ends + 1
    print(f"{kills} kills on {options.backend}, {resumes} runs resumed from a checkpoint, {ends} trainings ended as if "
          f"never killed, {failed} did not", flush=True)
    return failed == 0 and kills >= options.count and resumes > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=12, help="kills in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--backend", default="cpu", help="one, or several with commas")
    parser.add_argument("--cuda-module")
    options = parser.parse_args()
    options.program = os.path.abspath(options.program)
    if options.cuda_module:
        os.environ["BUBBLESCOPE_CUDA_MODULE"] = os.path.abspath(options.cuda_module)
    results = []
    for backend in options.backend.split(","):
        options.backend = backend
        results.append(kill_on(options))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
