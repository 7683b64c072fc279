#!/usr/bin/env python3
"""Damages profiles in every way in which events can be lost, renamed or moved, and reads them.

  check_mutants.py PROGRAM [--count 400] [--seed 1] [--recorded FOLDER] [--only STYLE] [--verbose]

Every report must be right, or the files refused, or the report's first line must say that something is wrong. Base are
jobs of kineto_job.py and, where FOLDER (../shared/data/traces/pytorch) exists, recorded ones with their truth.
Exit status: 0 no mutant was misread silently, 1 some were.
"""
import argparse
import collections
import concurrent.futures
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import kineto_job  # noqa: E402
import mutate_events  # noqa: E402

class Base:
    """Files with their truth."""

    def __init__(self, label, files, spans, makespan, bubble, schedules):
        self.label, self.files, self.spans = label, files, spans
        self.makespan, self.bubble, self.schedules = makespan, bubble, schedules


def synthetic_bases(program, only):
    bases = []
    for style_name, style in kineto_job.STYLES.items():
        for schedule in ("1f1b", "gpipe", "zb-h1") if style["annotated"] else ("1f1b",):
            label = f"{style_name}: {schedule}"
            if only and only not in label:
                continue
            with tempfile.TemporaryDirectory() as folder:
                shape = ["--pp", "4", "-m", "8", "--f", "10", "--i", "11", "--w", "12", "--p2p", "0.25",
                         "--inject", "rank=1,slow=1.1", "--inject", "rank=3,slow=1.2"]
                job = kineto_job.Job(program, folder, schedule, shape, style)
                bases.append(Base(label, job.ranks, job.spans, job.makespan, job.bubble, {schedule}))
    return bases


NAMES = {"1F1B": {"1f1b"}, "GPipe": {"gpipe"}, "DualPipeV": {"dualpipev"}, "csv-zbh1": {"zb-h1"}}


def recorded_bases(folder, only):
    bases = []
    for path in sorted(folder.iterdir()):
        if only and only not in f"recorded: {path.name}":
            continue
        files = [json.loads(gzip.open(f"{path}/rank{rank}.json.gz").read()) for rank in range(4)]
        truths = [json.loads(gzip.open(f"{path}/truth{rank}.json.gz").read()) for rank in range(4)]
        spans = [[(kind, number, (start - file["baseTimeNanoseconds"]) / 1000, (end - file["baseTimeNanoseconds"]) / 1000)
                  for step, stage, kind, number, start, end in truth] for file, truth in zip(files, truths)]
        makespans, busy = [], []
        for step in sorted({row[0] for row in truths[0]}):
            rows = [row for truth in truths for row in truth if row[0] == step]
            makespans.append(max(row[5] for row in rows) - min(row[4] for row in rows))
            busy.append(sum(row[5] - row[4] for row in rows))
        makespan = sum(makespans) / len(makespans)
        for file in files:
            for event in file["traceEvents"]:
                if "ts" in event:
                    event["ts"] = float(event["ts"])
        bases.append(Base(f"recorded: {path.name}", files, spans, makespan,
                          1 - sum(busy) / len(busy) / 4 / makespan, NAMES.get(path.name)))
    return bases


def read(program, folder):
    return subprocess.run([program, "analyze", folder, "--format", "json"], capture_output=True, text=True, check=False,
                          timeout=120)


def judge(program, base, files, tolerance=0.005):
    """'right', 'said', 'refused' or 'silent', and what was read."""
    with tempfile.TemporaryDirectory() as folder:
        for at, file in enumerate(files):
            with open(f"{folder}/rank{at}.json", "w", encoding="utf-8") as out:
                out.write(json.dumps(file))  # dump() encodes in Python, which takes ten times as long
        outcome = read(program, folder)
    if outcome.returncode == 2:
        return "refused", outcome.stderr.strip()
    if outcome.returncode != 0:
        return "silent", f"exit status {outcome.returncode}: {outcome.stderr.strip()}"
    report = json.loads(outcome.stdout)
    if report["trust"]["verdict"] != "good":
        return "said", report["trust"]["why"][0]
    makespan, bubble = report["makespan_ns"] / base.makespan - 1, report["bubble"]["ratio"] - base.bubble
    found = f"{report['schedule']} pp {report['pp']}, makespan {makespan:+.3%}, bubble {bubble:+.4f}"
    # Swapped ranks are a placement that no schedule has, and no error.
    schedules = (base.schedules or {report["schedule"]}) | {"kineto"}
    is_right = (report["pp"] == 4 and abs(makespan) < 0.01 and abs(bubble) < tolerance and
                report["schedule"] in schedules)
    return ("right" if is_right else "silent"), found


def judge_mutant(program, base, seed):
    files = [{**file, "traceEvents": [dict(event) for event in file["traceEvents"]],
              "distributedInfo": dict(file["distributedInfo"])} for file in base.files]
    done = mutate_events.mutate(files, base.spans, f"{base.label} {seed}")
    return seed, done, *judge(program, base, files)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--recorded", type=pathlib.Path, default=pathlib.Path("/nowhere"))
    parser.add_argument("--only", default="")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    bases = synthetic_bases(options.program, options.only)
    if options.recorded.is_dir():
        bases += recorded_bases(options.recorded, options.only)
    count = collections.Counter()
    for base in bases:
        outcome = judge(options.program, base, base.files)
        if outcome[0] != "right":
            print(f"{base.label}: untouched, {outcome[0]}: {outcome[1]} (bubble {base.bubble:.4f})")
            count["wrong untouched"] += 1
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        each = -(-options.count // len(bases))
        jobs = [(base, options.seed * 100_000 + at) for base in bases for at in range(each)]
        for (base, _), (seed, done, outcome, found) in zip(
                jobs, pool.map(lambda job: judge_mutant(options.program, *job), jobs)):
            count[outcome] += 1
            if outcome == "silent" or options.verbose:
                print(f"{outcome.upper() if outcome == 'silent' else outcome}: {base.label}, seed {seed}: {done}\n"
                      f"    {found[:300]}", flush=True)
    print(", ".join(f"{number} {outcome}" for outcome, number in sorted(count.items())))
    return 1 if count["silent"] or count["wrong untouched"] or not (count["said"] and count["refused"]) else 0


if __name__ == "__main__":
    sys.exit(main())
