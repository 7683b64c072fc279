"""PyTorch's pipeline schedules: as ours, from ours, and a user's own stages under any of ours.

It works with the releases whose runtime is ``_PipelineScheduleRuntime``; importing it imports PyTorch.
"""
from __future__ import annotations

import csv
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

from ._tables import counted
from ._words import path_argument, path_word
from .commands import Analysis, analyze_files
from .errors import Error, ProblemError, UsageError, WrongTypeError, needs, warn_of
from .measured import TraceFolder
from .reports import Report, time_text
from .schedules import Schedule, schedule as build_schedule

with needs("torch", "bubblescope.torch"):
    import torch
    import torch.distributed as dist
    from torch.distributed.pipelining import PipelineStage
    from torch.distributed.pipelining.schedules import _Action, _PipelineScheduleRuntime

COMPUTE = {"F", "B", "I", "W", "OVERLAP_F_B"}
SINGLE = {"ScheduleGPipe": "gpipe", "Schedule1F1B": "1f1b", "_ScheduleForwardOnly": "forward-only"}
"""The schedules whose order is in PyTorch's code. Their ``pipeline_order`` is for drawings only, and not what runs."""
BACKWARD = re.compile(r"[0-9]+[BI][0-9]|.*OVERLAP_F_B")
COST_KEYS = {"F": "forward", "B": "backward", "I": "input_grad", "W": "weight_grad"}


def from_torch(schedule: Any, name: str | None = None) -> Schedule:
    """The order of one of PyTorch's schedules, with its idle slots, and without its messages, which follow from it."""
    kind = type(schedule).__name__
    if kind in SINGLE:
        return build_schedule(SINGLE[kind], pp=schedule._num_stages, m=schedule._n_microbatches)
    lists = getattr(schedule, "pipeline_order", None) or getattr(schedule, "pipeline_order_with_comms", None)
    if not lists:
        raise UsageError(f"{kind} has no action lists; give one of PyTorch's multi-stage schedules")
    rows = [["_" if action is None else str(action) for action in lists[rank]
             if action is None or action.computation_type.value in COMPUTE] for rank in sorted(lists)]
    return Schedule(rows, name or kind.removeprefix("Schedule"))


def to_torch(schedule: Schedule, comms: bool = False) -> dict[int, list[Any]]:
    """The action lists of every rank, as ``_PipelineScheduleRuntime._prepare_schedule_with_comms`` takes them.

    They hold the ops alone, to which PyTorch adds the messages; with ``comms`` they hold those as well, in the form of
    the installed release (``format="compute_comms"``).
    """
    reduces = (2, 10) <= _release() < (2, 15)  # where gradients are scaled at REDUCE_GRAD, as --fsdp has it
    lists = (schedule.convert("pytorch-csv-comms", profile=_profile(), fsdp=reduces) if comms
             else schedule.convert("pytorch-csv"))
    rows = csv.reader(lists.splitlines())
    return {rank: [_Action.from_str(cell) for cell in row] for rank, row in enumerate(rows)}


def _profile() -> str:
    return "pytorch-2.15" if _release() >= (2, 15) else "pytorch"


def _release() -> tuple[int, ...]:
    return tuple(int(part) for part in torch.__version__.split(".")[:2])


def make_runtime(modules: Mapping[int, torch.nn.Module], schedule: Schedule, *, loss_fn: Callable[..., Any] | None,
                 device: torch.device | str = "cpu", group: dist.ProcessGroup | None = None,
                 **options: Any) -> _PipelineScheduleRuntime:
    """PyTorch's runtime for this schedule and this rank's modules, which are given by their stages.

    Further keywords are those of ``_PipelineScheduleRuntime``, such as ``scale_grads``.
    """
    _expect_group(modules, schedule)
    rank = dist.get_rank(group)
    ranks = dist.get_world_size(group)
    if ranks != schedule.pp:
        raise ProblemError(f"{schedule.name} has {counted(schedule.pp, 'rank')}, the process group {ranks}; start as many "
                           "processes")
    placement = dict(enumerate(schedule.rank_of_stage))
    mine = [stage for stage in placement if placement[stage] == rank]
    if sorted(modules) != mine:
        raise ProblemError(f"rank {rank} of {schedule.name} runs stages {mine}, but was given {sorted(modules)}")
    stages = [PipelineStage(modules[stage], stage, len(placement), torch.device(device), group=group) for stage in mine]
    for stage in stages:
        stage.stage_index_to_group_rank = placement
    runtime = _PipelineScheduleRuntime(stages, schedule.m, loss_fn=loss_fn, **options)
    runtime.stage_index_to_group_rank = placement
    runtime._prepare_schedule_with_comms(to_torch(schedule))
    return runtime


class Run:
    """The measurements of ``run``. On ranks other than 0, only the losses are there."""

    def __init__(self, losses: list[float], analysis: Analysis | None, prediction: Report | None) -> None:
        self.losses = losses
        """The mean loss of every step, on the rank of the last stage; elsewhere empty."""
        self.analysis = analysis
        """The report on the recorded steps."""
        self.prediction = prediction
        """The step that follows from the measured time of every stage's ops; its messages take no time."""

    @property
    def error(self) -> float:
        """By how much the prediction is off, as a fraction of the measured time."""
        if self.analysis is None:
            raise UsageError("only rank 0 has the report")
        if self.prediction is None:
            raise ProblemError("the measured step has no prediction; a warning said why")
        return self.prediction.makespan / self.analysis.makespan - 1

    def __repr__(self) -> str:
        if self.analysis is None:
            return f"<Run: {counted(len(self.losses), 'loss')}>"
        if self.prediction is None:
            return f"<Run: measured {time_text(self.analysis.makespan)}, without a prediction>"
        trust = self.analysis.trust
        doubt = "" if trust["verdict"] == "good" else f", trust {trust['verdict']}: {'; '.join(trust['why'])}"
        return (f"<Run: measured {time_text(self.analysis.makespan)}, predicted "
                f"{time_text(self.prediction.makespan)} ({100 * self.error:+.1f} %){doubt}>")


def run(modules: Mapping[int, torch.nn.Module], schedule: Schedule, *, inputs: Any = None, target: Any = None,
        loss_fn: Callable[..., Any] | None = None, optimizer: torch.optim.Optimizer | None = None, steps: int = 3,
        warmup: int = 1, device: torch.device | str = "cpu", group: dist.ProcessGroup | None = None,
        traces: str | os.PathLike[str] | None = None, **options: Any) -> Run:
    """Trains this rank's stages under a schedule, records it, and compares it with its prediction.

    Every process of the group calls it, as under torchrun. ``modules`` are the stages of ``schedule.rank_of_stage`` that
    are on this rank. ``inputs`` (a tensor, or a tuple of them) are used on the rank of stage 0, ``target`` on that of
    the last stage. Steps after the ``warmup`` are recorded by PyTorch's profiler. Where the measured ops cannot be
    priced, the result has no prediction, and a warning says why. The recordings are deleted with the result's analysis;
    ``traces`` is a folder in which rank 0 keeps them, as ``rank0.json`` and so on. Further keywords are those of
    ``make_runtime``.
    """
    _expect_group(modules, schedule)
    _expect_runnable(schedule, loss_fn, steps, warmup)
    _expect_batches(modules, schedule, inputs, target, group)
    kept = _make_folder(traces, group)
    runtime = make_runtime(modules, schedule, loss_fn=loss_fn, device=device, group=group, **options)
    last = len(schedule.rank_of_stage) - 1
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    losses: list[float] = []

    def step() -> None:
        if optimizer is not None:
            optimizer.zero_grad()
        told: list[torch.Tensor] = []
        keywords: dict[str, Any] = {"target": target, "losses": told} if last in modules else {}
        runtime.step(*(given if 0 in modules else ()), **keywords)
        if optimizer is not None:
            optimizer.step()
        if told:
            losses.append(torch.stack(told).detach().mean().item())

    for _ in range(warmup):
        step()
    text = _record(step, steps, torch.device(device), group)
    analysis = _analyze_on_first(text, group, kept)
    if analysis is None:
        return Run(losses, None, None)
    try:
        return Run(losses, analysis, schedule.simulate(costs=measured_costs(analysis)))
    except Error as error:  # what was trained and measured is not lost
        warn_of(f"the measured step has no prediction: {error}")
        return Run(losses, analysis, None)


def _expect_group(modules: Any, schedule: Any) -> None:
    if not isinstance(modules, Mapping):
        raise WrongTypeError(f"modules map this rank's stages to their modules, such as {{0: first, 7: last}}; this is a "
                             f"{type(modules).__name__}")
    if not isinstance(schedule, Schedule):
        raise WrongTypeError(f"a schedule such as bubblescope.schedule(\"zb-v\", pp=4, m=8) is needed, not "
                             f"{type(schedule).__name__}")
    if not dist.is_initialized():
        raise UsageError("there is no process group; call torch.distributed.init_process_group(\"gloo\") first, in "
                         "processes that torchrun starts")


def _expect_runnable(schedule: Schedule, loss_fn: Callable[..., Any] | None, steps: int, warmup: int) -> None:
    for name, value in (("steps", steps), ("warmup", warmup)):
        if not isinstance(value, int):
            raise WrongTypeError(f"{name} is a whole number, not {type(value).__name__}")
    if steps < 1:
        raise UsageError(f"steps is {steps}; at least one step must be recorded")
    if warmup < 0:
        raise UsageError(f"warmup is {warmup}; give the number of steps before the recorded ones, or 0")
    if not any(BACKWARD.match(cell) for row in schedule.rows for cell in row):
        raise UsageError(f"{schedule.name} has no backwards, but run trains; choose a schedule that has them")
    if loss_fn is None:
        raise UsageError("run trains, and needs the same loss_fn on every rank")


def _is_of_more_ranks(name: str, ranks: int) -> bool:
    found = re.fullmatch(r"rank([0-9]+)\.json", name)
    return found is not None and int(found[1]) >= ranks


def _make_folder(traces: str | os.PathLike[str] | None, group: dist.ProcessGroup | None) -> str | None:
    """Makes the folder on rank 0. Raises on every rank where it cannot be made."""
    path = None if traces is None else path_argument(traces, "traces")
    problem = [""]
    if path is not None and dist.get_rank(group) == 0:
        try:
            os.makedirs(path, exist_ok=True)
            older = [name for name in sorted(os.listdir(path)) if _is_of_more_ranks(name, dist.get_world_size(group))]
            if older:
                problem = [f"traces: {path} has {older[0]} of a run on more ranks; give an empty folder"]
        except OSError as error:
            problem = [f"traces: cannot make the folder {path}: {error.strerror}"]
    found: list[list[str]] = [[] for _ in range(dist.get_world_size(group))]
    dist.all_gather_object(found, problem, group=group)
    if found[0][0]:
        raise UsageError(found[0][0])
    return path


def _expect_batches(modules: Mapping[int, torch.nn.Module], schedule: Schedule, inputs: Any, target: Any,
                    group: dist.ProcessGroup | None) -> None:
    """Raises on every rank where one of them has a batch that is not cut into equal micro-batches."""
    used = {"inputs": inputs if 0 in modules else None,
            "target": target if len(schedule.rank_of_stage) - 1 in modules else None}
    problems = [f"{name}: a batch of shape {tuple(tensor.shape)} is not cut into {counted(schedule.m, 'equal micro-batch')}"
                for name, given in used.items() for tensor in (given if isinstance(given, tuple) else (given,))
                if isinstance(tensor, torch.Tensor) and (tensor.dim() == 0 or len(tensor) % schedule.m != 0)]
    if 0 in modules and inputs is None:
        problems.append("inputs: the rank of stage 0 needs them")
    found: list[list[str]] = [[] for _ in range(dist.get_world_size(group))]
    dist.all_gather_object(found, problems, group=group)
    if any(found):
        raise UsageError("; ".join(problem for each in found for problem in each))


def _record(step: Callable[[], None], steps: int, device: torch.device, group: dist.ProcessGroup | None) -> str:
    """The trace of these steps on this rank."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    if device.type == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities) as profiler:
        for number in range(steps):
            dist.barrier(group)
            with torch.profiler.record_function(f"ProfilerStep#{number}"):
                step()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(path)
        with open(path, encoding="utf-8") as file:
            return file.read()


def _analyze_on_first(text: str, group: dist.ProcessGroup | None, traces: str | None) -> Analysis | None:
    """Reports on the traces of all ranks, on rank 0."""
    texts: list[str] = [""] * dist.get_world_size(group)
    dist.all_gather_object(texts, text, group=group)
    if dist.get_rank(group) != 0:
        return None
    folder = TraceFolder() if traces is None else None
    names = [os.path.join(folder.path if folder else str(traces), f"rank{rank}.json") for rank in range(len(texts))]
    for name, trace in zip(names, texts):
        with open(name, "w", encoding="utf-8") as file:
            file.write(trace)
    return analyze_files([path_word(name) for name in names], {}, folder)


def _fill_in(stages: list[dict[str, float]]) -> None:
    """Gives every stage the kinds of backward that others have: a cost file has the same for all.

    A stage without an op of a kind has no time of it either, so that these values change no prediction.
    """
    if not any("input_grad" in costs for costs in stages):
        return
    for costs in stages:
        whole = costs.get("backward", costs.get("input_grad", 0.0) + costs.get("weight_grad", 0.0))
        costs.setdefault("input_grad", whole / 2)
        costs.setdefault("weight_grad", whole / 2)
        costs.setdefault("backward", whole)


def measured_costs(analysis: Analysis) -> dict[str, Any]:
    """A cost file's content: the mean time of every stage's ops in a measured step, in milliseconds."""
    durations: dict[tuple[int, str], list[int]] = {}
    for row in csv.DictReader(analysis.timeline_csv().splitlines()):
        if row["kind"] in COST_KEYS:
            took = int(row["end_ns"]) - int(row["start_ns"])
            durations.setdefault((int(row["stage"]), row["kind"]), []).append(took)
    if not durations:
        raise ProblemError("the recorded steps have no ops; the costs of stages cannot be taken from them")
    stages: list[dict[str, float]] = [{} for _ in range(max(stage for stage, _ in durations) + 1)]
    for (stage, kind), times in durations.items():
        stages[stage][COST_KEYS[kind]] = sum(times) / len(times) / 1e6
    _fill_in(stages)
    return {"format": "bubblescope-costs/1", "stages": stages}
