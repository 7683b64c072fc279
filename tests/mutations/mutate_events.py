"""Mutations of Kineto files: what is done, to which events, in which ranks, and to how many of them."""
import copy
import random


def is_slice(event, *categories):
    return event.get("ph") == "X" and event.get("cat") in categories


def is_named_op(event):
    name = event["name"]
    return is_slice(event, "user_annotation") and name.startswith(("PP:", "Forward ", "Backward "))


CLASSES = {
    "annotations": is_named_op,
    "step marks": lambda event: is_slice(event, "user_annotation") and event["name"].startswith("ProfilerStep"),
    "operators": lambda event: is_slice(event, "cpu_op") and not event["name"].startswith(("autograd::", "c10d::")),
    "gradient functions": lambda event: is_slice(event, "cpu_op") and event["name"].startswith("autograd::"),
    "backward operators": lambda event: is_slice(event, "cpu_op") and "Backward" in event["name"],
    "sends": lambda event: is_slice(event, "cpu_op", "user_annotation") and "send" in event["name"],
    "receives": lambda event: is_slice(event, "cpu_op") and "recv" in event["name"],
    "completions": lambda event: is_slice(event, "user_annotation") and event["name"].startswith("gloo:recv"),
    "launches": lambda event: is_slice(event, "cuda_runtime"),
    "kernels": lambda event: is_slice(event, "kernel") and not event["name"].startswith("nccl"),
    "message kernels": lambda event: is_slice(event, "kernel") and event["name"].startswith("nccl"),
    "flow starts": lambda event: event.get("ph") == "s",
    "flow ends": lambda event: event.get("ph") == "f",
    "slices": lambda event: event.get("ph") == "X" and event.get("cat") != "Trace",
}


class Change:
    """Draws what is done to single events; `text` describes it."""

    def __init__(self, draw):
        self.draw = draw
        self.kind = draw.choice(["remove", "remove", "rename", "take a name", "shift", "shift", "duplicate", "scale", "scale",
                                 "end at", "swap times", "swap names"])
        self.by = draw.choice([-20_000, -1_500, -300, 300, 1_500, 9_000, 40_000])
        self.factor = draw.choice([0, 0.5, 0.9, 1.1, 2])
        self.text = {"shift": f"shift by {self.by} us", "duplicate": f"duplicate {self.by} us later",
                     "scale": f"scale by {self.factor}", "end at": f"end {self.by} us later"}.get(self.kind, self.kind)

    def apply(self, events, chosen):
        """`chosen` are indexes."""
        if self.kind == "remove":
            gone = set(chosen)
            events[:] = [event for at, event in enumerate(events) if at not in gone]
            return
        for at in chosen:
            self.apply_to(events, events[at], events[self.draw.choice(chosen)])

    def apply_to(self, events, event, other):
        if self.kind == "rename":
            event["name"] = "something else"
        elif self.kind == "take a name":
            event["name"] = other["name"]
        elif self.kind == "shift":
            event["ts"] += self.by
        elif self.kind == "duplicate":
            twin = copy.deepcopy(event)
            twin["ts"] += self.by
            events.append(twin)
        elif self.kind == "scale" and "dur" in event:
            event["dur"] *= self.factor
        elif self.kind == "end at" and "dur" in event:
            event["dur"] = max(0, event["dur"] + self.by)
        elif self.kind == "swap times":
            for key in ("ts", "dur"):
                if key in event and key in other:
                    event[key], other[key] = other[key], event[key]
        elif self.kind == "swap names":
            event["name"], other["name"] = other["name"], event["name"]


def mutate_events(files, spans, draw):
    """Changes some events of a class; `spans` are [rank] -> list of (kind, microbatch, start us, end us)."""
    name = draw.choice(sorted(name for name, test in CLASSES.items()
                              if any(test(event) for file in files for event in file["traceEvents"])))
    change = Change(draw)
    ranks = draw.choice([range(len(files)), [draw.randrange(len(files))], [draw.randrange(len(files))]])
    share = draw.choice(["one", 0.1, 0.6, 1.0])
    scope = draw.choice(["all", "all", "kind", "microbatch", "op"])
    kind, number = draw.choice("FBI"), draw.randrange(8)
    within = {"all": lambda span: True, "kind": lambda span: span[0] == kind, "microbatch": lambda span: span[1] == number,
              "op": lambda span: span[:2] == (kind, number)}[scope]
    where = {"all": "", "kind": f" within {kind}", "microbatch": f" of micro-batch {number}", "op": f" of {kind}{number}"}
    if change.kind in ("end at", "scale") and share == 1.0 and scope == "all":
        ranks = ranks[:1]  # if all events of a job differ alike, it is another job
    count = 0
    for rank in ranks:
        events = files[rank]["traceEvents"]
        open_spans = [span for span in spans[rank] if within(span)]
        chosen = [at for at, event in enumerate(events) if CLASSES[name](event) and (
            scope == "all" or any(span[2] - 1 <= event["ts"] < span[3] for span in open_spans))]
        if share == "one":
            chosen = [draw.choice(chosen)] if chosen else []
        else:
            chosen = [at for at in chosen if draw.random() < share]
        if chosen:
            change.apply(events, chosen)
        count += len(chosen)
    some = "one" if share == "one" else f"{share:.0%}"
    return f"{change.text}: {some} of {name}{where[scope]}, rank(s) {list(ranks)}: {count} event(s)"


def cut(files, spans, draw):
    """Recordings that begin late or end early, on one rank or on all."""
    ranks = draw.choice([range(len(files)), [draw.randrange(len(files))]])
    rank_spans = spans[0]
    at = draw.uniform(rank_spans[0][2], rank_spans[-1][3])
    early = draw.random() < 0.5
    for rank in ranks:
        files[rank]["traceEvents"] = [
            event for event in files[rank]["traceEvents"]
            if "ts" not in event or event.get("ph") == "M" or (event["ts"] < at if early else event["ts"] + event.get("dur", 0) > at)]
    return f"{'end early' if early else 'begin late'} on rank(s) {list(ranks)}"


def move_rank(files, _, draw):
    """Clocks that are apart or run fast."""
    rank = draw.randrange(len(files))
    by, rate = draw.choice([(-30_000, 1), (-1_200, 1), (700, 1), (15_000, 1), (0, 1.02), (0, 0.98)])
    events = files[rank]["traceEvents"]
    origin = min(event["ts"] for event in events if event.get("ph") == "X")
    for event in events:
        if event.get("ph") == "M":
            continue
        event["ts"] = origin + (event["ts"] - origin) * rate + by
        if "dur" in event:
            event["dur"] *= rate
    return f"clock of rank {rank}: {by} us later, {rate} times as fast"


def change_files(files, _, draw):
    """Files that are lost, given twice, of another rank, or out of order inside."""
    rank = draw.randrange(len(files))
    kind = draw.choice(["lose", "twice", "other rank", "swap ranks", "no info", "shuffle", "no step marks", "one step"])
    if kind == "lose":
        del files[rank]
    elif kind == "twice":
        files[(rank + 1) % len(files)] = copy.deepcopy(files[rank])
    elif kind == "other rank":
        files[rank]["distributedInfo"]["rank"] = draw.randrange(8)
    elif kind == "swap ranks":
        info = [file["distributedInfo"] for file in files]
        info[0]["rank"], info[rank]["rank"] = info[rank]["rank"], info[0]["rank"]
    elif kind == "no info":
        del files[rank]["distributedInfo"]
    elif kind == "shuffle":
        draw.shuffle(files[rank]["traceEvents"])
    elif kind == "no step marks":
        for file in files:
            file["traceEvents"] = [event for event in file["traceEvents"] if not CLASSES["step marks"](event)]
    elif kind == "one step":
        for event in files[rank]["traceEvents"]:
            if CLASSES["step marks"](event):
                event["name"] = "ProfilerStep#2"
    return f"{kind}, rank {rank}"


def mutate(files, spans, seed):
    """Changes the files in place; returns what was done."""
    draw = random.Random(seed)
    way = draw.choices([mutate_events, cut, move_rank, change_files], weights=[80, 7, 6, 7])[0]
    return way(files, spans, draw)
