#!/usr/bin/env python3
"""Runs the CUDA module, on a CUDA runtime made of threads, through the program.

  run_module.py PROGRAM MODULE work       schedules and options: they train as the host does, and leave nothing behind
  run_module.py PROGRAM MODULE failures   every call fails in turn: the program ends with status 3 and names the call

What CUDA forbids, the runtime refuses by ending the process; what is never released, by the exit status 98.
"""
import os
import subprocess
import sys
import tempfile

MODEL = ["--work", "transformer", "--hidden-size", "16", "--num-attention-heads", "2", "--seq-length", "4",
         "--vocab-size", "29", "--warmup", "1", "--steps", "2"]
SPIN = ["--work", "spin", "--f", "200us", "--b", "400us", "--warmup", "2", "--steps", "1"]
HALVES = [*MODEL, "--precision", "bf16"]
LIMIT = 100  # seconds after which a run counts as hanging

# Name, arguments, settings of the runtime. All of them train and are proven unless they spin or sleep.
RUNS = [
    ("green contexts", ["1f1b", "--pp", "2", "-m", "4", *MODEL], {}),
    ("green contexts, bf16", ["zb-h1", "--pp", "2", "-m", "4", *HALVES], {}),
    ("streams", ["zb-h1", "--pp", "2", "-m", "4", "--share", "streams", *MODEL], {}),
    ("a graph", ["zb-v", "--pp", "2", "-m", "4", "--graph", *MODEL], {}),
    ("a graph, bf16", ["1f1b", "--pp", "2", "-m", "4", "--graph", *HALVES], {}),
    ("a graph on streams of the whole device",
     ["1f1b", "--pp", "2", "-m", "4", "--graph", "--share", "streams", *MODEL], {}),
    ("a device per rank", ["1f1b", "--pp", "2", "-m", "4", *MODEL], {"DEVICES": "2"}),
    ("two ranks on each of two devices, a graph",
     ["zb-h1", "--pp", "4", "-m", "4", "--graph", *MODEL], {"DEVICES": "2"}),
    ("two directions", ["dualpipe", "--pp", "2", "-m", "4", *MODEL], {}),
    ("slices", ["seq1f1b", "--slices", "2", "--pp", "2", "-m", "2", *MODEL], {}),
    ("versions of weights", ["pipedream", "--pp", "2", "-m", "4", *MODEL], {}),
    ("versions of weights, bf16", ["pipedream-2bw", "--pp", "2", "-m", "4", *HALVES], {}),
    ("activations at a neighbour", ["bpipe", "--pp", "4", "-m", "6", *MODEL], {"DEVICES": "2"}),
    ("activations at the host", ["1f1b", "--offload", "1", "--pp", "2", "-m", "4", *MODEL], {}),
    ("activations at the host, a graph", ["1f1b", "--offload", "1", "--graph", "--pp", "2", "-m", "4", *MODEL], {}),
    ("flash attention", ["zb-h1", "--attention", "flash", "--pp", "2", "-m", "4", *MODEL], {}),
    ("flash attention, bf16", ["1f1b", "--attention", "flash", "--pp", "2", "-m", "4", *HALVES], {}),
    ("fused epilogues", ["1f1b", "--epilogue", "fused", "--pp", "2", "-m", "4", *MODEL], {}),
    ("recomputation", ["1f1b", "--recompute", "full", "--pp", "2", "-m", "4", *MODEL], {}),
    ("recomputed attention", ["1f1b", "--recompute", "selective", "--pp", "2", "-m", "4", *MODEL], {}),
    ("a delay", ["1f1b", "--inject", "rank=1,op=1F1,delay=5ms", "--pp", "2", "-m", "4", *MODEL], {}),
    ("spinning", ["1f1b", "--pp", "2", "-m", "4", *SPIN], {}),
    ("spinning in a graph", ["1f1b", "--pp", "2", "-m", "4", "--graph", *SPIN], {}),
    ("sleeping", ["1f1b", "--pp", "2", "-m", "4", "--work", "sleep", *SPIN[2:]], {}),
]
# Name, arguments, what the message says: these end with status 3, and leave nothing behind either.
BREAKDOWNS = [
    ("a death", ["1f1b", "--pp", "2", "-m", "4", "--inject", "rank=1,op=1F1,die", *SPIN], "rank 1 died at 1F1"),
    ("a hang", ["1f1b", "--pp", "2", "-m", "4", "--inject", "rank=1,op=1F1,hang", "--timeout", "1s", *SPIN],
     "no progress within --timeout: rank 1 at 1F1"),
    ("a death in training", ["1f1b", "--pp", "2", "-m", "4", "--inject", "rank=1,op=1F1,die", *MODEL],
     "rank 1 died at 1F1"),
]
SEEDS = ("1", "2")  # orders in which the device takes what nothing holds back

# Messages that do not name the call itself, but what was asked for. What breaks on the device is told by any call.
WORDS = {"cudaMalloc": "no room", "cudaHostAlloc": "room", "cudaLaunchKernel": "the launch of",
         "cudaGetLastError": "the launch of", "task": "cuda"}
# Which run makes which calls; each of its calls fails once at its first and once at its last time.
FAILING = [
    ("spinning in a graph", ["1f1b", "--pp", "2", "-m", "2", "--graph", *SPIN], {}),
    ("training", ["1f1b", "--pp", "2", "-m", "2", "--no-proof", "--offload", "1", *MODEL], {}),
    ("two devices", ["1f1b", "--pp", "2", "-m", "2", *SPIN], {"DEVICES": "2"}),
]
RELEASES = ("Free", "Destroy")  # what fails then is tried, and nobody can do more


def run(program, module, arguments, settings):
    environment = {**os.environ, "BUBBLESCOPE_CUDA_MODULE": module,
                   **{f"BUBBLESCOPE_FAKE_CUDA_{name}": value for name, value in settings.items()}}
    try:
        return subprocess.run([program, "run", *arguments, "--backend", "cuda"], env=environment, text=True,
                              capture_output=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess([], -1, "", f"it hangs: no end after {LIMIT} s")


def report(name, arguments, settings, problem, end):
    print(f"{name}: {problem}\n  {settings} bubblescope run {' '.join(arguments)} --backend cuda\n"
          f"  status {end.returncode}\n{end.stderr}")
    return 1


def try_work(program, module):
    faults = 0
    for name, arguments, settings in RUNS:
        for seed in SEEDS if "transformer" in arguments else SEEDS[:1]:
            end = run(program, module, arguments, {**settings, "SEED": seed})
            if end.returncode != 0 or "fake CUDA" in end.stderr:
                faults += report(name, arguments, {**settings, "SEED": seed}, "fails", end)
            elif "transformer" in arguments and "equal the serial reference" not in end.stdout:
                faults += report(name, arguments, settings, "is not proven", end)
    for name, arguments, message in BREAKDOWNS:
        end = run(program, module, arguments, {})
        if end.returncode != 3 or "fake CUDA" in end.stderr or message not in end.stderr:
            faults += report(name, arguments, {}, f"does not end as it should, with '{message}'", end)
    return faults


def count_calls(program, module, arguments, settings):
    """How often a run makes each call."""
    with tempfile.NamedTemporaryFile(mode="r") as file:
        end = run(program, module, arguments, {**settings, "CALLS": file.name})
        if end.returncode != 0:
            report("a run without failures", arguments, settings, "fails", end)
            return {}
        return {name: int(count) for name, count in (line.split() for line in file)}


def judge(call, end):
    """What is wrong with the end of a run in which a call failed; None: nothing."""
    if "fake CUDA:" in end.stderr:
        return "misuses CUDA, or leaves something behind"
    if any(word in call for word in RELEASES) and end.returncode == 0:
        return None
    if call == "cudaGetLastError" and end.returncode == 0:
        return None  # it was one that forgets an error
    if end.returncode != 3:
        return "does not end with status 3"
    named = call in end.stderr or WORDS.get(call, call) in end.stderr
    return None if named else "does not name the call"


def try_failures(program, module):
    faults = 0
    seen = set()
    for name, arguments, settings in FAILING:
        calls = count_calls(program, module, arguments, settings)
        faults += not calls
        for call, count in calls.items():
            if call in seen:
                continue
            seen.add(call)
            if call == "cudaEventQuery":
                count = 2  # more of them are a matter of speed
            for number in sorted({1, (count + 1) // 2, count}):
                fail = {**settings, "FAIL": f"{call}:{number}"}
                end = run(program, module, arguments, fail)
                if problem := judge(call, end):
                    faults += report(name, arguments, fail, problem, end)
    print(f"{len(seen)} calls failed")
    return faults


if __name__ == "__main__":
    kinds = {"work": try_work, "failures": try_failures}
    sys.exit(1 if kinds[sys.argv[3]](sys.argv[1], sys.argv[2]) else 0)
