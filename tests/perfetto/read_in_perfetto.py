#!/usr/bin/env python3
"""Perfetto as a second judge: its own protos decode what --perfetto writes.

  read_in_perfetto.py PROGRAM [--shell TRACE_PROCESSOR_SHELL]

Needs the package perfetto (`python3 -m venv venv; venv/bin/pip install perfetto`, then run this with venv/bin/python).
For a few schedules every slice is compared with the row of --timeline that it stands for, to the nanosecond; every
track must be described, every text interned, every flow end where it is waited for. With a trace_processor_shell, the
file is also loaded and asked in SQL. Not part of the default tests: the package comes from the network.
"""
import argparse
import collections
import csv
import pathlib
import subprocess
import sys
import tempfile

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

STEPS = [
    "1f1b --pp 4 -m 8 --p2p 0.0001234",
    "zb-v --pp 4 -m 8 --f 1.1 --i 1.3 --w 0.7 --p2p 0.25",
    "interleaved --pp 4 --vpp 2 -m 8 --p2p-mode rendezvous",
    "dualpipe --pp 4 -m 8 --overlap atomic",
    "terapipe --pp 3 -m 4 --slices 4",
    "zb-h2 --pp 4 -m 8 --optimizer barrier --optimizer-step 3 --grad-reduction overlap --reduce-grad 5",
    "1f1b --pp 4 -m 8 --network bytes=64MiB,link=200,per-node=2,between=50",
]
BEGIN, END, COUNTER = (protos.TrackEvent.Type.Value(f"TYPE_{name}") for name in ("SLICE_BEGIN", "SLICE_END", "COUNTER"))


class Reader:
    """The slices of a trace, with names in place of interned numbers."""

    def __init__(self, content):
        self.tracks, self.slices, self.counts, self.open = {}, [], 0, collections.defaultdict(list)
        self.texts = collections.defaultdict(dict)
        trace = protos.Trace()
        trace.ParseFromString(content)
        for packet in trace.packet:
            self.read(packet)
        assert not any(self.open.values()), "a slice has no end"

    def read(self, packet):
        for kind in ("event_categories", "event_names", "debug_annotation_names"):
            for entry in getattr(packet.interned_data, kind):
                self.texts[kind][entry.iid] = entry.name
        for entry in packet.interned_data.debug_annotation_string_values:
            self.texts["values"][entry.iid] = entry.str.decode()
        if packet.HasField("track_descriptor"):
            self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if packet.HasField("track_event"):
            self.read_event(packet.timestamp, packet.track_event)

    def read_event(self, time, event):
        assert event.track_uuid in self.tracks, "a track is not described"
        self.counts += event.type == COUNTER
        if event.type == BEGIN:
            known = {self.texts["debug_annotation_names"][each.name_iid]: self.value(each) for each in event.debug_annotations}
            name = event.name or self.texts["event_names"][event.name_iid]
            slice_ = {"track": self.path(event.track_uuid), "name": name, "start": time, **known}
            slice_["flows"], slice_["ends"] = list(event.flow_ids), list(event.terminating_flow_ids)
            self.slices.append(slice_)
            self.open[event.track_uuid].append(slice_)
        elif event.type == END:
            self.open[event.track_uuid].pop()["end"] = time

    def value(self, annotation):
        field = annotation.WhichOneof("value")
        value = getattr(annotation, field)
        return self.texts["values"][value] if field == "string_value_iid" else value

    def path(self, uuid):
        track = self.tracks[uuid]
        name = track.process.process_name or track.name
        return f"{self.path(track.parent_uuid)}/{name}" if track.parent_uuid else name


def write_step(program, step, folder):
    trace, rows = folder / "step.pftrace", folder / "step.csv"
    command = [program, "simulate", *step.split(), "--perfetto", str(trace), "--timeline", str(rows)]
    subprocess.run(command, check=True, capture_output=True)
    return trace, list(csv.DictReader(rows.open()))


def check_step(program, step, folder):
    trace, rows = write_step(program, step, folder)
    reader = Reader(trace.read_bytes())
    lanes = [each for each in reader.slices if each["track"].startswith("rank ") and not each["track"].endswith("/idle")]
    shown = collections.Counter((each["track"].split("/")[0], each["name"], each["start"], each["end"])
                                for each in lanes if not each["name"].startswith("wait "))
    posts = ("RECV_F", "RECV_B")  # posts and waits of receives stand in queues; waits have slices of their own
    expected = collections.Counter((f"rank {row['rank']}", row["op"], int(row["start_ns"]), int(row["end_ns"]))
                                   for row in rows if row["kind"] not in posts)
    missing = shown - expected
    assert not missing, f"{step}: not in the timeline: {list(missing)[:3]}"
    lost = [key for key in expected - shown if key[3] > key[2]]
    assert not lost, f"{step}: not in the trace: {lost[:3]}"
    begins = {flow for each in lanes for flow in each["flows"]}
    ends = {flow for each in lanes for flow in each["ends"]}
    assert begins == ends, f"{step}: flows without an end or without a begin"
    print(f"{step}: {len(reader.tracks)} tracks, {len(lanes)} slices, {len(ends)} flows, {reader.counts} counts, all as in the timeline")
    return trace, lanes


def check_sql(shell, trace, lanes):
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig
    processor = TraceProcessor(trace=str(trace), config=TraceProcessorConfig(bin_path=shell))
    rows = list(processor.query("select s.ts, s.dur, s.name from slice s join process_track t on s.track_id = t.id "
                                "where t.name not in ('idle', 'step', 'critical path')"))
    shown = collections.Counter((row.ts, row.dur, row.name) for row in rows)
    assert shown == collections.Counter((each["start"], each["end"] - each["start"], each["name"]) for each in lanes)
    print(f"  trace_processor says the same of {len(rows)} slices")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--shell", help="a trace_processor_shell, to load the files with it too")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for step in STEPS:
            trace, lanes = check_step(arguments.program, step, pathlib.Path(folder))
            if arguments.shell:
                check_sql(arguments.shell, trace, lanes)


if __name__ == "__main__":
    sys.exit(main())
