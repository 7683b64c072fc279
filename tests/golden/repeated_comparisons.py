"""Compares ten schedules on two ranks of this machine again and again: most predicted steps lie within the spread of the
measured ones, and no run concludes that a schedule is faster than another where another run concludes the opposite.

    repeated_comparisons.py BUBBLESCOPE [--count N] [--microbatches M] [--results FILE]
"""

import argparse
import itertools
import json
import subprocess
import sys

SCHEDULES = "gpipe,1f1b,eager-1f1b,zb-h1,zb-h2,zb-1p,interleaved,interleaved-zb,zb-v,v-half"
LEAST_WITHIN = 9


def run(program, microbatches):
    command = [program, "compare", SCHEDULES, "--pp", "2", "--vpp", "2", "-m", str(microbatches), "--backend", "cpu",
               "--work", "transformer", "--no-verify", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)["reports"]


def are_apart(left, right):
    """As tools/commands/measured_spread.h has it."""
    drift = max(left["drift_ns"], right["drift_ns"])
    if left["lower_quartile_ns"] <= right["upper_quartile_ns"] + drift and \
            right["lower_quartile_ns"] <= left["upper_quartile_ns"] + drift:
        return False
    medians = sorted((left["median_ns"], right["median_ns"]))
    return medians[1] - medians[0] > 0.001 * medians[1]


def conclusions(reports):
    """{(slower, faster)} of the pairs that are apart."""
    found = set()
    for left, right in itertools.permutations(reports, 2):
        if are_apart(left["step_spread"], right["step_spread"]) and \
                left["step_spread"]["median_ns"] > right["step_spread"]["median_ns"]:
            found.add((left["schedule"], right["schedule"]))
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--results", help="a file that gets every run's spreads and predictions, one line each")
    arguments = parser.parse_args()
    results = open(arguments.results, "a", encoding="utf-8") if arguments.results else None
    seen = {}
    too_few = []
    for repetition in range(arguments.count):
        reports = run(arguments.program, arguments.microbatches)
        if results:
            results.write(json.dumps([{"schedule": report["schedule"], "predicted_ns": report["predicted"]["makespan_ns"],
                                       "step_spread": report["step_spread"], "makespans_ns": report["makespans_ns"]}
                                      for report in reports]) + "\n")
            results.flush()
        within = sum(report["within_spread"] for report in reports)
        found = conclusions(reports)
        for pair in found:
            seen.setdefault(pair, []).append(repetition)
        drift = max(report["step_spread"]["drift_ns"] / report["step_spread"]["median_ns"] for report in reports)
        print(f"run {repetition}: {within} of {len(reports)} within their spread, {len(found)} pairs apart, "
              f"drift up to {100 * drift:.1f} %", flush=True)
        if within < LEAST_WITHIN:
            too_few.append(repetition)
    contradictions = [(slow, fast) for slow, fast in seen if slow < fast and (fast, slow) in seen]
    for slow, fast in contradictions:
        print(f"{slow} slower than {fast} in runs {seen[slow, fast]}, faster in {seen[fast, slow]}")
    print(f"{len(too_few)} of {arguments.count} runs with fewer than {LEAST_WITHIN} within; "
          f"{len(contradictions)} of {len({frozenset(pair) for pair in seen})} conclusions contradicted")
    sys.exit(1 if too_few or contradictions else 0)


if __name__ == "__main__":
    main()
