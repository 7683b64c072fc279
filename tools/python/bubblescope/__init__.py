"""Tells what a pipeline schedule costs, where its bubbles come from, and whether it can deadlock.

>>> import bubblescope as bs
>>> s = bs.schedule("1f1b", pp=4, m=8)
>>> r = s.simulate()
>>> r.makespan, round(r.bubble.ratio, 4)
(33000000, 0.2727)

Every flag of the command line is a keyword argument of the same name, with ``_`` for ``-``: ``--p2p-mode fifo`` is
``p2p_mode="fifo"``. Durations that are bare numbers are milliseconds; all times that come back are whole nanoseconds.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._core import __version__
from .commands import Analysis, Plan, Search, analyze, plan, search
from .comparisons import Comparison, Refusal, compare
from .errors import Error, MachineError, ProblemError, UsageError
from .reports import Report, Timeline
from .schedules import Check, Problem, Schedule, check, read, schedule, schedules, simulate
from .tries import Tries

if TYPE_CHECKING:
    from . import torch as torch

__all__ = [
    "Analysis", "Check", "Comparison", "Error", "MachineError", "Plan", "Problem", "ProblemError", "Refusal", "Report",
    "Schedule", "Search", "Timeline", "Tries", "UsageError", "__version__", "analyze", "check", "compare", "plan", "read",
    "schedule", "schedules", "search", "simulate",
]


def __dir__() -> list[str]:
    return [*__all__, "errors", "torch"]


def __getattr__(name: str) -> Any:
    if name == "torch":  # imports PyTorch, which takes seconds
        return importlib.import_module(".torch", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
