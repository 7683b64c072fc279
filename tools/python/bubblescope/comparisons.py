"""Several schedules side by side."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

from . import _core
from ._tables import table_text
from ._words import options_as_words
from .errors import Error, MachineError, ProblemError, UsageError, WrongTypeError, needs
from .reports import Report, time_text
from .schedules import AnySchedule, is_all, names_of, simulate

if TYPE_CHECKING:
    import pandas
    from typing_extensions import Unpack

    from ._options import Options


class Refusal(NamedTuple):
    """A schedule that could not be compared, and why."""

    name: str
    reason: str


class Comparison:
    """Reports of several schedules, in the order that was asked for.

    >>> import bubblescope as bs
    >>> c = bs.compare(["1f1b", "zb-h1", "zb-v"], pp=4, m=8)
    >>> c.best.name, [r.name for r in c]
    ('zb-v', ['1f1b', 'zb-h1', 'zb-v'])
    >>> c["zb-h1"].makespan
    27000000
    """

    def __init__(self, reports: list[Report], refused: list[Refusal]) -> None:
        self.reports = reports
        self.refused = refused

    @property
    def best(self) -> Report:
        """The report with the shortest step."""
        if not self.reports:
            reasons = "; ".join(f"{refusal.name}: {refusal.reason}" for refusal in self.refused)
            raise ProblemError(reasons or "no schedule accepts this shape")
        return min(self.reports, key=lambda report: report.makespan)

    def df(self) -> pandas.DataFrame:
        """A DataFrame with one row per schedule.

        >>> import bubblescope as bs
        >>> bs.compare("1f1b,zb-h1", pp=4, m=8).df().makespan_ns.tolist()
        [33000000, 27000000]
        """
        with needs("pandas", "df()"):
            import pandas

        best = self.best.makespan if self.reports else 0
        return pandas.DataFrame([_row_of(report, best) for report in self.reports])

    def __iter__(self) -> Iterator[Report]:
        return iter(self.reports)

    def __len__(self) -> int:
        return len(self.reports)

    def __getitem__(self, which: SupportsIndex | str) -> Report:
        if not isinstance(which, str):
            return self.reports[which]
        for report in self.reports:
            if report.name == which:
                return report
        raise KeyError(which)

    def __repr__(self) -> str:
        best = self.best.makespan if self.reports else 0
        rows = [["schedule", "makespan", "vs best", "bubble", "peak act"]]
        rows += [[report.name, time_text(report.makespan), f"+{100 * (report.makespan / best - 1):.2f}%",
                  f"{100 * report.bubble.ratio:.2f}%", f"{_peak(report):.4g}"] for report in self.reports]
        return "\n".join([table_text(rows)] + [f"{refusal.name}: {refusal.reason}" for refusal in self.refused])

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(repr(self))}</pre>"


def _peak(report: Report) -> float:
    return max(rank.peak_activations for rank in report.ranks)


def _row_of(report: Report, best: int) -> dict[str, Any]:
    bubble = report.bubble
    return {"schedule": report.name, "makespan_ns": report.makespan, "vs_best": report.makespan / best - 1,
            "max_span_ns": report.max_span, "ideal_ns": report.ideal, "lower_bound_ns": report.lower_bound,
            "bubble_ratio": bubble.ratio, "bubble_overhead": bubble.overhead, "bubble_span_rate": bubble.span_rate,
            "peak_activations": _peak(report), "sends": max(rank.sends for rank in report.ranks),
            "over_cap": bool(report.problems)}


def _simulate(name: AnySchedule, options: dict[str, Any]) -> Report:
    if isinstance(name, str):
        with options_as_words(options) as words:
            return Report(_core.simulate_name(name, words), None, (name, options))
    return simulate(name, **options)


def compare(names: AnySchedule | Iterable[AnySchedule], **options: Unpack[Options]) -> Comparison:
    """Predicts schedules side by side, on one set of costs.

    ``names`` are names, files, functions or ``Schedule`` objects; ``"all"`` stands for every schedule that trains and
    accepts the shape. A schedule that refuses the shape is listed in ``refused``. Options that a schedule does not have
    are meant for the others.

    >>> import bubblescope as bs
    >>> print(bs.compare("gpipe,1f1b", pp=4, m=8, vpp=1))
    schedule  makespan  vs best  bubble  peak act
    gpipe        33 ms   +0.00%  27.27%         8
    1f1b         33 ms   +0.00%  27.27%         4
    """
    reports: list[Report] = []
    refused: list[Refusal] = []
    listed = names_of(names)
    if not listed:
        raise UsageError("compare needs schedules, such as 'gpipe,1f1b'")
    by_name = [name for name in listed if isinstance(name, str)]
    with options_as_words(options) as words:
        _core.expect_comparable(by_name, words)  # raises where the options are wrong for all of them
    for name in listed:
        try:
            reports.append(_simulate(name, dict(options)))
        except (MachineError, WrongTypeError):
            raise
        except Error as error:
            if not is_all(names):
                called = getattr(name, "name", None) or getattr(name, "__name__", name)
                refused.append(Refusal(str(called), str(error)))
    return Comparison(reports, refused)
