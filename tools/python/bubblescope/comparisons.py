"""Several schedules side by side."""
from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

from . import _core
from ._tables import table_text
from ._words import flag_of, options_as_words, path_word, words_of
from .errors import Error, MachineError, ProblemError, UsageError, WrongTypeError, needs
from .reports import Report, time_text
from .schedules import AnySchedule, Schedule, expand_all, names_of, simulate, step_options

if TYPE_CHECKING:
    import pandas
    from typing_extensions import Unpack

    from ._options import Options


NOT_IN_NAMES = ("pp", "m", "microbatches", "vpp", "slices", "policy")
MAX_VALUE = 24
"""Letters of an option's value in the name of a report."""


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
        """The report with the shortest step per micro-batch, of those that fit their caps and devices, or of all if none does.

        Schedules that do not train are the best only among themselves.
        """
        if not self.reports:
            reasons = "; ".join(f"{refusal.name}: {refusal.reason}" for refusal in self.refused)
            raise ProblemError(reasons or "no schedule accepts this shape")
        return _best_of([report for report in self.reports if report._step.trains] or self.reports)

    def _excesses(self) -> list[float]:
        """By how much each step exceeds that of the best schedule that trains, or does not, as it does."""
        best = {trains: _time_per_microbatch(_best_of([report for report in self.reports if report._step.trains == trains]))
                for trains in {report._step.trains for report in self.reports}}
        return [_excess(_time_per_microbatch(report), best[report._step.trains]) for report in self.reports]

    def df(self) -> pandas.DataFrame:
        """A DataFrame with one row per schedule.

        >>> import bubblescope as bs
        >>> bs.compare("1f1b,zb-h1", pp=4, m=8).df().makespan_ns.tolist()
        [33000000, 27000000]
        """
        with needs("pandas", "df()"):
            import pandas

        return pandas.DataFrame([_row_of(*row) for row in zip(self.reports, self._excesses())])

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
        raise KeyError(f"{which!r} is none of {', '.join(report.name for report in self.reports)}")

    def __repr__(self) -> str:
        rows = [["schedule", "makespan", "vs best", "bubble", "peak act"]]
        rows += [[report.name, time_text(report.makespan), _percent_text(excess), f"{100 * report.bubble.ratio:.2f}%",
                  f"{_peak(report):.4g}"] for report, excess in zip(self.reports, self._excesses())]
        return "\n".join([table_text(rows)] + [f"{refusal.name}: {refusal.reason}" for refusal in self.refused])

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(repr(self))}</pre>"


def _time_per_microbatch(report: Report) -> float:
    return report._step.step / report._step.microbatches


def _excess(own: float, shortest: float) -> float:
    return own / shortest - 1 if shortest else math.nan if own else 0.0


def _best_of(reports: list[Report]) -> Report:
    return min(reports, key=lambda report: (not report._step.fits, _time_per_microbatch(report)))


def _percent_text(excess: float) -> str:
    return "-" if math.isnan(excess) else f"{100 * excess:+.2f}%"


def _peak(report: Report) -> float:
    return max(rank.peak_activations for rank in report.ranks)


def _row_of(report: Report, excess: float) -> dict[str, Any]:
    bubble = report.bubble
    return {"schedule": report.name, "makespan_ns": report.makespan, "vs_best": excess,
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

    ``names`` are names, files, functions or ``Schedule`` objects; ``"all"``, alone or beside others, stands for every
    schedule that trains and accepts the shape. A schedule that refuses the shape is listed in ``refused``. Options that a schedule does not have
    are meant for the others. Files and ``Schedule`` objects have a shape of their own, and give it to the others where
    ``pp`` and ``m`` are left out; ``vpp`` and ``slices`` are for the others, if there are any. With ``policy`` every schedule has a second report, in which ranks choose their ops.

    Options that are given here hold for all. Those that a ``Schedule`` was made with hold for it, and for names, files
    and functions as well. Where schedules differ in them, each report is named after its own.

    >>> import bubblescope as bs
    >>> print(bs.compare("gpipe,1f1b", pp=4, m=8, vpp=1))
    schedule  makespan  vs best  bubble  peak act
    gpipe        33 ms   +0.00%  27.27%         8
    1f1b         33 ms   +0.00%  27.27%         4

    >>> base = bs.schedule("1f1b", pp=4, m=8, f=10, b=20)
    >>> print(bs.compare([base, bs.schedule(base, recompute="full")]))
    schedule             makespan  vs best  bubble  peak act
    1f1b                   330 ms   +0.00%  27.27%         4
    1f1b recompute=full    410 ms  +24.24%  21.95%         1
    """
    asked = names_of(names)
    listed = expand_all(asked)
    if not listed:
        raise UsageError("compare needs schedules, such as 'gpipe,1f1b'")
    shared: dict[str, Any] = {**_kept_by_all(listed, options), **options}
    given: dict[str, Any] = {**shared, **_sizes(listed, shared)}  # raises where options are wrong for all of them
    reports: list[Report] = []
    refused: list[Refusal] = []
    all_stated = all(_states_shape(name) for name in listed)
    each_own = [{**step_options(name), **options} if isinstance(name, Schedule) else given for name in listed]
    for name, options_of_name, label in zip(listed, each_own, _labels(each_own)):
        keeps_counts = all_stated or not _states_shape(name)
        for suffix, own in _variants(options_of_name if keeps_counts else _without_counts(options_of_name)):
            suffix = label + suffix
            try:
                report = _simulate(name, own)
            except (MachineError, WrongTypeError):
                raise
            except Error as error:
                if any(name is one for one in asked):
                    called = getattr(name, "name", None) or getattr(name, "__name__", name)
                    refused.append(Refusal(str(called) + suffix, str(error)))
            else:
                report._suffix = suffix
                reports.append(report)
    return Comparison(reports, refused)


def _sizes(listed: list[AnySchedule], options: Any) -> dict[str, int]:
    """The ranks and micro-batches that options leave open and that schedules with a shape of their own have."""
    words = [path_word(os.path.join(os.curdir, name)) if isinstance(name, os.PathLike) else name for name in listed]
    names = [word for word in words if isinstance(word, str)]
    stated = [(name.name, name.pp, name.m) for name in listed if isinstance(name, Schedule)]
    calls_functions = len(names) + len(stated) < len(listed)
    with options_as_words(options) as given:
        return _core.find_sizes(names, stated, calls_functions, given)


def _kept_by_all(listed: list[AnySchedule], options: Any) -> dict[str, Any]:
    """The options of steps that ``Schedule`` objects were made with, for those beside them that have none of their own."""
    makers = [name for name in listed if isinstance(name, Schedule) and step_options(name)]
    if not makers or all(isinstance(name, Schedule) for name in listed):
        return {}
    asked = {flag_of(key) for key in options}
    kept: dict[str, Any] = {}
    for maker in makers:
        kept.update((key, value) for key, value in step_options(maker).items() if flag_of(key) not in asked)
    for key in kept:
        stated = [_text_of(key, step_options(maker)) for maker in makers]
        if len(set(stated)) > 1:
            other = next(at for at, text in enumerate(stated) if text != stated[0])
            raise UsageError(f"{makers[0].name} was made {_made_with(key, stated[0])} and {makers[other].name} "
                             f"{_made_with(key, stated[other])}, so that it is open which holds for the others; give {key} "
                             "to compare")
    return kept


def _text_of(key: str, options: dict[str, Any]) -> str:
    """The option as a text, the same for ``10``, ``10.0`` and ``"10ms"``; empty where it is left out."""
    text = " ".join(words_of({key: options.get(key)})).removeprefix("--")
    flag, _, value = text.partition("=")
    number = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(?:ms)?", value)
    return f"{flag}={float(number[1]):g}" if number else text


def _made_with(key: str, stated: str) -> str:
    return f"with {_short(key, stated)}" if stated else f"without {key}"


def _short(key: str, stated: str) -> str:
    """An option as part of a name: ``f=10``, ``fsdp``; long values are left out."""
    value = stated.partition("=")[2]
    return key if not value or len(value) > MAX_VALUE or " --" in value else f"{key}={value}"


def _labels(each_own: list[dict[str, Any]]) -> list[str]:
    """For each schedule the options in which they differ, as the end of its name."""
    keys = list(dict.fromkeys(key for own in each_own for key in own if key not in NOT_IN_NAMES))
    differing = [key for key in keys if len({_text_of(key, own) for own in each_own}) > 1]
    return ["".join(f" {_short(key, text)}" for key in differing if (text := _text_of(key, own))) for own in each_own]


def _states_shape(name: AnySchedule) -> bool:
    return isinstance(name, (Schedule, os.PathLike)) or isinstance(name, str) and _core.is_schedule_file(name)


def _without_counts(options: dict[str, Any]) -> dict[str, Any]:
    """Options without chunks and slices, which schedules with a shape of their own state."""
    return {key: value for key, value in options.items() if key not in ("vpp", "slices")}


def _variants(options: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The options of every report of a schedule, and what follows its name: with a policy, its fixed order comes first."""
    policy = options.get("policy")
    if policy is None or str(policy).strip().lower() == "fixed":
        return [("", dict(options))]
    return [("", {**options, "policy": "fixed"}), (" ready", dict(options))]
