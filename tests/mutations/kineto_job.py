"""Kineto files with known truth, written as PyTorch's profiler writes them.

A job is a simulated step, repeated: processes as ranks, host operators and gradient functions with running numbers and
flows, receives that wait inside of annotations, and on GPUs launches with the kernels that they lead to. `Job.ranks` is
a list of files, as json loads them.
"""
import csv
import subprocess

LEAD = 20_000  # ns from the start of an op to its first operator
STEPS = 2


def simulate(program, schedule, shape, folder):
    """The ops of one step as (rank, name, kind, stage, microbatch, start, end), and its makespan and bubble."""
    path = f"{folder}/times.csv"
    subprocess.run([program, "simulate", schedule, *shape, "--timeline", path], check=True, capture_output=True)
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    ops = [(int(row["rank"]), row["op"], row["kind"], int(row["stage"]), int(row["microbatch"]), int(row["start_ns"]),
            int(row["end_ns"])) for row in rows if row["kind"] in "FBIW"]
    makespan = max(op[6] for op in ops) - min(op[5] for op in ops)
    ranks = 1 + max(op[0] for op in ops)
    return ops, makespan, 1 - sum(op[6] - op[5] for op in ops) / ranks / makespan


class RankWriter:
    """The events of one rank. Times are ns; the file has microseconds."""

    def __init__(self, rank, ranks, style):
        self.rank, self.ranks, self.style = rank, ranks, style
        self.events, self.pending, self.flow, self.correlation = [], [], 0, 1
        self.main, self.engine = 1000 + rank, 5000 + rank

    def add(self, category, name, start, end, thread=None, **args):
        self.pending.append((start, end, category, name, thread or self.main, args))

    def annotate(self, name, start, end):
        if self.style["annotated"]:
            self.add("user_annotation", name, start, end)

    def launch(self, name, kernel, call, start, end, thread, stream=7):
        """A kernel on the device, with the call that launches it."""
        self.correlation += 1
        self.add("cpu_op", name, call - 1_000, call + 6_000, thread)
        self.events.append(self.slice("cuda_runtime", "cudaLaunchKernel", call, call + 4_000, thread,
                                      {"correlation": self.correlation, "External id": self.correlation}))
        self.events.append(self.slice("kernel", kernel, start, end, stream,
                                      {"correlation": self.correlation, "stream": stream}, 0))

    @staticmethod
    def slice(category, name, start, end, thread, args, process=None):
        return {"ph": "X", "cat": category, "name": name, "pid": thread if process is None else process, "tid": thread,
                "ts": start / 1000, "dur": (end - start) / 1000, "args": args}

    def finish(self):
        """Numbers the host's events by start, outer ones first, as the profiler does."""
        first = min(event[0] for event in self.pending)
        self.pending.append((first - 50_000, max(event[1] for event in self.pending) + 50_000, "Trace",
                             "PyTorch Profiler (0)", self.main, {}))
        for index, (start, end, category, name, thread, args) in enumerate(
                sorted(self.pending, key=lambda event: (event[0], -event[1]))):
            if self.style["numbered"]:
                args = {"External id": index, "Ev Idx": index, **args}
            self.events.append(self.slice(category, name, start, end, thread, args))
        self.events.append({"ph": "M", "name": "thread_name", "pid": self.main, "tid": self.main, "ts": 0,
                            "args": {"name": f"thread {self.main} (python)"}})
        everyone = list(range(self.ranks))
        group = {"pg_name": "0", "pg_desc": "default_pg", "pg_size": self.ranks, "ranks": everyone}
        return {"schemaVersion": 1, "host_name": "host", "displayTimeUnit": "ms", "baseTimeNanoseconds": 0,
                "distributedInfo": {"backend": "nccl" if self.style["gpu"] else "gloo", "rank": self.rank,
                                    "world_size": self.ranks, "pg_count": 1, "pg_config": [group]},
                "traceEvents": self.events}

    def start_flow(self, at, thread):
        self.flow += 1
        self.events.append(self.flow_event("s", at, thread, self.flow))
        return self.flow

    @staticmethod
    def flow_event(phase, at, thread, number):
        event = {"ph": phase, "cat": "fwdbwd", "name": "fwdbwd", "id": number, "pid": thread, "tid": thread,
                 "ts": at / 1000}
        return {**event, "bp": "e"} if phase == "f" else event


class Step:
    """Writes one step of a rank: its ops in order, with what waits for messages."""

    def __init__(self, writer, ops, origin):
        self.writer, self.ops, self.origin = writer, sorted(ops, key=lambda op: op[5]), origin
        self.free = origin  # when the host has nothing to do
        self.flows = {}
        self.received = 0  # when the device has taken the last message

    def write(self, last_stage, peers):
        for op in self.ops:
            _, name, kind, stage, number, start, end = op
            start, end = self.origin + start, self.origin + end
            receives = (kind == "F" and stage > 0 and (stage - 1) not in peers) or (
                kind in "BI" and stage < last_stage and (stage + 1) not in peers)
            sends = (kind == "F" and stage < last_stage and (stage + 1) not in peers) or (
                kind in "BI" and stage > 0 and (stage - 1) not in peers)
            (self.write_on_gpu if self.writer.style["gpu"] else self.write_on_host)(
                name, kind, (stage, number), start, end, receives, sends)

    def write_on_host(self, name, kind, place, start, end, receives, sends):
        writer, posted = self.writer, self.free + 2_000
        if receives:
            writer.add("cpu_op", "aten::empty_strided", posted, posted + 400)
            writer.add("cpu_op", "c10d::recv_", posted + 500, posted + 900)
            writer.add("user_annotation", "gloo:recv", posted + 700, max(start, posted + 1_000))
            posted += 1_000
        writer.annotate(f"PP:{name}", min(posted, start), end)
        self.compute(kind, place, start + 3_000, end - 3_000, writer.main)
        if sends:
            writer.add("cpu_op", "c10d::send", end + 300, end + 700)
            writer.add("user_annotation", "gloo:send", end + 600, end + 5_000_000)
        self.free = end

    def compute(self, kind, place, start, end, thread):
        """Forwards create gradient functions, which the backward evaluates in reverse."""
        writer, third = self.writer, (end - start) // 3
        if kind == "F":
            self.flows[place] = []
            for at, part in enumerate(("aten::linear", "aten::relu", "aten::linear")):
                begin = start + at * third
                writer.add("cpu_op", part, begin, begin + third - 500, thread)
                writer.add("cpu_op", "aten::mm", begin + 100, begin + third - 600, thread)
                self.flows[place].append(writer.start_flow(begin, thread))
            return
        names = {"B": ["AddmmBackward0", "ReluBackward0", "AddmmBackward0"], "I": ["AddmmBackward0", "ReluBackward0"],
                 "W": ["AddmmBackward0"]}[kind]
        length = (end - start) // len(names)
        flows = self.flows[place]
        for at, part in enumerate(names):
            begin = start + at * length
            writer.add("cpu_op", f"autograd::engine::evaluate_function: {part}", begin, begin + length - 500, thread)
            writer.add("cpu_op", part, begin + 200, begin + length - 700, thread)
            writer.add("cpu_op", "aten::mm", begin + 400, begin + length - 900, thread)
            writer.events.append(writer.flow_event("f", begin + 200, thread, flows.pop() if flows else 0))

    def write_on_gpu(self, name, kind, place, start, end, receives, sends):
        """The host is ahead of the device by a third of a millisecond."""
        writer, host = self.writer, self.free + 5_000
        begin = host
        if receives:
            writer.add("cpu_op", "c10d::recv_", host, host + 9_000)
            writer.launch("record_param_comms", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", host + 1_500,
                          min(start, max(self.received, host + 3_000)), start,
                          writer.main, 20)
            begin = host = host + 12_000
        thread = writer.main if kind == "F" else writer.engine
        names = ["aten::linear", "aten::relu", "aten::linear"] if kind == "F" else ["AddmmBackward0"] * 3
        third = (end - start) // 3
        if kind == "F":
            self.flows[place] = []
        for at, part in enumerate(names):
            call = host + 10_000 + 20_000 * at
            if kind == "F":
                self.flows[place].append(writer.start_flow(call - 1_000, thread))
            else:
                flows = self.flows[place]
                writer.add("cpu_op", f"autograd::engine::evaluate_function: {part}", call - 1_500, call + 7_000, thread)
                if flows:
                    writer.events.append(writer.flow_event("f", call - 1_000, thread, flows.pop()))
            stop = end if at == 2 else start + (at + 1) * third - 1_000
            writer.launch(part, f"sm90_gemm_{kind}{at}", call, start + at * third, stop, thread)
        host += 80_000
        writer.annotate(f"PP:{name}", begin, host)
        if sends:
            writer.add("cpu_op", "c10d::send", host + 2_000, host + 12_000)
            writer.launch("record_param_comms", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", host + 3_500,
                          end, end + 30_000, writer.main, 24)
            host += 13_000
        self.received = max(self.received, start)
        self.free = max(host, end - 300_000)


class Job:
    def __init__(self, program, folder, schedule, shape, style):
        ops, self.makespan, self.bubble = simulate(program, schedule, shape, folder)
        self.schedule = schedule
        ranks = 1 + max(op[0] for op in ops)
        last_stage = max(op[3] for op in ops)
        self.ranks, self.spans = [], []
        for rank in range(ranks):
            mine = [op for op in ops if op[0] == rank]
            writer = RankWriter(rank, ranks, style)
            peers = {op[3] for op in mine}
            origins = [1_000_000_000 + number * (self.makespan + 20_000_000) for number in range(STEPS)]
            for number, origin in enumerate(origins):
                Step(writer, mine, origin).write(last_stage, peers)
                writer.add("user_annotation", f"ProfilerStep#{2 + number}", origin - 100_000,
                           origin + self.makespan + 9_000_000)
            self.ranks.append(writer.finish())
            self.spans.append([(kind, number, (origin + start) / 1000, (origin + end) / 1000)
                               for origin in origins for _, _, kind, _, number, start, end in mine])


STYLES = {
    "host": {"annotated": True, "gpu": False, "numbered": True},
    "host, no annotations": {"annotated": False, "gpu": False, "numbered": True},
    "host, older": {"annotated": True, "gpu": False, "numbered": False},
    "host, older, no annotations": {"annotated": False, "gpu": False, "numbered": False},
    "gpu": {"annotated": True, "gpu": True, "numbered": True},
    "gpu, older": {"annotated": True, "gpu": True, "numbered": False},
    "gpu, no annotations": {"annotated": False, "gpu": True, "numbered": True},
}
