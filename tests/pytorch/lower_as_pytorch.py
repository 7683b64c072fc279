#!/usr/bin/env python3
"""PyTorch as a judge of lists: what its own lowering makes of an order is what the program writes and reads.

  lower_as_pytorch.py PROGRAM [--ranks 4] [--chunks 3] [--seconds 180]

Needs PyTorch 2.15 or later; no process group is started. For every schedule that PyTorch has, in every shape up to the
given one: both refuse it, or the program's `convert --profile pytorch-2.15` writes PyTorch's own file cell for cell
(`_dump_csv`, compute_only and compute_comms, with receives as soon as possible and deferred), `check` accepts it, and
`convert` gives it back. The same where PyTorch's options move waits and gathers about, as far as flags do that too; the
others are only read. Then the program's own schedules: PyTorch lowers what we write as compute_only into what we write as compute_comms.
"""
import argparse
import csv
import io
import itertools
import logging
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from unittest import mock

from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining import schedules as pytorch

THEIRS = {"Interleaved1F1B": "interleaved", "LoopedBFS": "bfs", "InterleavedZeroBubble": "interleaved-zb",
          "ZBVZeroBubble": "zb-v", "DualPipeV": "dualpipev"}
TWO_CHUNKS = {"ZBVZeroBubble", "DualPipeV"}
OURS = {"gpipe": 1, "1f1b": 1, "eager-1f1b": 1, "zb-h1": 1, "zb-h2": 1, "zb-1p": 1, "zb-2p": 1, "interleaved": 0,
        "bfs": 0, "interleaved-zb": 0, "zb-v": 2, "v-half": 2, "v-min": 2, "1f1b-v": 2, "dualpipev": 2, "hanayo": 2}
# Options of PyTorch, and the flags of `convert` for those that it writes.
OPTIONS = [({"max_outstanding_sends": 1}, ["--send-budget", 1]), ({"max_outstanding_sends": 3}, ["--send-budget", 3]),
           ({"max_outstanding_sends": 2, "defer_pp_recv": True}, ["--send-budget", 2, "--lowering", "deferred"]),
           ({"unshard_lookahead": "auto"}, ["--unshard-lookahead", "auto"]),
           ({"unshard_lookahead": 1}, ["--unshard-lookahead", 1]),
           ({"unshard_lookahead": "auto", "max_outstanding_sends": 2}, ["--unshard-lookahead", "auto", "--send-budget", 2]),
           ({"max_active_stages": 2}, None), ({"defer_reduce_grad_wait": True}, None)]


class Judge:
    def __init__(self, program, folder):
        self.program = program
        self.file = pathlib.Path(folder, "schedule.csv")
        self.compared = self.refused = 0
        self.wrong = []

    def run(self, *arguments):
        return subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True, check=False)

    def expect(self, what, theirs, *arguments):
        """Our rows are theirs."""
        done = self.run("convert", *arguments)
        ours = list(csv.reader(io.StringIO(done.stdout)))
        self.compared += 1
        if done.returncode == 0 and ours == theirs:
            return
        self.wrong.append(f"{what}: {' '.join(map(str, arguments))}: {first_difference(ours, theirs) or done.stderr.strip()}")

    def expect_read(self, what, theirs, comms):
        """The file is legal here, and comes back as it is."""
        with self.file.open("w", newline="") as out:
            csv.writer(out).writerows(theirs)
        checked = self.run("check", self.file)
        if checked.returncode != 0:
            self.wrong.append(f"{what}: check of PyTorch's file: {(checked.stderr or checked.stdout).strip()[:200]}")
        self.expect(what, theirs, self.file, "--to", "pytorch-csv-comms" if comms else "pytorch-csv")

    def expect_refusal(self, what, *arguments):
        self.refused += 1
        done = self.run("convert", *arguments)
        if done.returncode != 1:
            self.wrong.append(f"{what}: PyTorch refuses it, here exit {done.returncode}: {' '.join(map(str, arguments))}")


def first_difference(ours, theirs):
    for rank, (our, their) in enumerate(itertools.zip_longest(ours, theirs, fillvalue=[])):
        for at, (mine, wanted) in enumerate(itertools.zip_longest(our, their)):
            if mine != wanted:
                return f"rank {rank}, cell {at}: {mine} instead of {wanted}"
    return None


def stages_of(ranks, chunks):
    """Stand-ins: only their numbers count before the first step."""
    stage = mock.create_autospec(PipelineStage, instance=True)
    stage.group_rank, stage.group_size, stage.num_stages, stage.submod = 0, ranks, ranks * chunks, None
    return [stage] * chunks


def dump(schedule, form):
    with tempfile.NamedTemporaryFile("w+", suffix=".csv") as out:
        schedule._dump_csv(out.name, format=form)
        return list(csv.reader(open(out.name, newline="")))


def theirs_with(name, ranks, chunks, microbatches, **options):
    return pytorch.get_schedule_class(name)(stages_of(ranks, chunks), microbatches, **options)


def judge_theirs(judge, name, ranks, chunks, microbatches):
    what = f"{name} p={ranks} v={chunks} m={microbatches}"
    shape = [THEIRS[name], "--pp", ranks, "--vpp", chunks, "-m", microbatches, "--profile", "pytorch-2.15"]
    try:
        asap = theirs_with(name, ranks, chunks, microbatches)
    except ValueError:
        return judge.expect_refusal(what, *shape, "--to", "pytorch-csv")
    orders = dump(asap, "compute_only")
    judge.expect(what, orders, *shape, "--to", "pytorch-csv")
    judge.expect_read(what, orders, comms=False)
    for lowering, deferred in (("asap", False), ("deferred", True)):
        comms = dump(theirs_with(name, ranks, chunks, microbatches, defer_pp_recv=deferred), "compute_comms")
        judge.expect(what, comms, *shape, "--fsdp", "--lowering", lowering, "--to", "pytorch-csv-comms")
        judge.expect(what, unsharded(asap, ranks * chunks, deferred), *shape, "--lowering", lowering, "--to",
                     "pytorch-csv-comms")
        judge.expect_read(what, comms, comms=True)
    for options, flags in OPTIONS:
        judge_options(judge, f"{what} {options}", (name, ranks, chunks, microbatches), options,
                      None if flags is None else [*shape, "--fsdp", *flags, "--to", "pytorch-csv-comms"])
    return None


def judge_options(judge, what, shape, options, convert):
    """A budget that their pass cannot keep is refused there, and here."""
    given = dict(options)
    if given.get("unshard_lookahead") == 1:
        given["unshard_lookahead"] = (1,) * shape[1]
    try:
        schedule = theirs_with(*shape, **given)
    except ValueError:
        return convert and judge.expect_refusal(what, *convert)
    comms = dump(schedule, "compute_comms")
    judge.expect_read(what, comms, comms=True)
    return convert and judge.expect(what, comms, *convert)


def judge_single(judge, name, ranks, _, microbatches):
    """GPipe and 1F1B, which PyTorch runs by hand: their orders are for drawing, and have no messages."""
    what = f"{name} p={ranks} m={microbatches}"
    shape = [name.lower(), "--pp", ranks, "-m", microbatches, "--profile", "pytorch-2.15", "--to", "pytorch-csv"]
    try:
        schedule = pytorch.get_schedule_class(name)(stages_of(ranks, 1)[0], microbatches)
    except ValueError:
        return judge.expect_refusal(what, *shape)
    orders = schedule._get_pipeline_order()
    if name == "1F1B":  # numbers the last rank's forwards from 1 (docs/frameworks.md)
        orders[ranks - 1] = [action._replace(microbatch_index=action.microbatch_index - 1)
                             if action.computation_type == pytorch.FORWARD else action for action in orders[ranks - 1]]
    judge.expect_read(what, [[str(action) for action in orders[rank] if action.is_compute_op] for rank in sorted(orders)],
                      comms=False)
    judge.file.write_text("\n".join(",".join(map(str, orders[rank])) for rank in sorted(orders)) + "\n")
    if judge.run("check", judge.file).returncode != 0:
        judge.wrong.append(f"{what}: check of PyTorch's order with reductions")
    return None


def unsharded(schedule, stages, deferred):
    """PyTorch's passes without the one for FSDP."""
    rank_of = schedule.stage_index_to_group_rank.__getitem__
    lists = {rank: pytorch._add_reduce_grad([action for action in order if action is not None], schedule._n_microbatches)
             for rank, order in schedule.pipeline_order.items()}
    lists = pytorch._add_wait_send(pytorch._add_send_recv(lists, rank_of, stages))
    if deferred:
        lists = pytorch._defer_recv_ops(lists, rank_of)
    return [[str(action) for action in lists[rank]] for rank in sorted(lists)]


def judge_ours(judge, name, ranks, chunks, microbatches):
    """PyTorch lowers our order as we do, and accepts our lists as they are."""
    what = f"{name} p={ranks} v={chunks} m={microbatches}"
    shape = [name, "--pp", ranks, "-m", microbatches, *([] if chunks == OURS[name] else ["--vpp", chunks])]
    order = judge.run("convert", *shape, "--to", "pytorch-csv")
    if order.returncode == 1:
        return  # a shape that the schedule has not
    judge.file.write_text(order.stdout)
    for lowering, deferred in (("asap", False), ("deferred", True)):
        runtime = pytorch._PipelineScheduleRuntime(stages_of(ranks, chunks), microbatches, defer_pp_recv=deferred)
        runtime._load_csv(judge.file, format="compute_only")
        judge.expect(what, dump(runtime, "compute_comms"), *shape, "--fsdp", "--lowering", lowering, "--to",
                     "pytorch-csv-comms")
    plain = judge.run("convert", *shape, "--to", "pytorch-csv-comms")
    judge.file.write_text(plain.stdout)
    pytorch._PipelineScheduleRuntime(stages_of(ranks, chunks), microbatches)._load_csv(judge.file, format="compute_comms")


def shapes(options, chunks):
    """Small ones first, so that little time sees all schedules."""
    counts = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 24]
    found = itertools.product(range(1, options.ranks + 1), chunks, counts)
    return sorted(found, key=lambda shape: (shape[0] * shape[1] * shape[2], shape))


def cases(options):
    any_chunks = range(1, options.chunks + 1)
    for name in ("GPipe", "1F1B"):
        for shape in shapes(options, [1]):
            yield shape[0] * shape[2], judge_single, name, shape
    for name in THEIRS:
        for shape in shapes(options, [2] if name in TWO_CHUNKS else any_chunks):
            yield shape[0] * shape[1] * shape[2], judge_theirs, name, shape
    for name, chunks in OURS.items():
        for shape in shapes(options, [chunks] if chunks else any_chunks):
            yield shape[0] * shape[1] * shape[2], judge_ours, name, shape


def begin_judging(options):
    global options_of_process
    options_of_process = options


def judge_case(case):
    """The numbers of files compared and of shapes refused by both, and what was wrong; None where the time is up."""
    _, compare, name, shape = case
    if time.monotonic() >= options_of_process.deadline:
        return None
    with tempfile.TemporaryDirectory() as folder:
        judge = Judge(options_of_process.program, folder)
        compare(judge, name, *shape)
    return judge.compared, judge.refused, judge.wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--chunks", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=180)
    options = parser.parse_args()
    logging.disable()
    ordered = sorted(cases(options), key=lambda case: case[0])
    options.deadline = time.monotonic() + options.seconds
    # A process per core, which has what this one has imported.
    with multiprocessing.get_context("fork").Pool(os.cpu_count(), begin_judging, (options,)) as pool:
        results = pool.map(judge_case, ordered, chunksize=1)
    left = results.count(None)
    compared, refused, wrong = (list(column) for column in zip(*(result for result in results if result)))
    wrong = list(itertools.chain(*wrong))
    for line in wrong[:20]:
        print(line)
    print(f"{sum(compared)} files compared, {sum(refused)} shapes refused by both, {len(wrong)} wrong"
          + (f"; {left} shapes left out for lack of time" if left else ""))
    return 1 if wrong or not sum(compared) else 0


if __name__ == "__main__":
    sys.exit(main())
