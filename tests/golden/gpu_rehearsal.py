"""Rehearses tools/gpu_run.sh on a simulated device, whose events leave gaps and whose clock drifts: every section passes
with half its time in processor time, leaves one small archive, predicts what it runs, and the record becomes a part of docs/accuracy.md and is predicted again. Then everything hangs,
and every section ends within its limit, with a summary that names what is missing.

    gpu_rehearsal.py BUILD
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tarfile
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*command, **environment):
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, **environment}, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def processor_time():
    """Returns the processor time of all children so far, which does not depend on who else uses the machine."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def expect(holds, what):
    if not holds:
        sys.exit(f"gpu_rehearsal.py: {what}")


SECTIONS = {"smoke": 60, "speed": 180, "correctness": 540, "predict4": 260, "predict8": 270}
MAX_ARCHIVE = 16 << 20


def check_predictions(section, ranks):
    measured = json.loads((section / "runs.json").read_text())
    expect("REHEARSAL" in measured["machine"], "the record does not say that it is a rehearsal")
    runs = [run for run in measured["runs"] if run["group"] == "run"]
    expect(len({run["schedule"] for run in runs}) >= 10, "fewer than ten schedules were compared")
    drifted = set()
    for run_ in runs:
        apart = abs(run_["measured_ns"] / run_["predicted_ns"] - 1)
        expect(apart < 0.02, f"{run_['schedule']} is off by {100 * apart:.2f} %")
        clocks = {step["sm_mhz"][0] for device in run_["device_state"] for step in device["steps"]}
        expect(min(clocks) > 1700 and run_["sm_mhz"], f"{run_['schedule']}: the clock is not known")
        drifted.update(clocks)
        expect(run_["error"]["peak_pool"] < 0.02, f"{run_['schedule']}'s pools are not as large as predicted")
    expect(max(drifted) > 1.02 * min(drifted), f"the clock does not drift: {drifted}")
    for name, costs in measured["costs"].items():
        expect("sm_mhz" in costs, f"{name} knows no clock")
        expect(costs["ranks_per_device"] == ranks, f"{name} does not say who shares the device")
        for stage in [*costs["stages"], *costs["stage_kinds"].values()]:
            expect(len(stage["contended"]["forward"]) == ranks - 1, f"{name} does not know ops beside other ranks")
        message = costs["message"]
        expect(len(message["contended"]) == ranks, f"{name} does not know messages beside busy ranks")
        expect(len(message["bandwidth_gbps"]) > 3, f"{name} does not know messages of several sizes")


def check_archive(record, section):
    archive = record / f"{section}.tar.gz"
    expect(archive.stat().st_size <= MAX_ARCHIVE, f"{archive.name} is too large")
    with tarfile.open(archive) as file:
        names = file.getnames()
    for name in ("summary.md", "runs.json", "run.log", "machine.txt", "steps.tsv"):
        expect(f"{section}/{name}" in names, f"{archive.name} lacks {name}")


def rehearse_hanging(folder):
    """A program that never ends: its steps run into their limits, and what is left out is named."""
    build = folder / "hanging"
    (build / "tests").mkdir(parents=True)
    for name in ("bubblescope", "tests/gpu_tests"):
        (build / name).write_text("#!/bin/sh\nsleep 600\n")
        (build / name).chmod(0o755)
    record = folder / "hung"
    begin = time.monotonic()
    done = subprocess.run(["bash", "tools/gpu_run.sh", "--rehearse", build, "speed", record, "20"], cwd=ROOT,
                          capture_output=True, text=True, check=False, timeout=120)
    expect(done.returncode == 1, f"a hanging program gives the status {done.returncode}")
    expect(time.monotonic() - begin < 90, "a hanging program held the script up")
    check_archive(record, "speed")
    summary = (record / "speed" / "summary.md").read_text()
    expect("GEMMs next to plain cuBLAS: failed" in summary and "spin-8: MISSING" in summary, summary)


def rehearse_stop(folder, build):
    """A section that is stopped leaves its archive all the same."""
    record = folder / "stopped"
    script = subprocess.Popen(["bash", "tools/gpu_run.sh", "--rehearse", build, "predict8", record], cwd=ROOT,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while script.poll() is None and not (record / "predict8" / "machine.txt").exists():
        time.sleep(0.1)
    time.sleep(3)
    script.terminate()
    expect(script.wait(timeout=60) == 143, f"a stopped script gives the status {script.returncode}")
    check_archive(record, "predict8")
    expect("MISSING" in (record / "predict8" / "summary.md").read_text(), "nothing is said to be missing")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        record = folder / "measured" / "simulated"
        for section, seconds in SECTIONS.items():
            begin = time.monotonic()
            used = processor_time()
            run("bash", "tools/gpu_run.sh", "--rehearse", build, section, record)
            used = processor_time() - used
            print(f"{section}: {time.monotonic() - begin:.0f} s of {seconds}, {used:.0f} s of processor time")
            expect(used <= seconds / 2, f"{section} takes {used:.0f} s of processor time, more than half its {seconds} s")
            summary = (record / section / "summary.md").read_text()
            expect(": failed" not in summary and "MISSING" not in summary, summary)
            check_archive(record, section)
        check_predictions(record / "predict4", 4)
        check_predictions(record / "predict8", 8)
        figures = json.loads((record / "runs.json").read_text())["figures"]
        expect(any(line.startswith("the executor adds") for line in figures), "no figures were kept")
        accuracy = folder / "accuracy.md"
        accuracy.write_text("# Head\n")
        run(sys.executable, "tools/accuracy.py", "none", "--gpu-only", "--measured", record.parent, "-o", accuracy)
        expect("## simulated" in accuracy.read_text(), "the record is not in the table of accuracy")
        told = run(build / "tests" / "golden_tests", "--gtest_filter=MeasuredRuns.*", BUBBLESCOPE_MEASURED=record.parent)
        expect("[  PASSED  ] 1 test" in told and "SKIPPED" not in told, told)
        rehearse_hanging(folder)
        rehearse_stop(folder, build)
    print("the rehearsal went well")


if __name__ == "__main__":
    main()
