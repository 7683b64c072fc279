#!/usr/bin/env python3
"""Runs the CUDA module, on a CUDA runtime made of threads, through the program.

  run_module.py PROGRAM MODULE work       schedules and options: they train as the host does, and leave nothing behind
  run_module.py PROGRAM MODULE checkpoints   a training that is resumed ends as one that ran through, bit for bit
  run_module.py PROGRAM MODULE activity   CUPTI's records: what ran in every op, and nothing of CUPTI unless it is asked for
  run_module.py PROGRAM MODULE failures   every call fails in turn: the program ends with status 3 and names the call

What CUDA forbids, the runtime refuses by ending the process; what is never released, by the exit status 98.
"""
import csv
import json
import os
import subprocess
import sys
import tempfile

MODEL = ["--work", "transformer", "--hidden-size", "16", "--num-attention-heads", "2", "--seq-length", "4",
         "--vocab-size", "29", "--warmup", "1", "--steps", "2"]
SPIN = ["--work", "spin", "--f", "200us", "--b", "400us", "--warmup", "2", "--steps", "1"]
CALIBRATE = ["calibrate", "--gpu", "h100", "--seconds", "0.05"]
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
    ("a device's GEMMs and copies", CALIBRATE, {}),
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
WORDS = {"cudaMalloc": "out of memory", "cudaHostAlloc": "pinned memory", "cudaLaunchKernel": "the launch of",
         "cudaGetLastError": "the launch of", "task": "cuda"}
ACTIVITY = os.path.join(tempfile.gettempdir(), f"activity-{os.getpid()}.csv")
# Runs that together make all calls; each of their calls fails once at its first and once at its last time.
FAILING = [
    ("spinning in a graph", ["1f1b", "--pp", "2", "-m", "2", "--graph", *SPIN], {}),
    ("training", ["1f1b", "--pp", "2", "-m", "2", "--no-verify", "--offload", "1", *MODEL], {}),
    ("two devices", ["1f1b", "--pp", "2", "-m", "2", *SPIN], {"DEVICES": "2"}),
    ("a device's GEMMs and copies", CALIBRATE, {}),
    ("activity records", ["1f1b", "--pp", "2", "-m", "2", *SPIN, "--activity", ACTIVITY], {}),
]
RELEASES = ("Free", "Destroy")  # what fails then is tried, and nobody can do more


def run(program, module, arguments, settings, command="run"):
    environment = {**os.environ, "BUBBLESCOPE_CUDA_MODULE": module,
                   **{f"BUBBLESCOPE_FAKE_CUDA_{name}": value for name, value in settings.items()}}
    try:
        verb = [] if arguments[0] == "calibrate" else [command]
        return subprocess.run([program, *verb, *arguments, "--backend", "cuda"], env=environment, text=True,
                              capture_output=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess([], -1, "", f"it hangs: no end after {LIMIT} s")


def run_together(program, module, graph, settings=None):
    """Three schedules that exist on the device at once, and take turns."""
    stage = {"forward": 1, "backward": 2, "input_grad": 1, "weight_grad": 1}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as costs:
        json.dump({"format": "bubblescope-costs/1", "stages": [stage, stage]}, costs)
        costs.flush()
        arguments = ["gpipe,1f1b,zb-h1", "--pp", "2", "-m", "4", *MODEL, *graph, "--costs", costs.name]
        return run(program, module, arguments, settings or {}, "compare")


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
    for graph in ([], ["--graph"]):
        end = run_together(program, module, graph)
        if end.returncode != 0 or "fake CUDA" in end.stderr or end.stdout.count("equal the serial reference") != 3:
            faults += report("three schedules that alternate", graph, {}, "fails", end)
        if "cannot hold all schedules at once" in end.stderr:
            faults += report("three schedules that alternate", graph, {}, "do not alternate", end)
    for name, arguments, message in BREAKDOWNS:
        end = run(program, module, arguments, {})
        if end.returncode != 3 or "fake CUDA" in end.stderr or message not in end.stderr:
            faults += report(name, arguments, {}, f"does not end as it should, with '{message}'", end)
    return faults


TRAINED = MODEL[:-2]  # without the number of steps
RESUMED = [
    ["1f1b", *TRAINED, "--training-optimizer", "adam", "--graph"],
    ["zb-h1", *TRAINED, "--precision", "bf16", "--training-optimizer", "adam"],
    ["pipedream-2bw", *TRAINED, "--precision", "bf16", "--graph"],
    ["dualpipe", *TRAINED, "--precision", "bf16", "--attention", "flash"],
]


def try_checkpoints(program, module):
    """A run of five steps, and one of three whose checkpoint another process resumes. The device takes tasks in another
    order each time, which must not change a bit."""
    faults = 0
    for arguments in RESUMED:
        ends = []
        with tempfile.TemporaryDirectory() as folder:
            save = ["--checkpoint", folder, "--every", "2"]
            for seed, extra in enumerate((["--steps", "4"], ["--steps", "2", *save], ["--steps", "4", *save, "--resume"])):
                words = [*arguments, "--pp", "2", "-m", "4", *extra, "--format", "json"]
                end = run(program, module, words, {"SEED": str(seed)})
                if end.returncode != 0 or "fake CUDA" in end.stderr:
                    return faults + report("a checkpoint", arguments, {}, "fails", end)
                ends.append(end)
        results = [json.loads(end.stdout)["training"] for end in ends]
        if results[0] != results[2] or "resumes after step 2" not in ends[2].stderr:
            faults += report("a resumed training", arguments, {}, f"ends as {results[2]}, not as {results[0]}", ends[2])
    return faults


def read_activity(program, module, arguments, settings):
    """The lines of a run's file, and what the run said; exits where it fails."""
    end = run(program, module, [*arguments, "--activity", ACTIVITY], settings)
    if end.returncode != 0 or "fake CUDA" in end.stderr:
        sys.exit(report("records of a run", arguments, settings, "fails", end))
    with open(ACTIVITY, newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    os.remove(ACTIVITY)
    return lines, end.stdout


def expect(holds, what):
    if not holds:
        sys.exit(f"activity: {what}")


def try_activity(program, module):
    """Spinning, an op is one kernel of the length that is asked for; training, all of its launches."""
    if not os.path.exists(os.path.join(os.path.dirname(module), "libcupti.so.13")):
        print("skipped: this build has no CUPTI")
        return 0
    lines, text = read_activity(program, module, ["1f1b", "--pp", "2", "-m", "4", *SPIN], {})
    ops = {line["op"]: line for line in lines}
    expect(len(lines) == len(ops) == 16, f"{len(lines)} kernels of {len(ops)} ops, and not one of each of 16")
    for op, line in ops.items():
        length = int(line["end_ns"]) - int(line["start_ns"])
        expect(line["name"] == "spin_kernel" and length == (200_000 if "F" in op else 400_000), line)
        expect(abs(int(line["start_ns"]) - int(line["op_start_ns"])) < 1000, line)  # float32 milliseconds of events
    expect("16 kernels, 0 copies, 0 memory sets; their ops take 4.8 ms, 0.0 %" in text, text)

    lines, text = read_activity(program, module, ["zb-h1", "--pp", "2", "-m", "4", *MODEL], {"DEVICES": "2"})
    copies = [line for line in lines if line["kind"] == "copy"]
    expect(len(copies) == 8, f"{len(copies)} copies, and not 4 forwards and 4 backwards")
    # A micro-batch is 4 tokens of 16 float32 numbers.
    expect(all(line["bytes"] == str(4 * 16 * 4) and "SEND" in line["op"] for line in copies), copies)
    expect({line["device"] for line in lines} == {"0", "1"}, "ranks are on two devices")
    expect(all(line["device"] == line["rank"] for line in lines if line["kind"] == "kernel"), "each on its own")
    for op in ("0F0", "1F3", "0I2", "1W1"):
        names = [line["name"] for line in lines if line["op"] == op]
        expect("cublasLtMatmul" in names and len(names) > 5, f"{op}: {names}")
    expect(len({line["op"] for line in lines}) == 2 * 4 * 3 + 8, "every op launches something")

    _, text = read_activity(program, module, ["1f1b", "--pp", "2", "-m", "4", *SPIN], {"CUPTI_DROPS": "1"})
    expect("incomplete: records lost: 1" in text, text)
    calls = count_calls(program, module, ["1f1b", "--pp", "2", "-m", "4", *SPIN], {})
    expect(calls and not [name for name in calls if name.startswith("cupti")], "CUPTI is touched unasked")
    return 0


def count_calls(program, module, arguments, settings):
    """How often a run makes each call."""
    with tempfile.NamedTemporaryFile(mode="r") as file:
        end = run(program, module, arguments, {**settings, "CALLS": file.name})
        if end.returncode != 0:
            report("a run without failures", arguments, settings, "fails", end)
            return {}
        return {name: int(count) for name, count in (line.split() for line in file)}


def judge(call, end):
    """Says what is wrong with the end of a run in which a call failed; None: nothing."""
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


GRAPH_CALLS = ("cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiate", "cudaGraphLaunch")


def try_without_graph(program, module):
    """A training whose steps cannot become graphs fails, and says how to run without."""
    faults = 0
    one = ["1f1b", "--pp", "2", "-m", "2", *MODEL, "--graph"]
    for call in GRAPH_CALLS:
        fail = {"FAIL": f"{call}:1"}
        end = run(program, module, one, fail)
        if (end.returncode != 3 or "fake CUDA:" in end.stderr or call not in end.stderr
                or "omit --graph" not in end.stderr):
            faults += report("a graph that fails", one, fail, "does not fail as it should", end)
    return faults


def try_failures(program, module):
    faults = try_without_graph(program, module)
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
    kinds = {"work": try_work, "checkpoints": try_checkpoints, "activity": try_activity, "failures": try_failures}
    faults = kinds[sys.argv[3]](sys.argv[1], sys.argv[2])
    if os.path.exists(ACTIVITY):
        os.remove(ACTIVITY)
    sys.exit(1 if faults else 0)
