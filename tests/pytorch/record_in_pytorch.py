#!/usr/bin/env python3
"""Records pipeline steps with PyTorch's profiler and compares what `analyze` says with what ran.

  record_in_pytorch.py PROGRAM [--schedules Schedule1F1B,ScheduleGPipe]

Two processes over gloo train two stages whose ops sleep, so that the machine's load matters little. Each process notes
when its ops began and ended; the profile knows nothing of these notes. Every schedule is recorded as it is and with
tools/hooks/bubblescope_hooks.py. Then schedule, makespan and bubble must be those of the notes. Exit status: 0 agreed,
1 did not.
"""
import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

RANKS, MICROBATCHES, STEPS = 2, 4, 2
FORWARD, BACKWARD = 0.06, 0.12
HOOKS = pathlib.Path(__file__).resolve().parents[2] / "tools" / "hooks"


def build_stage():
    import torch

    class Sleep(torch.autograd.Function):
        @staticmethod
        def forward(ctx, values, weights):
            ctx.save_for_backward(values, weights)
            time.sleep(FORWARD)
            return values @ weights

        @staticmethod
        def backward(ctx, gradient):
            values, weights = ctx.saved_tensors
            time.sleep(BACKWARD)
            return gradient @ weights.t(), values.t() @ gradient

    class Stage(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = torch.nn.Parameter(torch.eye(8))

        def forward(self, values):
            return Sleep.apply(values, self.weights)

    return Stage()


def note_times(notes):
    """Notes when ops begin and end, inside of what the hooks name."""
    from torch.distributed.pipelining import stage

    base = stage._PipelineStageBase
    for name, kind in (("forward_one_chunk", "F"), ("backward_one_chunk", "B")):
        def noted(self, number, *args, _run=getattr(base, name), _kind=kind, **kwargs):
            begin = time.time_ns()
            result = _run(self, number, *args, **kwargs)
            notes.append([f"{self.stage_index}{_kind}{number}", begin, time.time_ns()])
            return result
        noted.__wrapped__ = getattr(base, name)
        setattr(base, name, noted)


def work(rank, port, folder, schedule_name, hooked):
    import torch
    import torch.distributed as dist
    from torch.distributed import pipelining
    from torch.profiler import ProfilerActivity, profile, schedule as plan

    os.environ.update(KINETO_LOG_LEVEL="99", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    notes = []
    note_times(notes)
    if hooked:
        sys.path.insert(0, str(HOOKS))
        import bubblescope_hooks
        bubblescope_hooks.annotate_pytorch()
    stage = pipelining.PipelineStage(build_stage(), rank, RANKS, torch.device("cpu"))
    steps = getattr(pipelining, schedule_name)(stage, MICROBATCHES, loss_fn=torch.nn.MSELoss())
    batch = torch.ones(4 * MICROBATCHES, 8)
    with profile(activities=[ProfilerActivity.CPU], schedule=plan(wait=0, warmup=1, active=STEPS),
                 on_trace_ready=lambda made: made.export_chrome_trace(f"{folder}/rank{rank}.json")) as profiler:
        for number in range(STEPS + 1):
            dist.barrier()
            if number == 1:
                notes.clear()
            if rank == 0:
                steps.step(batch)
            else:
                steps.step(target=batch)
            profiler.step()
    pathlib.Path(f"{folder}/notes{rank}.txt").write_text(json.dumps(notes), encoding="utf-8")
    dist.destroy_process_group()


def expected(folder, ops):
    """The mean makespan and bubble of the noted steps, which have that many ops on every rank."""
    ranks = [json.loads(pathlib.Path(f"{folder}/notes{rank}.txt").read_text(encoding="utf-8")) for rank in range(RANKS)]
    makespans, busy = [], []
    for step in range(STEPS):
        of_step = [notes[step * ops:(step + 1) * ops] for notes in ranks]
        makespans.append(max(end for notes in of_step for _, _, end in notes) -
                         min(begin for notes in of_step for _, begin, _ in notes))
        busy.append(sum(end - begin for notes in of_step for _, begin, end in notes))
    makespan = sum(makespans) / STEPS
    return makespan, 1 - sum(busy) / STEPS / RANKS / makespan


def record(script, folder, arguments):
    """Runs one process per rank; returns whether all succeeded."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    processes = [subprocess.Popen([sys.executable, script, "-", "--work", str(rank), str(port), folder, *arguments])
                 for rank in range(RANKS)]
    return not any([process.wait(timeout=240) for process in processes])


class Misread(Exception):
    """A report that is wrong whatever else the machine did."""


def judge(program, folder, label, name, ops=2 * MICROBATCHES):
    """Compares the report on a folder's profiles with its notes; returns how times differ, or None."""
    traces = [f"{folder}/rank{rank}.json" for rank in range(RANKS)]
    outcome = subprocess.run([program, "analyze", *traces, "--format", "json"], capture_output=True, text=True,
                             check=False)
    if outcome.returncode:
        raise Misread(f"{label}: {outcome.stderr.strip()}")
    report = json.loads(outcome.stdout)
    makespan, bubble = expected(folder, ops)
    error = report["makespan_ns"] / makespan - 1
    # Names are in none of the reports that are not trusted.
    found = report["bubble"]["ratio"] if report["bubble"] else None
    print(f"{label}: {report['schedule']}, makespan {100 * error:+.2f} %, bubble {found} for {bubble:.4f}, "
          f"trust {report['trust']['verdict']}")
    if report["schedule"] != name:
        raise Misread(f"{label}: {name} was called {report['schedule']}")
    if found is None:
        raise Misread(f"{label}: the report has no bubble")
    if abs(error) > 0.01 or abs(found - bubble) > 0.005:
        return f"{label}: makespan off by {error:.2%}, bubble {found} for {bubble:.4f}"
    return None


def check(program, label, script, arguments, name, ops=2 * MICROBATCHES):
    """Whether a recording is read as what ran. Where times differ, up to three are made: on a busy machine a process may
    lose its core after it has noted the start of an op and before the profiler does."""
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            if not record(script, folder, arguments):
                print(f"{label}: the recording failed")
                return False
            try:
                failure = judge(program, folder, label, name, ops)
            except Misread as error:
                print(error)
                return False
        if not failure:
            return True
        print(failure)
    return False


def main():
    if "--work" in sys.argv:
        at = sys.argv.index("--work")
        rank, port, folder, schedule, hooked = sys.argv[at + 1:at + 6]
        work(int(rank), int(port), folder, schedule, hooked == "1")
        return 0
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--schedules", default="Schedule1F1B=1f1b,ScheduleGPipe=gpipe")
    options = parser.parse_args()
    agrees = True
    for entry in options.schedules.split(","):
        schedule, name = entry.split("=")
        for hooked in (False, True):
            label = f"{schedule}, {'hooks' if hooked else 'as it is'}"
            if not check(options.program, label, __file__, [schedule, str(int(hooked))], name):
                agrees = False
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main())
