"""Sums up what tools/gpu_run.sh measured.

    gpu_summary.py OUTDIR WORKDIR   reads WORKDIR's comparisons and costs, writes OUTDIR/summary.md and runs.json
    gpu_summary.py --accuracy RUNS.json... > docs/accuracy.md

runs.json is "bubblescope-measured/1": the machine, the costs by name, and per run its shape, what was predicted and
what was measured, in nanoseconds. tests/golden/measured_runs_test.cc predicts each run again from it.
"""

import json
import pathlib
import re
import statistics
import sys


def read_costs(work):
    return {file.stem: json.loads(file.read_text()) for file in sorted(work.glob("costs-*.json"))}


def read_runs(work):
    """One entry per schedule and shape that was compared."""
    runs = []
    for file in sorted(work.glob("*.json")):
        name = re.fullmatch(r"(run|spin|spin-graph)-(\d+)(?:x(\d+))?(?:-(\d+))?", file.stem)
        if not name:
            continue
        for report in json.loads(file.read_text())["reports"]:
            predicted = report["predicted"]
            runs.append(
                {
                    "group": name[1],
                    "schedule": report["schedule"],
                    "pp": report["pp"],
                    "vpp": report["vpp"],
                    "microbatches": report["microbatches"],
                    "costs": f"costs-{name[2]}x{name[3]}" if name[3] else None,
                    "predicted_ns": predicted["makespan_ns"],
                    "measured_ns": report["makespan_ns"],
                    "predicted_bubble_ratio": predicted["bubble"]["ratio"],
                    "measured_bubble_ratio": report["bubble"]["ratio"],
                    "error": report["error"],
                }
            )
    return runs


def step_error(run):
    return run["measured_ns"] / run["predicted_ns"] - 1


def kendall_tau(runs):
    """Over pairs of one shape whose measured steps differ by more than 2 %."""
    pairs = agreeing = 0
    for at, left in enumerate(runs):
        for right in runs[:at]:
            shape = [(run["group"], run["pp"], run["microbatches"]) for run in (left, right)]
            apart = left["measured_ns"] / right["measured_ns"] - 1
            if shape[0] != shape[1] or abs(apart) <= 0.02:
                continue
            pairs += 1
            agreeing += (left["predicted_ns"] > right["predicted_ns"]) == (apart > 0)
    return 2 * agreeing / pairs - 1 if pairs else None


def row(name, runs):
    errors = sorted(abs(step_error(run)) for run in runs)
    bubbles = [abs(run["measured_bubble_ratio"] - run["predicted_bubble_ratio"]) for run in runs]
    starts = [run["error"]["op_start_p95"] for run in runs]
    memory = [run["error"]["peak_memory"] for run in runs]
    tau = kendall_tau(runs)
    cells = [statistics.median(errors), errors[-1], max(bubbles), max(starts), max(memory)]
    text = " | ".join(f"{100 * cell:.2f}" for cell in cells)
    return f"| {name} | {len(runs)} | {text} | {'-' if tau is None else f'{tau:.2f}'} |"


HEAD = (
    "| runs | number | step error %, median | worst | bubble ratio, points, worst | op start p95 %, worst "
    "| peak memory %, worst | Kendall tau |\n|---|---|---|---|---|---|---|---|"
)
GROUPS = {"spin": "ops of known length", "spin-graph": "the same as graphs", "run": "transformer, calibrated"}


def tables(runs):
    text = [HEAD]
    for group, name in GROUPS.items():
        of_group = [run for run in runs if run["group"] == group]
        if of_group:
            text.append(row(name, of_group))
    text += ["", "| schedule | pp | vpp | m | predicted ms | measured ms | error % |", "|---|---|---|---|---|---|---|"]
    for run in runs:
        text.append(
            f"| {run['schedule']} ({run['group']}) | {run['pp']} | {run['vpp']} | {run['microbatches']} "
            f"| {run['predicted_ns'] / 1e6:.3f} | {run['measured_ns'] / 1e6:.3f} | {100 * step_error(run):+.2f} |"
        )
    return "\n".join(text) + "\n"


def sum_up(out, work):
    machine = (out / "machine.txt").read_text()
    runs = read_runs(work)
    measured = {"format": "bubblescope-measured/1", "machine": machine, "costs": read_costs(work), "runs": runs}
    (out / "runs.json").write_text(json.dumps(measured, indent=1) + "\n")
    log = (out / "run.log").read_text()
    ends = "\n".join(line for line in log.splitlines() if re.search(r": (passed|FAILED|left out)|is not here", line))
    (out / "summary.md").write_text(f"# GPU run\n\n```\n{machine}```\n\n```\n{ends}\n```\n\n{tables(runs)}")
    print(f"{len(runs)} runs; see summary.md")


def write_accuracy(files):
    print("# Accuracy\n\nMade by `python3 tools/gpu_summary.py --accuracy traces/measured/*/runs.json`.")
    for file in files:
        measured = json.loads(pathlib.Path(file).read_text())
        print(f"\n## {pathlib.Path(file).parent.name}\n\n```\n{measured['machine']}```\n\n{tables(measured['runs'])}", end="")


if __name__ == "__main__":
    if sys.argv[1] == "--accuracy":
        write_accuracy(sys.argv[2:])
    else:
        sum_up(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
