"""Sums up what tools/gpu_run.sh measured.

    gpu_summary.py SECTION      reads the comparisons and costs of a section's folder, writes its summary.md and runs.json
    gpu_summary.py --merge OUT  joins the sections in OUT into OUT/summary.md and OUT/runs.json
    gpu_summary.py --accuracy RUNS.json...   writes what docs/accuracy.md says of GPUs (tools/accuracy.py puts it there)

runs.json is "bubblescope-measured/1": the machine, its state, figures, the costs by name, and per run its shape, what was predicted and
what was measured, in nanoseconds. Of a comparison that was cut short, the schedules that it had measured count. tests/golden/measured_runs_test.cc predicts each run again from it.
"""

import csv
import json
import pathlib
import re
import statistics
import sys


def read_costs(work):
    return {file.stem: json.loads(file.read_text()) for file in sorted(work.glob("costs-*.json"))}


def read_reports(file):
    """Returns the reports that a comparison wrote at its end or, if it was cut short, the last one of each schedule."""
    whole = file.with_suffix(".json")
    if whole.exists():
        return json.loads(whole.read_text())["reports"]
    reports = {}
    for line in file.read_text().splitlines():
        try:
            report = json.loads(line)
        except ValueError:
            continue  # the line that was being written
        reports[report["schedule"]] = report
    return list(reports.values())


def read_runs(work):
    """One entry per schedule and shape that was compared."""
    runs = []
    for file in sorted(work.glob("*.jsonl")):
        name = re.fullmatch(r"(run|spin|spin-graph)-(\d+)(?:x(\d+))?(?:-(\d+))?", file.stem)
        if not name:
            continue
        for report in read_reports(file):
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
                    "step_spread": report.get("step_spread"),
                    "sm_mhz": report.get("sm_mhz"),
                    "device_state": report.get("device_state"),
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


def errors_of(runs):
    """The criteria, in the order of the tables, as fractions."""
    steps = sorted(abs(step_error(run)) for run in runs)
    bubbles = [abs(run["measured_bubble_ratio"] - run["predicted_bubble_ratio"]) for run in runs]
    starts = [run["error"]["op_start_p95"] for run in runs]
    memory = [max(run["error"]["peak_memory"], run["error"].get("peak_pool", 0)) for run in runs]
    return [statistics.median(steps), steps[-1], max(bubbles), max(starts), max(memory)]


def row(name, runs):
    tau = kendall_tau(runs)
    text = " | ".join(f"{100 * cell:.2f}" for cell in errors_of(runs))
    return f"| {name} | {len(runs)} | {text} | {'-' if tau is None else f'{tau:.2f}'} |"


HEAD = (
    "| runs | number | step error %, median | worst | bubble ratio, points, worst | op start p95 %, worst "
    "| peak memory %, worst | Kendall tau |\n|---|---|---|---|---|---|---|---|"
)
LIMITS = [0.02, 0.05, 0.01, 0.02, 0.02]  # of errors_of()
MIN_TAU = 0.95
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


def verdict(runs):
    """Whether the calibrated predictions hold and, if not, in how many runs and for which schedules."""
    runs = [run for run in runs if run["group"] == "run"]
    if not runs:
        return "Nothing was predicted from calibrated costs."
    tau = kendall_tau(runs)
    holds = all(error <= limit for error, limit in zip(errors_of(runs), LIMITS)) and (tau is None or tau >= MIN_TAU)
    shapes = {(run["pp"], run["microbatches"]) for run in runs}
    schedules = {run["schedule"] for run in runs}
    text = (
        f"Predictions of {len(schedules)} schedules in {len(shapes)} shapes "
        f"{'hold' if holds else 'do NOT hold'}: step within 2 % median and 5 % worst, bubble ratio within 1 point, "
        f"op starts and memory within 2 %, tau at least {MIN_TAU}."
    )
    return text if holds else f"{text}\n{shortfall(runs)}"


def shortfall(runs):
    """Counts the runs whose errors are within each limit, names the schedules of the others, and gives tau."""
    names = ["step error at most 2 %", "step error at most 5 %", "bubble ratio within 1 point",
             "op starts within 2 %", "memory within 2 %"]
    parts = []
    for at, (name, limit) in enumerate(zip(names, LIMITS)):
        beyond = [run for run in runs if errors_of([run])[at] > limit]
        schedules = sorted({run["schedule"] for run in beyond})
        others = f" (not {', '.join(schedules)})" if schedules else ""
        parts.append(f"- {name}: {len(runs) - len(beyond)} of {len(runs)} runs{others}")
    tau = kendall_tau(runs)
    parts.append("- tau: " + ("no pairs" if tau is None else f"{tau:.3f}"))
    return "\n".join(parts)


def state_of_runs(runs):
    """The ranges that NVML told the runs themselves; a run has a list of devices, a line of why not, or nothing."""
    seen = {}
    for run in runs:
        devices = run["device_state"]
        for device in devices if isinstance(devices, list) else []:
            for name, value in device["during"].items():
                if isinstance(value, list):
                    seen.setdefault(name, []).extend(value)
    return "".join(f"{name} while measured: {min(values)} to {max(values)}\n" for name, values in seen.items())


def state_text(out, runs):
    """The ranges of clocks, power and temperature while it ran."""
    file = out / "state.csv"
    if not file.exists():
        return state_of_runs(runs) or "Clocks, power and temperature were not recorded: there is no NVML here.\n"
    rows = [row for row in csv.reader(file.open()) if len(row) == 5][1:]
    text = ""
    for at, name in enumerate(["SM clock, MHz", "memory clock, MHz", "power, W", "temperature, C"], start=1):
        values = sorted(float(row[at]) for row in rows if re.fullmatch(r" *[0-9.]+", row[at]))
        if values:
            text += f"{name}: {values[0]:g} to {values[-1]:g}, median {statistics.median(values):g}\n"
    return text


def steps_of(folder):
    """[(name, how it ended, seconds)], and the names of the steps that have not ended at all."""
    ends = [tuple(line.split("\t")) for line in read_text(folder / "steps.tsv").splitlines()]
    planned = read_text(folder / "planned.txt").splitlines()
    return ends, [name for name in planned if name not in {end[0] for end in ends}]


def read_text(file):
    return file.read_text(errors="replace") if file.exists() else ""


def steps_text(folder):
    ends, missing = steps_of(folder)
    lines = [f"{name}: {how}, {seconds} s" for name, how, seconds in ends]
    lines += [f"{name}: MISSING" for name in missing]
    failed = [name for name, how, _ in ends if how != "passed"]
    count = f"{len(ends) - len(failed)} of {len(ends) + len(missing)} steps passed"
    return count + (f"; failed: {', '.join(failed)}" if failed else "") + \
        (f"; missing: {', '.join(missing)}" if missing else "") + "\n\n```\n" + "\n".join(lines) + "\n```"


def sum_up(folder):
    machine = read_text(folder / "machine.txt")
    runs = read_runs(folder)
    figures = re.findall(r"^figure: (.*)", read_text(folder / "run.log"), re.MULTILINE)
    state = state_text(folder, runs)
    write_record(folder, {
        "format": "bubblescope-measured/1",
        "machine": machine,
        "state": state.splitlines(),
        "figures": figures,
        "costs": read_costs(folder),
        "runs": runs,
    }, [steps_text(folder)])
    print(f"{steps_text(folder).splitlines()[0]}. {verdict(runs).splitlines()[0]}")


def write_record(folder, measured, steps):
    rows = ",\n".join(json.dumps(run, separators=(",", ":")) for run in measured["runs"])
    head = json.dumps({key: value for key, value in measured.items() if key != "runs"}, indent=1)
    (folder / "runs.json").write_text(f'{head[:-2]},\n "runs": [\n{rows}\n ]\n}}\n')
    state = "\n".join(measured["state"])
    parts = ["# GPU run", *steps, f"```\n{measured['machine']}```", f"```\n{state}\n```"]
    if measured["figures"]:
        parts.append("```\n" + "\n".join(measured["figures"]) + "\n```")
    if measured["runs"]:
        parts.append(verdict(measured["runs"]) + "\n\n" + tables(measured["runs"]))
    (folder / "summary.md").write_text("\n\n".join(parts) + "\n")


def merge(out):
    """The sections in the order in which they were run."""
    records = sorted(out.glob("*/runs.json"), key=lambda file: (file.parent / "machine.txt").stat().st_mtime)
    merged = {"format": "bubblescope-measured/1", "machine": "", "state": [], "figures": [], "costs": {}, "runs": []}
    steps = []
    for file in records:
        part = json.loads(file.read_text())
        merged["machine"] = merged["machine"] or part["machine"]
        merged["state"] += [f"{file.parent.name}: {line}" for line in part["state"]]
        merged["figures"] += part["figures"]
        merged["costs"].update(part["costs"])
        merged["runs"] += part["runs"]
        steps.append(f"## {file.parent.name}\n\n" + steps_text(file.parent))
    write_record(out, merged, steps)


def write_accuracy(files):
    print("Made by `python3 tools/gpu_summary.py --accuracy traces/measured/*/runs.json`.")
    for file in files:
        measured = json.loads(pathlib.Path(file).read_text())
        name = pathlib.Path(file).parent.name
        parts = [f"\n### {name}", f"[How it was run, and what it showed](../traces/measured/{name}/README.md).",
                 f"```\n{measured['machine']}```"]
        if measured["figures"]:
            parts.append("```\n" + "\n".join(measured["figures"]) + "\n```")
        parts.append(verdict(measured["runs"]) + "\n\n" + tables(measured["runs"]))
        print("\n\n".join(parts), end="")


if __name__ == "__main__":
    if sys.argv[1] == "--accuracy":
        write_accuracy(sys.argv[2:])
    elif sys.argv[1] == "--merge":
        merge(pathlib.Path(sys.argv[2]))
    else:
        sum_up(pathlib.Path(sys.argv[1]))
