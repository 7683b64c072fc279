"""Breaks tools/gpu_run.sh on a simulated device: at every step of every section a kernel hangs, a launch never returns, a
queue is full or the process is lost. Every section ends within its bound, broken steps fail, the others pass, and the
archive holds what they measured. And a comparison that is killed leaves the schedules that it had measured.

    break_gpu_run.py BUILD [--sections smoke,speed]
"""

import argparse
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECTIONS = ["smoke", "speed", "correctness", "predict4", "predict8"]
FAULTS = ["hang:0", "block:0", "queue:0", "lost:0"]
MAX_STEP = 10  # seconds for a command, of which a broken one takes all at most;
MAX_CALIBRATION = 40  # in sections that calibrate, on a busy machine
KILL_GRACE = 3
OVERHEAD = 30  # of a section: the machine's description, summaries, archive; on a busy machine

# Stands for the program and for its tests: breaks what the file says, then continues as the original.
WRAPPER = """#!/bin/sh
BUBBLESCOPE_SIMULATED_GPU_FAULT=$(awk -F'\\t' -v step="$BUBBLESCOPE_GPU_STEP" '$1 == step {{print $2}}' "{faults}")
export BUBBLESCOPE_SIMULATED_GPU_FAULT
exec "{original}" "$@"
"""


def expect(holds, what):
    if not holds:
        sys.exit(f"break_gpu_run.py: {what}")


def make_build(folder, build):
    """A build folder whose programs break, each at the steps that `faults.tsv` names."""
    (folder / "tests").mkdir(parents=True)
    for name in ("bubblescope", "tests/gpu_tests"):
        (folder / name).write_text(WRAPPER.format(faults=folder / "faults.tsv", original=build / name))
        (folder / name).chmod(0o755)
    for name in ("bubblescope_simulated_gpu.so", "nvml"):
        (folder / "tests" / name).symlink_to(build / "tests" / name)
    (folder / "faults.tsv").write_text("")


def max_step(section):
    return MAX_CALIBRATION if section.startswith("predict") else MAX_STEP


def run_section(build, section, record, seconds):
    return subprocess.run(["bash", "tools/gpu_run.sh", "--rehearse", build, section, record, str(seconds)], cwd=ROOT,
                          capture_output=True, text=True, check=False,
                          env={**os.environ, "BUBBLESCOPE_GPU_MAX_LIMIT": str(max_step(section))})


def list_steps(build, section, record):
    run_section(build, section, record, 1)  # no time for any step, so that it only plans them
    return (record / section / "planned.txt").read_text().splitlines()


def break_steps(build, section, record, steps, broken):
    """`broken` is {step: fault}."""
    (build / "faults.tsv").write_text("".join(f"{step}\t{fault}\n" for step, fault in broken.items()))
    bound = len(steps) * (max_step(section) + KILL_GRACE) + OVERHEAD
    begin = time.monotonic()
    done = run_section(build, section, record, bound)
    taken = time.monotonic() - begin
    print(f"{section}: {len(broken)} of {len(steps)} steps broken, {taken:.0f} s of at most {bound}", flush=True)
    expect(done.returncode == 1, f"{section} with {broken} gives the status {done.returncode}\n{done.stdout}")
    expect(taken <= bound, f"{section} took {taken:.0f} s")
    return dict(line.split("\t")[:2] for line in (record / section / "steps.tsv").read_text().splitlines())


def check_section(section, record, steps, broken, ends):
    log = (record / section / "run.log").read_text()
    expect(list(ends) == steps, f"{section}: steps are left out: {set(steps) - set(ends)}")
    for step in steps:
        depends = step.startswith("run-") and f"costs-{step.split('-')[1]}" in broken
        if step in broken and not (broken[step].startswith("queue") and ends[step] == "passed"):
            expect(ends[step].startswith("failed"), f"{section}: {step} with {broken[step]} {ends[step]}\n{log}")
        elif step not in broken and not depends:
            expect(ends[step] == "passed", f"{section}: {step} {ends[step]}\n{log}")
    archive = record / f"{section}.tar.gz"
    with tarfile.open(archive) as file:
        names = file.getnames()
    for name in ("summary.md", "runs.json", "run.log", "steps.tsv"):
        expect(f"{section}/{name}" in names, f"{archive.name} lacks {name}")
    for step in steps:
        is_comparison = step.startswith(("run-", "spin-")) and " " not in step
        if is_comparison and ends[step] == "passed":
            expect(f"{section}/{step}.json" in names, f"{archive.name} lacks what {step} measured")
    summary = (record / section / "summary.md").read_text()
    for step, end in ends.items():
        expect(end == "passed" or f"{step}: failed" in summary, f"{section}: the summary does not name {step}")


def expect_none_left(folder):
    """A process that outlives its step would hold the device during the next ones."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes()
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has ended, or belongs to somebody else
            continue
        if process.name != str(os.getpid()) and os.fsencode(f"BUBBLESCOPE_CUDA_MODULE={folder}") in environment:
            os.kill(int(process.name), signal.SIGKILL)
            expect(False, f"a process outlived its step: {command}")


def rounds_of(steps):
    """Every step is broken in one round, in which the steps that it needs are sound and others have results to keep."""
    if not any(step.startswith("costs-") for step in steps):
        return [steps[0::2], steps[1::2]]
    rounds = [[step for step in steps if step.startswith("costs-")]]
    for costs in rounds[0]:
        rounds.append([step for step in steps if step.startswith(costs.replace("costs-", "run-"))])
    return rounds


def break_section(build, section, folder, shift):
    steps = list_steps(build, section, folder / "planned")
    faults = dict(zip(steps, itertools.islice(itertools.cycle(FAULTS), shift, None)))
    told = ""
    expect(sorted(itertools.chain(*rounds_of(steps))) == sorted(steps), f"{section}: a step is in no round")
    for number, chosen in enumerate(rounds_of(steps)):
        broken = {step: faults[step] for step in chosen}
        record = folder / f"broken-{number}"
        ends = break_steps(build, section, record, steps, broken)
        check_section(section, record, steps, broken, ends)
        expect_none_left(build)
        told += (record / section / "run.log").read_text()
    return told, len(steps)


def kill_comparison(build, folder):
    """A comparison that is killed after its first block of steps has left every schedule."""
    results = folder / "killed.jsonl"
    names = "gpipe,1f1b,zb-h1"
    comparison = subprocess.Popen(
        [build / "bubblescope", "compare", *f"{names} --pp 4 -m 8 --backend cuda --work spin --steps 400".split(),
         "--results", results],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "BUBBLESCOPE_CUDA_MODULE": str(build / "tests" / "bubblescope_simulated_gpu.so")})
    while comparison.poll() is None and (not results.exists() or results.read_text().count("\n") < 3):
        time.sleep(0.01)
    comparison.send_signal(signal.SIGKILL)
    expect(comparison.wait() == -signal.SIGKILL, "the comparison ended before it was killed")
    reports = [json.loads(line) for line in results.read_text().splitlines()]
    expect([report["schedule"] for report in reports] == names.split(","), "schedules are lost")
    expect(all(len(report["makespans_ns"]) == 200 for report in reports), "the first block is not whole")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--sections", default=",".join(SECTIONS))
    arguments = parser.parse_args()
    original = arguments.build.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        kill_comparison(original, folder)
        build = folder / "build"
        make_build(build, original)
        told = ""
        shift = 0
        for section in arguments.sections.split(","):
            log, steps = break_section(build, section, folder / section, shift)
            told += log
            shift += steps
        expect("no progress within" in told, "no hanging kernel was told")
        expect("ended by itself after 3 s" in told, "no full queue was told")
    print("every step was broken, and every section ended with its results")


if __name__ == "__main__":
    main()
