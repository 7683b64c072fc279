"""Sound files of every format that the program reads, most of them written by itself, and the commands that read them."""

import gzip
import sqlite3
import subprocess
from pathlib import Path

QUESTION = ["--pp", "2,4", "-m", "4", "--schedules", "1f1b,gpipe,zb-h1", "--threads", "1"]
EXPORTS = [("--trace", "o.json"), ("--perfetto", "o.pftrace"), ("--html", "o.html"), ("--svg", "o.svg"), ("--dot", "o.dot"),
           ("--timeline", "o.csv"), ("--save", "o.save.json")]
MODES = ["fifo", "eager:2", "rendezvous", "host-rendezvous", "host-send", "batched"]
SIMULATE = [["--format", "json"], ["--format", "csv"], ["--recompute", "full"], ["--recompute", "selective", "--format", "json"],
            ["--offload", "0.5"], ["--fsdp"], ["--network", "bytes=1MiB,link=100"], ["--jitter", "5%", "--seeds", "20"],
            ["--length-jitter", "10%", "--seeds", "20", "--format", "json"], ["--sensitivity"], ["--slow", "rank=1,factor=2"],
            ["--inject", "rank=0,delay=7ms"], ["--inject", "rank=0,slow=1e9"], ["--straggler", "probability=0.1,factor=3"],
            ["--optimizer", "barrier", "--grad-reduction", "overlap", "--optimizer-step", "1", "--reduce-grad", "1"],
            ["--optimizer", "local", "--norm", "1"], ["--overlap", "fused"], ["--overlap", "atomic"], ["--lowering", "deferred"],
            ["--cap", "3"], ["--release", "half"], ["--p2p", "8600000s"], ["--f", "8500000s", "--format", "json"],
            ["--fail-if", "bubble_ratio>0.1"], ["--all-ranks"], ["--layout-costs", "0,1,1,1"]]
FORMATS = ["native", "pytorch-csv", "pytorch-csv-comms", "dot", "chakra", "goal", "text", "deepspeed"]


def run(binary, words, folder):
    outcome = subprocess.run([binary, *words], cwd=folder, capture_output=True, timeout=120, check=False)
    if outcome.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(words)}: {outcome.stderr.decode()}")
    return outcome.stdout


def nsys_database(path):
    with sqlite3.connect(path) as database:
        database.executescript("""
            CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);
            CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, text TEXT, textId INTEGER, globalTid INTEGER);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, correlationId INTEGER, globalTid INTEGER);
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, correlationId INTEGER, globalPid INTEGER);""")
        for rank in range(2):
            thread = (rank + 1) << 24
            for at, op in enumerate(["F0", "F1", "B0", "B1"]):
                begin = 1000 * at + 500 * rank
                number = 10 * rank + at
                database.execute("INSERT INTO StringIds VALUES(?, ?)", (number, f"PP:{rank}{op}"))
                database.execute("INSERT INTO NVTX_EVENTS VALUES(?, ?, NULL, ?, ?)", (begin, begin + 90, number, thread + 1))
                database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(?, ?, ?)", (begin + 5, number, thread + 1))
                database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(?, ?, ?, ?)",
                                 (begin + 50, begin + 400, number, thread))
    database.close()


def megatron_database(path):
    """1F1B of two ranks and two micro-batches, with names of messages only."""
    module = "megatron.core.pipeline_parallel.p2p_communication."
    orders = [["recv_forward", "F", "send_forward", "recv_forward", "F", "send_forward_recv_backward", "B", "send_backward",
               "recv_backward", "B", "send_backward"],
              ["recv_forward", "F", "send_forward_recv_backward", "B", "send_backward_recv_forward", "F",
               "send_forward_recv_backward", "B", "send_backward"]]
    with sqlite3.connect(path) as database:
        database.executescript("""
            CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);
            CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, textId INTEGER, globalTid INTEGER);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, correlationId INTEGER, globalTid INTEGER, nameId INTEGER);
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, correlationId INTEGER, globalPid INTEGER,
                                                    shortName INTEGER);
            CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs INTEGER);
            INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES(1750000000000000000);
            INSERT INTO StringIds VALUES(1, 'cudaLaunchKernel_v7000');
            INSERT INTO StringIds VALUES(2, 'gemm');""")
        for rank, order in enumerate(orders):
            thread = (rank + 1) << 24
            for at, name in enumerate(order):
                begin = 100000 * at + 100000 * rank
                number = 10 + 100 * rank + at
                if name in "FB":
                    database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(?, ?, ?, 1)", (begin + 5, number, thread + 2))
                    database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(?, ?, ?, ?, 2)",
                                     (begin + 50, begin + 90000, number, thread))
                else:
                    database.execute("INSERT INTO StringIds VALUES(?, ?)", (number, module + name))
                    database.execute("INSERT INTO NVTX_EVENTS VALUES(?, ?, 59, ?, ?)", (begin, begin + 99000, number, thread + 1))
    database.close()


RULES = b"""{"format": "bubblescope-rules/1", "rules": [
  {"match": "(F|B)(\\\\d+) of (\\\\d+)", "kind": "$1", "microbatch": "$2-1", "stage": "$3"},
  {"match": "step (.*)", "kind": "step", "step": "$1"}, {"match": "x+", "kind": "ignore"}]}"""
LARGE_STAGE = (b'{"forward": 1, "backward": 2, "input_grad": 1, "weight_grad": 1, "weight_bytes": 576460752303423488,'
               b'"activation_bytes": {"saved": 576460752303423488, "released_by_input_grad": 288230376151711744}}')
LARGE = b'{"format": "bubblescope-costs/1", "stages": [' + LARGE_STAGE + b", " + LARGE_STAGE + b"]}"
LOG = b""" iteration 10/ 100 | elapsed time per iteration (ms): 1000.0 | learning rate: 1.0E-04 |
(min, max) time across ranks (ms):
    forward-compute ................................: (200.00, 260.00)
    backward-compute ...............................: (400.00, 520.00)
times across ranks (ms):
  forward-recv:
     rank  0: 0.10
     rank  1: 3.10
[Rank 0] time (ms) | fwd: 3859.30 | bwd: 11267.97 | step: 829.19
"""


SHAPE = ["--pp", "2", "-m", "4"]
MODEL = ["--model", "llama3-8b", "--gpu", "h100", "--tp", "2"]
COPIES = ["--replicas", "2,2", "--lose", "rank=1,at=3ms"]
# (words before, flag, value): values of flags are texts like files, with grammars of their own. Numbers of micro-batches
# are left out: 16 million of them may take more than the memory of a mutant.
FLAGS = [(["simulate", "1f1b", *SHAPE], flag, value) for flag, value in (
    ("--inject", "rank=0,op=0F1,delay=7ms"), ("--inject", "rank=1,slow=2.5"), ("--slow", "rank=1,factor=1.5"), ("--f", "1.5ms"),
    ("--straggler", "probability=0.1,factor=3,of=rank"), ("--network", "bytes=1MiB,link=100,per-node=2,between=25,nic=50,ranks-per-nic=2"),
    ("--mem", "1.5,-0.5,-1"), ("--cap", "3,2"), ("--cap", "70GiB"), ("--recompute", "none,full"), ("--offload", "0.5,2"),
    ("--saved-fraction", "0.1,0.3"), ("--jitter", "5%"), ("--send-budget", "3"), ("--layout", "Et*2|tttmL"), ("--p2p", "0.4"),
    ("--fail-if", "bubble_ratio>0.1"), ("--p2p-mode", "eager:3"), ("--output-layer", "2us"), ("--optimizer-step", "3ms"))]
FLAGS += [(["simulate", "1f1b", *SHAPE, *MODEL], flag, value) for flag, value in (
    ("--seq-length", "4096"), ("--layout", "Et*16|t*16L"), ("--assume", "launch=2us"), ("--reserve-memory", "2GiB"), ("--slowdown", "1.5"),
    ("--micro-batch-size", "2"), ("--dp", "4"), ("--step-jitter", "3%"), ("--ep", "2"), ("--cp", "2"))]
FLAGS += [(["simulate", "1f1b", *SHAPE, "--replicas", "2,2"], "--lose", "rank=1,at=3ms,detect=1ms"),
          (["simulate", "1f1b", *SHAPE, *COPIES[2:]], "--replicas", "2,2"),
          (["plan", "--schedules", "1f1b", "--threads", "1", "-m", "4"], "--pp", "2..4,8"),
          (["plan", *SHAPE, "--threads", "1"], "--schedules", "1f1b,zb-h1,interleaved"),
          (["plan", *SHAPE, "--threads", "1", "--schedules", "1f1b", "--resume", "o.journal"], "--shard", "1/2"),
          (["search", *SHAPE, "--time-limit", "1s"], "--cap", "2.5"), (["check", "1f1b", *SHAPE], "--p2p-mode", "eager:2"),
          (["convert", "1f1b", *SHAPE, "--to", "goal"], "--f", "1.5ms")]


def exporting(words):
    return [words + [flag, name] for flag, name in EXPORTS]


def schedule_commands(name):
    commands = [["check", name], ["check", name, "--format", "json"], ["analyze", name], ["diff", name, name]]
    commands += [["simulate", name, *more] for more in SIMULATE] + [["simulate", name, "--p2p-mode", mode] for mode in MODES]
    commands += [["convert", name, "--to", form] for form in FORMATS] + [["convert", name, "--to", "chakra", "-o", "o.et"]]
    return commands + exporting(["simulate", name]) + [["compare", name, name], ["compare", name, name, "--format", "json"]]


def trace_commands(name):
    commands = [["analyze", name, *more] for more in ([], ["--format", "json"], ["--format", "csv"], ["--cap", "2"])]
    return commands + exporting(["analyze", name]) + [["diff", name, name], ["check", name], ["simulate", name]]


def rules_commands(name):
    """The rules are read first; then the same file is refused as a trace."""
    return [["analyze", name, "--rules", name]]


def log_commands(name):
    return [["analyze", name, *more] for more in ([], ["--format", "json"], ["--format", "csv"])]


def costs_commands(name):
    shape = ["--pp", "2", "-m", "4", "--costs", name]
    commands = [["simulate", "1f1b", *shape, *more] for more in SIMULATE] + exporting(["simulate", "1f1b", *shape])
    commands += [["plan", *shape, "--schedules", "1f1b,gpipe", "--threads", "1", "--format", form] for form in ("json", "csv")]
    commands += [["convert", "1f1b", *shape, "--to", form] for form in ("goal", "chakra", "dot")]
    return commands + [["partition", name, "--stages", "2"], ["compare", "1f1b,zb-h1", *shape], ["search", *shape, "--time-limit", "1s"]]


def profile_commands(name):
    return [["partition", name, *more] for more in (
        ["--stages", "2"], ["--stages", "2", "--format", "json"], ["--workers", "4", "--bandwidth", "1GB/s", "--format", "json"],
        ["--workers", "4", "--straight"], ["--stages", "2", "--method", "blocks"], ["--stages", "2", "--method", "megatron"],
        ["--stages", "2", "--memory", "16GB", "-o", "o.json"], ["--workers", "4", "--levels", "2x2"], ["--stages", "3", "--format", "csv"],
        ["--stages", "2", "--repeat-layers", "10000"])]


def model_commands(name):
    shape = ["--pp", "2", "-m", "4", "--model", name, "--format", "json"]
    return [["simulate", "1f1b", *shape], ["simulate", "zb-h1", *shape, "--tp", "2", "--recompute", "full"],
            ["plan", "--model", name, "--gpus", "8", "--global-batch-size", "16", "--schedules", "1f1b", "--threads", "1",
             "--format", "json"], ["simulate", "1f1b", *shape, "--explain"]]


def device_commands(name):
    shape = ["--pp", "2", "-m", "4", "--model", "llama3-8b", "--gpu", name]
    return [["simulate", "1f1b", *shape, "--format", "json"], ["simulate", "gpipe", *shape, "--tp", "4", "--dp", "2"]]


def workload_commands(name):
    return [["check", name, *more] for more in ([], ["--format", "json"], ["--all-modes"], ["--p2p-mode", "rendezvous"])]


def journal_commands(name):
    return [["plan", "--merge", name, "--threads", "1"], ["plan", "--merge", name, "--threads", "1", "--format", "json"],
            ["plan", *QUESTION, "--merge", name, "--format", "csv"], ["plan", *QUESTION, "--resume", name]]


def lengths_commands(name):
    words = ["simulate", "1f1b", "--pp", "2", *MODEL, "--lengths", name]
    return [words, [*words, "--format", "json"], [*words, "-m", "4", "--recompute", "full"], [*words, "--svg", "o.svg"],
            ["compare", "1f1b,zb-h1", *words[2:]]]


def arrivals_commands(name):
    words = ["simulate", "forward-only", "--pp", "2", "--arrivals", name]
    policies = [[*words, "--policy", policy, "--format", "json"] for policy in ("fixed", "ready", "ready:backward", "ready:path")]
    return [words, ["compare", "1f1b,gpipe", *words[2:]], ["simulate", "zb-h1", *words[2:], "-m", "4"], *policies, *exporting(words)]


def report_commands(name):
    return [["diff", name, name, *more] for more in ([], ["--format", "json"], ["--fail-if", "makespan_ns>1"])]


KINDS = {"schedule": schedule_commands, "trace": trace_commands, "costs": costs_commands, "profile": profile_commands,
         "model": model_commands, "gpu": device_commands, "journal": journal_commands, "rules": rules_commands, "log": log_commands,
         "workload": workload_commands, "lengths": lengths_commands, "arrivals": arrivals_commands, "report": report_commands}


def make_seeds(binary, folder, corpus):
    """[(kind, file name, content)]: files of every format."""
    seeds = []

    def keep(kind, name, content):
        seeds.append((kind, name, content))

    for schedule, shape in (("1f1b", ["--pp", "2", "-m", "4"]), ("zb-h1", ["--pp", "3", "-m", "3"]),
                            ("dualpipev", ["--pp", "2", "-m", "4"]), ("interleaved", ["--pp", "2", "--vpp", "2", "-m", "4"])):
        for form, ending in (("native", "json"), ("pytorch-csv", "csv"), ("pytorch-csv-comms", "csv"), ("text", "txt")):
            keep("schedule", f"{schedule}.{ending}", run(binary, ["convert", schedule, *shape, "--to", form], folder))
    keep("schedule", "1f1b.ds.txt", run(binary, ["convert", "1f1b", "--pp", "2", "-m", "3", "--to", "deepspeed"], folder))
    run(binary, ["simulate", "zb-h1", "--pp", "2", "-m", "3", "--p2p", "0.5", "--save", "s.json", "--trace", "t.json", "--timeline", "t.csv"],
        folder)
    for name in ("s.json", "t.json", "t.csv"):
        keep("trace", name, (folder / name).read_bytes())
    keep("trace", "t.json.gz", gzip.compress((folder / "t.json").read_bytes(), mtime=0))
    nsys_database(folder / "n.sqlite")
    keep("trace", "n.sqlite", (folder / "n.sqlite").read_bytes())
    megatron_database(folder / "megatron.sqlite")
    keep("trace", "megatron.sqlite", (folder / "megatron.sqlite").read_bytes())
    keep("workload", "w.goal", run(binary, ["convert", "1f1b", "--pp", "2", "-m", "2", "--to", "goal"], folder))
    run(binary, ["convert", "gpipe", "--pp", "1", "-m", "2", "--to", "chakra", "-o", "w"], folder)
    keep("workload", "w.0.et", (folder / "w.0.et").read_bytes())
    keep("workload", "one.goal", run(binary, ["convert", "zb-h1", *SHAPE, "--to", "goal-one-cpu"], folder))
    for name in ("lengths.txt", "lengths.json", "arrivals.txt", "arrivals.json"):
        numbers = b"512 1024 4096 1536  # tokens" if name[0] == "l" else b"0 1.5ms, 4 9us  # from the step's start"
        keep(name.split(".")[0], name, b"[512, 1024, 2048, 9]" if name.endswith("json") else numbers)
    report = run(binary, ["simulate", "zb-h1", *SHAPE, "--format", "json"], folder)
    keep("report", "report.json", report)
    keep("costs", "large.json", LARGE)
    keep("rules", "rules.json", RULES)
    keep("log", "train.log", LOG)
    run(binary, ["plan", *QUESTION, "--resume", "p.journal"], folder)
    keep("journal", "p.journal", (folder / "p.journal").read_bytes())
    keep("model", "m.json", b'{"hidden_size": 1024, "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 4,'
         b'"intermediate_size": 4096, "hidden_act": "silu", "vocab_size": 32000, "max_position_embeddings": 2048,'
         b'"tie_word_embeddings": false, "num_local_experts": 4, "num_experts_per_tok": 2}')
    keep("gpu", "g.json", b'{"like": "a100", "reachable_teraflops": 250, "per_node": 16,'
         b'"between_nodes": {"latency": "5us", "gigabytes_per_second": 50}}')
    for at, (_, _, value) in enumerate(FLAGS):
        keep("flag", f"{at}", value.encode())
    kinds = {"costs.json": "costs", "schedule.json": "schedule", "messages.json": "schedule", "weights.json": "schedule"}
    for part, kind in (("model_profile", "profile"), ("native_json", "trace"), ("pytorch_csv", "schedule"), ("trace", "trace")):
        for file in sorted(Path(corpus, part).iterdir()):
            own = kinds.get(file.name, kind) if part == "native_json" else kind
            keep(own, f"{part}-{file.name}", file.read_bytes())
    return seeds
