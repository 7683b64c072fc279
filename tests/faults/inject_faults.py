#!/usr/bin/env python3
"""Injects faults into runs of schedules and checks how each run ends.

  inject_faults.py PROGRAM [--count 40] [--seed 1] [--backend cpu|mpi]

Kinds: delay, slow, die, hang, wrong-size, garbage, full-disk and interrupt; with several processes also kill, freeze
and kill-done, which kills a process after it has finished its part of the step. Each run must end, with the exit
status that docs/executor.md promises. The culprit must be named first, every file must be complete and say where the
ranks were blocked, and no other file may be left.
"""
import argparse
import functools
import json
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

SHAPES = [("gpipe", 2, 4), ("1f1b", 4, 6), ("zb-h1", 3, 6), ("interleaved", 2, 4), ("zb-v", 2, 4), ("dualpipe", 2, 4),
          ("pipedream", 3, 6), ("bpipe", 4, 6)]
MODEL = ["--hidden-size", "8", "--seq-length", "4", "--vocab-size", "13", "--steps", "1"]
HANG_TIMEOUT = "2s"
LIMIT = 60  # seconds after which a run counts as hanging


def flags_of(shape):
    schedule, ranks, microbatches = shape
    chunks = ["--vpp", "2"] if schedule == "interleaved" else []
    return ["--pp", str(ranks), "-m", str(microbatches), *chunks]


def ops_of(program, shape):
    """Returns [(rank, op, whether it sends)] of a schedule, from the program's own prediction."""
    arguments = [program, "simulate", shape[0], *flags_of(shape), "--format", "json"]
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run(arguments + ["--save", file.name], check=True, capture_output=True)
        rows = json.load(open(file.name))["instructions"]
    senders = {waited for row in rows if "SEND" in row[1] for waited in row[6]}
    return [(row[0], row[1], at in senders) for at, row in enumerate(rows) if re.fullmatch(r"\d+[FBIWR]\d+", row[1])]


def is_alive(process):
    """Whether a process is running; a zombie has ended, and only waits for its parent."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def children_of(launcher):
    """Returns the children of all threads of the launcher for which it has not yet waited."""
    lists = pathlib.Path(f"/proc/{launcher}/task").glob("*/children")
    return sorted({int(child) for children in lists for child in read_if_there(children).split()})


def read_if_there(path):
    """Returns the text of a file of /proc; empty if its thread has just ended."""
    try:
        return path.read_text()
    except OSError:
        return ""


@functools.cache
def drops_last_words():
    """Whether mpirun drops what ranks write to stderr after a death or an interrupt, as Open MPI does since 5.0."""
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout
    known = re.search(r"Open MPI\)? (\d+)", version)
    return bool(known) and int(known[1]) >= 5


class Run:
    """One run of the program in a folder of its own."""

    stuck_launchers = 0  # in all runs: how often mpirun hung although all processes had ended

    def __init__(self, options, shape, extra, folder):
        schedule, ranks, microbatches = shape
        self.folder = pathlib.Path(folder)
        self.saved = self.folder / "step.json"
        self.traced = self.folder / "trace.json"
        launcher = []
        if options.backend == "mpi":
            launcher = ["mpirun", "--oversubscribe", "--allow-run-as-root", "-np", str(ranks)]
        self.launched = bool(launcher)
        self.command = launcher + [options.program, "run", schedule, *flags_of(shape),
                                   "--backend", options.backend, "--work", "transformer", *MODEL, *extra]

    def start(self, limit_files=False):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # writing then fails, as on a full disk
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        restore_signals=False, preexec_fn=limit if limit_files else None)
        return self

    def finish(self):
        try:
            self.stdout, self.stderr = self.process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            ended = self.launched and not any(map(is_alive, children_of(self.process.pid)))
            self.process.kill()
            if not ended:
                raise AssertionError(f"hangs: not ended within {LIMIT} s")
            self.stdout, self.stderr = self.process.communicate()
            Run.stuck_launchers += 1
        self.status = self.process.returncode
        self.messages = [line for line in self.stderr.splitlines() if line.startswith("bubblescope: ")]
        if not self.messages and self.launched and drops_last_words() and self.saved.exists():
            told = json.loads(self.saved.read_text()).get("breakdown")
            self.messages = ["bubblescope: " + told] if told else []
        return self

    def expect(self, condition, what):
        assert condition, f"{what}\n  status {self.status}\n  {self.stderr.strip()}"

    def expect_files(self, broken):
        """Both files are complete and contain the message of the breakdown; there are no other files."""
        saved = json.loads(self.saved.read_text())
        traced = json.loads(self.traced.read_text())
        told = "bubblescope: " + saved.get("breakdown", "")
        self.expect(("breakdown" in saved) == broken, "the timeline does not say whether the step broke down")
        self.expect(traced["otherData"].get("breakdown") == saved.get("breakdown"), "the trace tells another story")
        self.expect(not broken or told in self.messages, "the timeline's breakdown is not the message's")
        places = r"rank \d+ at \d+[A-Z]\d+|; all other ranks had finished the step$"
        self.expect(not broken or re.search(places, told), "no rank's place is told")
        self.expect_nothing_but({"step.json", "trace.json"})

    def expect_nothing_but(self, names):
        left = {path.name for path in self.folder.iterdir()} - names
        self.expect(not left, f"left behind: {left}")

    def exports(self):
        self.command += ["--save", str(self.saved), "--trace", str(self.traced)]
        return self


def injected(kind, rank, op):
    return ["--inject", f"rank={rank},op={op},{kind}"]


def try_harmless(options, shape, rank, op, folder, how):
    run = Run(options, shape, injected(how, rank, op), folder).exports().start().finish()
    run.expect(run.status == 0, "a slow op must only make the step slow")
    run.expect("equal the serial reference" in run.stdout, "the gradients are not proven")
    run.expect_files(broken=False)


def try_fatal(options, shape, rank, op, folder, kind):
    culprits = {"die": f"rank {rank} died at {re.escape(op)}", "wrong-size": f"rank {rank} sent a wrong size",
                "hang": f"no progress within --timeout: rank {rank} at {re.escape(op)} \\(running\\)",
                "garbage": f"rank {rank} sent an invalid message"}
    extra = injected(kind, rank, op) + ["--timeout", HANG_TIMEOUT if kind == "hang" else "30s"]
    run = Run(options, shape, extra, folder).exports().start().finish()
    run.expect(run.status == 3, "the machine failed: the exit status must be 3")
    run.expect(re.match("bubblescope: " + culprits[kind], run.messages[0] if run.messages else ""),
               "the culprit is not the first that is named")
    run.expect_files(broken=True)


def try_full_disk(options, shape, rank, op, folder, with_death):
    """The previous file is unchanged, and an earlier death is still reported."""
    run = Run(options, shape, injected("die", rank, op) if with_death else [], folder).exports()
    run.saved.write_text("{}")
    run.traced.write_text("{}")
    if run.launched:  # mpirun itself writes files, so only the export gets a full disk
        run.command[run.command.index(str(run.saved))] = "/dev/full"
    run.start(limit_files=not run.launched).finish()
    run.expect(run.status == 3, "a full disk is the machine's fault: the exit status must be 3")
    run.expect(any("cannot write" in message for message in run.messages), "the file is not named")
    run.expect(not with_death or f"rank {rank} died" in run.messages[0], "the death is not told first")
    for path in (run.saved, run.traced):
        run.expect(path.read_text() == "{}", f"{path.name} was damaged")
    run.expect_nothing_but({"step.json", "trace.json"})


def try_interrupt(options, shape, rank, op, folder, delay):
    """Ctrl-C at any time: nothing is written if the step has not begun, and everything if it has."""
    run = Run(options, shape, injected("hang", rank, op) + ["--timeout", "50s"], folder).exports().start()
    time.sleep(delay)
    run.process.send_signal(signal.SIGINT)
    run.finish()
    if run.saved.exists():
        run.expect(any(message.startswith("bubblescope: interrupted: rank ") for message in run.messages),
                   "the interrupt is not told")
        run.expect(run.launched or run.status == 3, "the machine failed: the exit status must be 3")
        return run.expect_files(broken=True)
    run.expect(run.launched or run.status == -signal.SIGINT, "neither interrupted nor stopped")
    run.expect(run.status != 0, "the exit status tells of no interrupt")
    run.expect_nothing_but(set())


def await_processes(launcher, count):
    """Waits for all of the launcher's processes and returns them."""
    for _ in range(3000):
        children = children_of(launcher)
        if len(children) == count:
            return children
        time.sleep(0.01)
    raise AssertionError("the processes have not started in time")


def await_hang(process, op):
    """Returns when a thread of the process hangs in the op; the thread is named after it."""
    for _ in range(5000):
        if any(name.strip() == f"hangs at {op}" for name in map(read_if_there, pathlib.Path(f"/proc/{process}/task").glob("*/comm"))):
            return
        time.sleep(0.01)
    raise AssertionError(f"no thread of the process has come to {op} in time")


def try_kill_done(options, folder):
    """Kills a process after it has finished its part: rank 0 hangs at the last op, when the others have finished."""
    ranks, microbatches = 3, 6
    last = f"0B{microbatches - 1}"
    run = Run(options, ("1f1b", ranks, microbatches), injected("hang", 0, last) + ["--timeout", "50s"], folder).exports().start()
    processes = await_processes(run.process.pid, ranks)
    await_hang(processes[0], last)
    os.kill(processes[-1], signal.SIGKILL)
    run.finish()
    run.expect(run.status != 0, "the exit status tells of no death")
    if run.launched and drops_last_words() and not run.saved.exists():  # it also ends the other ranks at once
        run.expect(f"process rank {ranks - 1} " in run.stderr, "the launcher does not name the culprit")
        return run.expect_nothing_but(set())
    run.expect(run.messages and f"rank {ranks - 1} does not answer" in run.messages[0], "the culprit is not named")
    run.expect_files(broken=True)


def try_signal(options, shape, rank, op, folder, number):
    """Kills or freezes a process at any time after its start."""
    timeout = "3s" if number == signal.SIGSTOP else "50s"
    run = Run(options, shape, injected("hang", rank, op) + ["--timeout", timeout], folder).exports().start()
    victim = options.random.randrange(shape[1])
    processes = await_processes(run.process.pid, shape[1])
    time.sleep(options.random.uniform(0, 1.5))
    os.kill(processes[victim], number)
    run.finish()
    run.expect(run.status != 0, "the exit status tells of no death")
    told = run.messages[0] if run.messages else ""
    named = f"rank {victim} does not answer" in told
    if not run.saved.exists():  # if a process dies while MPI starts, the launcher reports it
        run.expect(named or number == signal.SIGKILL, "the culprit is not named")
        return run.expect_nothing_but(set())
    run.expect(named, "the culprit is not named")
    run.expect_files(broken=True)


def try_one(options, kind, shape, folder):
    ops = options.ops[shape]
    if kind in ("wrong-size", "garbage"):
        ops = [op for op in ops if op[2]]
    rank, op, _ = options.random.choice(ops)
    print(f"{kind} at {op} of rank {rank}, {shape[0]}, {shape[1]} ranks, {shape[2]} micro-batches", flush=True)
    if kind in ("delay", "slow"):
        return try_harmless(options, shape, rank, op, folder, "delay=3ms" if kind == "delay" else "slow=4.5")
    if kind == "full-disk":
        return try_full_disk(options, shape, rank, op, folder, options.random.random() < 0.5)
    if kind == "interrupt":
        latest = 0.8 if options.backend == "mpi" else 0.2
        return try_interrupt(options, shape, rank, op, folder, options.random.uniform(0, latest))
    if kind == "kill":
        return try_signal(options, shape, rank, op, folder, signal.SIGKILL)
    if kind == "kill-done":
        return try_kill_done(options, folder)
    if kind == "freeze":
        return try_signal(options, shape, rank, op, folder, signal.SIGSTOP)
    try_fatal(options, shape, rank, op, folder, kind)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--kinds", help="only these, separated by commas")
    options = parser.parse_args()
    options.program = os.path.abspath(options.program)
    options.random = random.Random(options.seed)
    options.ops = {shape: ops_of(options.program, shape) for shape in SHAPES}
    kinds = ["delay", "slow", "die", "hang", "wrong-size", "garbage", "full-disk", "interrupt"]
    if options.backend == "mpi":
        kinds += ["kill", "freeze", "kill-done"]
    kinds = options.kinds.split(",") if options.kinds else kinds
    failed = 0
    for number in range(options.count):
        shape = options.random.choice(SHAPES)
        with tempfile.TemporaryDirectory() as folder:
            try:
                try_one(options, kinds[number % len(kinds)], shape, folder)
            except (AssertionError, OSError, ValueError) as error:
                failed += 1
                print(f"FAILED (fault {number}, seed {options.seed}): {error}", flush=True)
    launcher = f"; mpirun hung {Run.stuck_launchers} times behind what had ended" if Run.stuck_launchers else ""
    print(f"{options.count} faults injected on {options.backend}, {failed} ended wrongly{launcher}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
