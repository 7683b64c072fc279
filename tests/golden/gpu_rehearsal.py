"""Rehearses tools/gpu_run.sh on a simulated device: every step passes, what it calibrates predicts what it runs, and the
record that it leaves becomes a part of docs/accuracy.md and is predicted again.

    gpu_rehearsal.py BUILD
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*command, **environment):
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, **environment}, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(holds, what):
    if not holds:
        sys.exit(f"gpu_rehearsal.py: {what}")


def check_record(record):
    measured = json.loads((record / "runs.json").read_text())
    expect("REHEARSAL" in measured["machine"], "the record does not say that it is a rehearsal")
    runs = [run for run in measured["runs"] if run["group"] == "run"]
    expect(len({run["schedule"] for run in runs}) >= 10, "fewer than ten schedules were compared")
    for run_ in runs:
        apart = abs(run_["measured_ns"] / run_["predicted_ns"] - 1)
        expect(apart < 0.02, f"{run_['schedule']} is off by {100 * apart:.2f} %")
        expect(run_["error"]["peak_pool"] < 0.02, f"{run_['schedule']}'s pools are not as large as predicted")
    for name, costs in measured["costs"].items():
        expect(costs["ranks_per_device"] == 4, f"{name} does not say who shares the device")
        for stage in costs["stages"]:
            expect(len(stage["contended"]["forward"]) == 3, f"{name} does not know ops with 2, 3 and 4 ranks busy")
        message = costs["message"]
        expect(len(message["contended"]) == 4, f"{name} does not know messages beside 1 to 4 busy ranks")
        expect(len(message["bandwidth_gbps"]) > 3, f"{name} does not know messages of several sizes")
    expect(any(line.startswith("the executor adds") for line in measured["figures"]), "no figures were kept")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        record = pathlib.Path(folder) / "simulated"
        run("bash", "tools/gpu_run.sh", "--rehearse", record, build)
        summary = (record / "summary.md").read_text()
        expect("FAILED" not in summary and "left out" not in summary, summary)
        check_record(record)
        accuracy = pathlib.Path(folder) / "accuracy.md"
        accuracy.write_text("# Head\n")
        run(sys.executable, "tools/accuracy.py", "none", "--gpu-only", "--measured", folder, "-o", accuracy)
        expect("## simulated" in accuracy.read_text(), "the record is not in the table of accuracy")
        told = run(build / "tests" / "golden_tests", "--gtest_filter=MeasuredRuns.*", BUBBLESCOPE_MEASURED=folder)
        expect("[  PASSED  ] 1 test" in told and "SKIPPED" not in told, told)
    print("the rehearsal went well")


if __name__ == "__main__":
    main()
