"""Figures for papers, with matplotlib."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .errors import UsageError, needs

if TYPE_CHECKING:
    import matplotlib.figure

    from .reports import Report

COLOURS = {"F": "#4c78a8", "B": "#59a14f", "I": "#8cd17d", "W": "#f1ce63", "R": "#b07aa1", "OPT": "#e15759"}
"""The kinds of ops that a figure shows; messages and waits are left out."""
MIN_WIDTH, MAX_WIDTH = 1, 200


def _expect_width(width: Any) -> None:
    try:
        inches = float(width)
    except (TypeError, ValueError, OverflowError):
        inches = math.nan
    if not MIN_WIDTH <= inches <= MAX_WIDTH:
        raise UsageError(f"width: {width!r} is not a number of inches from {MIN_WIDTH} to {MAX_WIDTH}")


def plot_timeline(report: Report, width: float) -> matplotlib.figure.Figure:
    """One row per rank, time to the right in milliseconds, and a legend."""
    with needs("matplotlib", "plot()"):
        import numpy

        from ._figure import Figure

    _expect_width(width)
    ranks, step = len(report.ranks), report.timeline
    figure = Figure(figsize=(width, 0.9 + 0.28 * min(ranks, 32)), layout="constrained")
    axes = figure.add_subplot()
    names = step.kinds
    starts, ends = step.start / 1e6, step.end / 1e6
    for kind, colour in COLOURS.items():
        of_kind = step.kind == names.index(kind)
        for rank in numpy.unique(step.rank[of_kind]):
            rows = of_kind & (step.rank == rank)
            spans = numpy.column_stack([starts[rows], ends[rows] - starts[rows]])
            axes.broken_barh(spans.tolist(), (int(rank) - 0.42, 0.84), facecolors=colour, edgecolor="white",
                             linewidth=0.4, label=kind if rank == step.rank[of_kind].min() else None)
    axes.set_xlim(0, report.makespan / 1e6)
    axes.set_ylim(ranks - 0.5, -0.5)
    axes.set_xlabel("ms")
    axes.set_ylabel("rank")
    if ranks <= 16:
        axes.set_yticks(range(ranks))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.legend(loc="outside upper right", ncols=len(COLOURS), frameon=False, fontsize="small")
    return figure
