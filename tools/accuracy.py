#!/usr/bin/env python3
"""Measures how well predictions hold on this machine and writes the tables of docs/accuracy.md.

  python3 tools/accuracy.py build/release/bubblescope [--repeat 3] [-o docs/accuracy.md]

What GPUs measured is taken from traces/measured/*/runs.json (tools/gpu_run.sh makes them); --gpu-only renews that part
of the file and nothing else.

Every number is the median over the repetitions: other work on the machine makes single ones worse. Where there is much of
it, `chrt --rr 1 python3 tools/accuracy.py ...` (as root) goes before it.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

SCHEDULES = "naive,gpipe,1f1b,interleaved,zb-h1,zb-h2,zb-v,interleaved-zb,dualpipev,hanayo"
SHAPES = "8x32,8x16,4x16,4x32"
COSTS = ["--vpp", "2", "--f", "20", "--i", "20", "--w", "18", "--p2p", "0.5"]
STRAGGLERS = ["rank=3,slow=1.3", "rank=2,delay=7ms", "rank=0,op=0F3,delay=60ms"]
MODEL = ["--hidden-size", "128", "--seq-length", "128", "--num-attention-heads", "4", "--work", "transformer"]
ERRORS = ["makespan", "bubble_ratio", "op_start_p50", "op_start_p95", "peak_memory"]


HEAD = """# How accurate predictions are

Written by `python3 tools/accuracy.py build/release/bubblescope`, which predicts and measures with
`compare --backend`. Errors are percentages: of the predicted makespan (makespan), of all ranks' time (bubble, a
difference of ratios), of the predicted step (start p50 and p95: the shift of op starts), of the
fullest rank's peak (memory).

"""


def bubblescope(options, *arguments):
    print("$ bubblescope " + " ".join(arguments), file=sys.stderr, flush=True)
    done = subprocess.run([options.program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout


def compare(options, schedules, *arguments):
    """(reports, tau): of every schedule and shape, each error the median over the repetitions."""
    runs = [json.loads(bubblescope(options, "compare", schedules, *arguments, "--format", "json"))
            for _ in range(options.repeat)]
    reports = runs[0]["reports"]
    for at, report in enumerate(reports):
        report["error"] = {name: statistics.median(run["reports"][at]["error"][name] for run in runs)
                           for name in ERRORS}
        report["makespan_ns"] = statistics.median(run["reports"][at]["makespan_ns"] for run in runs)
    return reports, statistics.median(run["kendall_tau"] for run in runs)


def percent(value):
    return f"{100 * value:.2f}"


def table(reports):
    lines = ["| schedule | p | m | predicted ms | measured ms | makespan | bubble | start p50 | start p95 | memory |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for report in reports:
        times = [f"{report['predicted']['makespan_ns'] / 1e6:.2f}", f"{report['makespan_ns'] / 1e6:.2f}"]
        cells = [report["schedule"], str(report["pp"]), str(report["microbatches"]), *times,
                 *(percent(report["error"][name]) for name in ERRORS)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def worst(reports, name):
    return percent(max(report["error"][name] for report in reports))


def played(options):
    """Ops that sleep for tens of milliseconds."""
    arguments = ["--shapes", SHAPES, *COSTS, "--backend", "cpu", "--warmup", "0", "--steps", "1"]
    reports, tau = compare(options, SCHEDULES, *arguments)
    straggling = []
    for straggler in STRAGGLERS:
        straggling += compare(options, "1f1b,zb-h1,zb-v", "--pp", "8", "-m", "32", *COSTS, "--backend", "cpu",
                              "--warmup", "0", "--steps", "1", "--inject", straggler)[0]
    return f"""## Ops that sleep

This tests the executor: it must start every op at the predicted time, on {reports[0]['device']}.
Forward, input gradient and weight gradient of a rank take 20, 20 and 18 ms, a message 0.5 ms. The largest
errors: {worst(reports, 'makespan')} % of the step's length, {worst(reports, 'op_start_p95')} % of the step for the 95th
percentile of op starts. Kendall's tau over all {len(reports)} runs: {tau:.2f}.

{table(reports)}
With stragglers ({', '.join(f'`--inject {each}`' for each in STRAGGLERS)}, one after the other), predicted and run:
at most {worst(straggling, 'makespan')} % of the step's length.

{table(straggling)}"""


def trained(options):
    """A transformer on two ranks, predicted from costs that other shapes gave."""
    with tempfile.NamedTemporaryFile(suffix=".json") as costs:
        bubblescope(options, "calibrate", "1f1b,zb-h1", "--pp", "2", "-m", "12", *MODEL, "-o", costs.name)
        reports, _ = compare(options, "gpipe,1f1b,zb-h1,zb-h2,eager-1f1b", "--shapes", "2x4,2x8,2x16,2x32", "--costs",
                             costs.name, "--backend", "cpu", "--steps", "5", *MODEL)
    errors = sorted(report["error"]["makespan"] for report in reports)
    return f"""## A transformer that trains

Two ranks, with a thread each; width 128, 128 tokens, one block per stage. Costs were measured on 1f1b and zb-h1 with
12 micro-batches (`calibrate`); the runs below have other numbers of micro-batches. Median error of the step's
length: {percent(statistics.median(errors))} %, the largest {percent(errors[-1])} %. Every run's gradients were verified.

{table(reports)}"""


def overheads(options):
    """Measures what the executor itself costs, with ops that do nothing."""
    nothing = ["--pp", "2", "-m", "4000", "--f", "0", "--i", "0", "--w", "0", "--work", "spin", "--steps", "5",
               "--format", "json"]

    def time_per(launcher, schedule, backend, count):
        command = [*launcher, options.program, "run", schedule, *nothing, "--backend", backend]
        times = []
        for _ in range(options.repeat):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                return "not measured"
            times.append(json.loads(done.stdout)["makespan_ns"] / count / 1000)
        return f"{statistics.median(times):.2f} µs"

    mpirun = ["mpirun", "--oversubscribe", "--allow-run-as-root", "-np", "2"]
    return f"""## Overhead of the executor

Two ranks, 4000 micro-batches, ops without work (`--work spin --f 0 --i 0 --w 0`); time of the step divided by the
number of its compute ops or messages.

| | |
|---|---|
| `cpu`, gpipe: an instruction | {time_per([], 'gpipe', 'cpu', 24000)} |
| `cpu`, naive: a message that another rank sleeps for | {time_per([], 'naive', 'cpu', 8000)} |
| `mpi`, gpipe: a message, one after the other | {time_per(mpirun, 'gpipe', 'mpi', 8000)} |
| `mpi`, naive: a message that another rank waits for | {time_per(mpirun, 'naive', 'mpi', 8000)} |
"""


GPU_HEAD = "## On GPUs"


def measured_on_gpus(folder):
    """Returns the section on recorded runs, or says that there are none."""
    records = sorted(folder.glob("*/runs.json"))
    if not records:
        return f"{GPU_HEAD}\n\nNothing has been recorded on hardware yet: `traces/measured` is empty.\n"
    summary = pathlib.Path(__file__).with_name("gpu_summary.py")
    made = subprocess.run([sys.executable, summary, "--accuracy", *records], capture_output=True, text=True, check=True)
    return f"{GPU_HEAD}\n\n{made.stdout}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--gpu-only", action="store_true")
    parser.add_argument("--measured", type=pathlib.Path,
                        default=pathlib.Path(__file__).parent.parent / "traces" / "measured")
    parser.add_argument("-o", "--output", type=pathlib.Path, default="docs/accuracy.md")
    options = parser.parse_args()
    on_gpus = measured_on_gpus(options.measured)
    if options.gpu_only:
        text = options.output.read_text().split(f"\n{GPU_HEAD}\n")[0].rstrip("\n") + "\n"
    else:
        text = HEAD + "\n".join([played(options), trained(options), overheads(options)])
    options.output.write_text(f"{text}\n{on_gpus}")


if __name__ == "__main__":
    main()
