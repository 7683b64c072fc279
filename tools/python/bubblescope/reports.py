"""Predicted steps: their numbers, their timeline, their pictures."""
from __future__ import annotations

import errno
import operator
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex, Union, overload

from . import _core
from ._tables import counted, ops_and_messages
from ._words import options_as_words, path_argument, text_argument
from .errors import MachineError, UsageError, in_keywords, needs

if TYPE_CHECKING:
    import matplotlib.figure
    import numpy
    import pandas
    from numpy.typing import NDArray

    from .measured import MeasuredRank
    from .schedules import Schedule

MAX_SHOWN = 10_000
"""Ops up to which a notebook shows the timeline itself."""
FORMAT_OF_ENDING = {".svg": "svg", ".html": "html", ".htm": "html", ".pftrace": "perfetto", ".trace.json": "trace",
                    ".json": "save", ".csv": "timeline", ".dot": "dot", ".gv": "dot"}
FIGURES = (".png", ".pdf")
"""Endings of what matplotlib draws."""


Positions = slice  # a timeline has a column of that name


class TimedOp(NamedTuple):
    """One op or message, with its times in nanoseconds."""

    rank: int
    op: str
    start: int
    end: int


class Noise(NamedTuple):
    """The times of a step over many scenarios of noise, in nanoseconds."""

    p5: int
    p50: int
    p95: int
    mean: int
    min: int
    max: int
    makespans: list[int]
    """One time per scenario."""

    @property
    def seeds(self) -> int:
        """The number of scenarios."""
        return len(self.makespans)

    def df(self) -> pandas.DataFrame:
        """A DataFrame with one row per scenario."""
        with needs("pandas", "df()"):
            import pandas

        return pandas.DataFrame({"makespan_ns": self.makespans}).rename_axis("scenario")


class Sensitivity(NamedTuple):
    """By how much longer a step is, in nanoseconds, where some of its ops take longer by the fraction ``more``."""

    more: float
    by_rank: list[int]
    """Where all ops of one rank do: one entry per rank."""
    by_kind: dict[str, int]
    """Where all ops of one kind do: ``F``, ``B``, ``I``, ``W``, ``R`` and so on."""

    def df(self) -> pandas.DataFrame:
        """A DataFrame with one row per rank and per kind of op."""
        with needs("pandas", "df()"):
            import pandas

        rows: list[dict[str, Any]] = [{"rank": rank, "kind": None, "longer_ns": time}
                                      for rank, time in enumerate(self.by_rank)]
        rows += [{"rank": None, "kind": kind, "longer_ns": time} for kind, time in self.by_kind.items()]
        return pandas.DataFrame(rows).astype({"rank": "Int64"})


class Timeline:
    """When every op and message of a step started and ended.

    A report of a long step needs few of its ops, so this is made when it is first asked for. The numbers are numpy
    arrays that refer to the step's own memory. The whole is a table that pandas, polars, pyarrow and DuckDB read
    without copying the times (``__arrow_c_stream__``).

    >>> import bubblescope as bs
    >>> t = bs.schedule("1f1b", pp=2, m=2).simulate().timeline
    >>> len(t), t.start[:3].tolist(), t[0]
    (12, [0, 1000000, 2000000], TimedOp(rank=0, op='0F0', start=0, end=1000000))
    """

    def __init__(self, step: _core.WholeStep, report: Report) -> None:
        self._step = step
        self._report = report

    def __reduce__(self) -> tuple[Any, ...]:
        return operator.attrgetter("timeline"), (self._report,)

    @property
    def start(self) -> NDArray[numpy.int64]:
        """Nanoseconds from the start of the step."""
        return self._step.start

    @property
    def end(self) -> NDArray[numpy.int64]:
        """Nanoseconds from the start of the step."""
        return self._step.end

    @property
    def slack(self) -> NDArray[numpy.int64]:
        """By how much each may be longer without making the step longer."""
        return self._step.slack

    @property
    def rank(self) -> NDArray[numpy.int32]:
        """The rank that runs the op; of a message, the sender."""
        return self._step.rank

    @property
    def peer(self) -> NDArray[numpy.int32]:
        """The receiver of a message; else the rank itself."""
        return self._step.peer

    @property
    def stage(self) -> NDArray[numpy.int32]:
        """The stage that computes, or that sends."""
        return self._step.stage

    @property
    def microbatch(self) -> NDArray[numpy.int32]:
        """The micro-batch of each, from 0."""
        return self._step.microbatch

    @property
    def slice(self) -> NDArray[numpy.int16]:
        """The slice of the sequence; 0 where sequences are whole."""
        return self._step.slice

    @property
    def kind(self) -> NDArray[numpy.uint8]:
        """The kind of each, as an index into ``kinds``."""
        return self._step.kind

    @property
    def kinds(self) -> list[str]:
        """The names of the kinds: ``F``, ``B``, ``I``, ``W``, ``R``, ``SEND_F`` and so on."""
        return _core.kind_names()

    @property
    def ops(self) -> list[str]:
        """The text of each: ``2F0``."""
        return self._step.ops

    def df(self) -> pandas.DataFrame:
        """A DataFrame with one row per op and message.

        >>> import bubblescope as bs
        >>> d = bs.schedule("1f1b", pp=2, m=2).simulate().timeline.df()
        >>> d[d.kind == "B"].end_ns.max().item()
        9000000
        """
        with needs("pandas", "df()"):
            import numpy
            import pandas

        step = self._step
        lanes, lane_of = step.lanes
        critical = numpy.zeros(len(step), dtype=bool)
        critical[step.critical_ids] = True
        columns: dict[str, Any] = {
            "rank": step.rank, "lane": pandas.Categorical.from_codes(numpy.asarray(lane_of, dtype=numpy.int32), lanes),
            "op": step.ops, "kind": pandas.Categorical.from_codes(step.kind.astype(numpy.int8), _kind_categories()),
            "stage": step.stage, "microbatch": step.microbatch, "slice": step.slice, "start_ns": step.start,
            "end_ns": step.end}
        if len(step.slack) == len(step):
            columns["slack_ns"] = step.slack
        columns["critical"] = critical
        return pandas.DataFrame(columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._step.arrow_stream()

    def __len__(self) -> int:
        return len(self._step)

    @overload
    def __getitem__(self, at: SupportsIndex) -> TimedOp: ...
    @overload
    def __getitem__(self, at: Positions) -> list[TimedOp]: ...
    def __getitem__(self, at: SupportsIndex | Positions) -> TimedOp | list[TimedOp]:
        if isinstance(at, Positions):
            return [self[index] for index in range(*at.indices(len(self)))]
        step, at = self._step, operator.index(at)
        if not -len(self) <= at < len(self):
            raise IndexError(f"the timeline has {ops_and_messages(len(self))}, and none at {at}")
        return TimedOp(int(step.rank[at]), step.op(at), int(step.start[at]), int(step.end[at]))

    def __iter__(self) -> Iterator[TimedOp]:
        step = self._step
        return map(TimedOp, step.rank.tolist(), step.ops, step.start.tolist(), step.end.tolist())

    def _render(self, format: str, file: str) -> bytes:
        return self._step.render(format, file)

    def __repr__(self) -> str:
        return f"<Timeline of {self._step.name}: {ops_and_messages(len(self))}>"


Made = tuple[Union[str, "Schedule"], dict[str, Any]]
"""A schedule, or the name that ``compare`` was given, and the options of its step."""


def _predict_again(schedule: str | Schedule, options: dict[str, Any], suffix: str) -> Report:
    import warnings

    with warnings.catch_warnings(), options_as_words(options) as words:
        warnings.simplefilter("ignore")  # they were given when it was first predicted
        if isinstance(schedule, str):
            report = Report(_core.simulate_name(schedule, words), None, (schedule, options))
        else:
            report = Report(schedule._order.simulate(words), schedule, (schedule, options))
    report._suffix = suffix
    return report


def _kind_categories() -> list[str]:
    return [name or "idle" for name in _core.kind_names()]


class Report:
    """A predicted step: its time, its bubbles, the memory of its ranks. Times are whole nanoseconds.

    >>> import bubblescope as bs
    >>> r = bs.schedule("1f1b", pp=4, m=8).simulate()
    >>> r
    <Report of 1f1b: makespan 33 ms, bubble 27.3 %>
    >>> r.ranks[3].idle_by_cause["warmup"], r.lower_bound == r.makespan
    (3000000, True)

    Reports can be copied and pickled: the step is predicted again, from the same options and the files that they name.
    """

    def __init__(self, step: _core.Step, schedule: Schedule | None, made: Made) -> None:
        self._step = step
        self._made = made
        self._timeline: Timeline | None = None
        self._json: dict[str, Any] | None = None
        self._suffix = ""  # follows the name where a schedule has several reports
        self._schedule = schedule

    def __reduce__(self) -> tuple[Any, ...]:
        return _predict_again, (*self._made, self._suffix)

    @property
    def schedule(self) -> Schedule:
        """The schedule whose step this is."""
        if self._schedule is None:  # compare() was given its name
            from .schedules import build_compared

            name, options = self._made
            assert isinstance(name, str)
            self._schedule = build_compared(name, options)
        return self._schedule

    @property
    def name(self) -> str:
        """The schedule's name, and in a comparison what tells it from others: `` ready`` where ``policy`` chooses."""
        return self._step.name + self._suffix

    @property
    def makespan(self) -> int:
        """The whole step, from the first start to the last end."""
        return self._step.makespan

    @property
    def step(self) -> int:
        """The whole step: of the slowest replica, with what follows the pipeline. The makespan without a model."""
        return self._step.step

    @property
    def max_span(self) -> int:
        """The longest of the ranks' own times."""
        return self._step.max_span

    @property
    def ideal(self) -> int:
        """The busy time of the busiest rank."""
        return self._step.ideal

    @property
    def lower_bound(self) -> int:
        """No order of these ops on these ranks is faster."""
        return self._step.lower_bound

    @property
    def period(self) -> int | None:
        """The time per micro-batch of a schedule that never flushes."""
        return self._step.period

    @property
    def bubble(self) -> _core.Bubble:
        """The bubble by each of its definitions: ``ratio``, ``overhead``, ``span_rate`` and ``time``."""
        return self._step.bubble

    @property
    def ranks(self) -> list[_core.RankReport]:
        """Busy and idle time, and memory, of every rank."""
        return self._step.ranks

    @property
    def critical_path(self) -> list[TimedOp]:
        """One chain of ops and messages that makes the step as long as it is."""
        return [TimedOp(*entry) for entry in self._step.critical_path]

    @property
    def problems(self) -> list[str]:
        """The ranks that hold more than their cap."""
        return [in_keywords(problem) for problem in self._step.problems]

    @property
    def noise(self) -> Noise | None:
        """The times of the step under noise, such as ``jitter="5%"``; None without it.

        >>> import bubblescope as bs
        >>> n = bs.simulate("1f1b", pp=4, m=8, jitter="5%", seeds=20).noise
        >>> n.seeds, n.p5 <= n.p50 <= n.p95, len(n.makespans)
        (20, True, 20)
        """
        times = self.json.get("noise")
        if times is None:
            return None
        return Noise(times["p5_ns"], times["p50_ns"], times["p95_ns"], times["mean_ns"], times["min_ns"], times["max_ns"],
                     self._step.noise_makespans)

    @property
    def sensitivity(self) -> Sensitivity | None:
        """By how much longer the step is where one rank, or one kind of op, takes 1 % longer, with ``sensitivity=True``.

        >>> import bubblescope as bs
        >>> s = bs.simulate("1f1b", pp=4, m=8, sensitivity=True).sensitivity
        >>> s.by_rank, s.by_kind["F"]
        ([150000, 180000, 210000, 240000], 110000)
        """
        found = self.json.get("sensitivity")
        return None if found is None else Sensitivity(found["more"], found["by_rank_ns"], found["by_kind_ns"])

    @property
    def timeline(self) -> Timeline:
        """When every op and message started and ended."""
        if self._timeline is None:
            self._timeline = Timeline(self._step.whole(), self)
        return self._timeline

    @property
    def json(self) -> dict[str, Any]:
        """The report as ``simulate --format json`` prints it, with what a model adds."""
        if self._json is None:
            import json

            self._json = json.loads(self._step.json())
        return self._json

    def df(self) -> pandas.DataFrame:
        """A DataFrame with one row per rank.

        >>> import bubblescope as bs
        >>> d = bs.schedule("1f1b", pp=4, m=8).simulate().df()
        >>> d.peak_activations.tolist(), d.idle_ns.tolist()
        ([4.0, 3.0, 2.0, 1.0], [9000000, 9000000, 9000000, 9000000])
        """
        with needs("pandas", "df()"):
            import pandas

        return pandas.DataFrame([row_of_rank(rank, report) for rank, report in enumerate(self.ranks)]).set_index("rank")

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Writes a drawing, a page or a file of the step, by the ending of its name.

        ``.svg``, ``.html`` (zoomable), ``.pftrace`` (Perfetto), ``.trace.json`` (chrome://tracing), ``.json`` (our
        own), ``.csv`` (the timeline), ``.dot``; with ``.gz`` after it, packed. ``.png`` and ``.pdf`` are the figure of
        ``plot()``.
        """
        name = path_argument(path)
        content = self._content(name, None if format is None else text_argument(format, "format"))
        try:
            with open(name, "wb") as file:
                file.write(content)
        except OSError as error:
            kind = MachineError if error.errno in (errno.ENOSPC, errno.EIO) else UsageError
            raise kind(f"cannot create {name}: {error.strerror}; make its folder first, or name another file") from None

    def _content(self, name: str, format: str | None) -> bytes:
        """The content of a file of this name."""
        if format is None and name.endswith(FIGURES):
            import io

            file = io.BytesIO()
            self.plot().savefig(file, format=name[-3:])
            return file.getvalue()
        plain = name.removesuffix(".gz")
        content = self.timeline._render(format or format_of(plain), plain)
        if plain == name:
            return content
        import gzip

        return gzip.compress(content)

    def plot(self, width: float = 7.0) -> matplotlib.figure.Figure:
        """A figure of the timeline for a paper, this many inches wide. Needs matplotlib."""
        from .plots import plot_timeline

        return plot_timeline(self, width)

    def __repr__(self) -> str:
        return f"<Report of {self.name}: makespan {time_text(self.makespan)}, bubble {100 * self.bubble.ratio:.1f} %>"

    def __str__(self) -> str:
        return self._step.text()

    def _repr_html_(self) -> str:
        import html

        ops = self._step.op_count
        if ops > MAX_SHOWN:
            return f"<pre>{html.escape(repr(self))}</pre><p>{counted(ops, 'op')}: save('step.html') shows them all</p>"
        page = self.timeline._render("html", "step.html").decode()
        return (f'<iframe srcdoc="{html.escape(page)}" title="{html.escape(self.name)}" '
                f'style="width:100%;height:{_height(len(self.ranks))}px;border:1px solid #ccc"></iframe>')


def _height(ranks: int) -> int:
    return min(720, 420 + 24 * ranks)


def row_of_rank(rank: int, report: _core.RankReport | MeasuredRank) -> dict[str, Any]:
    """The row of a rank, predicted or measured, in a DataFrame."""
    row: dict[str, Any] = {"rank": rank, "busy_ns": report.busy, "idle_ns": report.idle,
                           "first_start_ns": report.first_start, "last_end_ns": report.last_end, "sends": report.sends,
                           "peak_chunks": report.peak_chunks, "peak_activations": report.peak_activations,
                           "peak_units": report.peak_units}
    if report.peak_memory_bytes is not None:
        row["peak_memory_bytes"] = report.peak_memory_bytes
    row.update({f"busy_{kind}_ns": time for kind, time in (report.busy_by_kind or {}).items()})
    row.update({f"idle_{cause}_ns": time for cause, time in (report.idle_by_cause or {}).items()})
    return row


def expect_format(format: str) -> str:
    """The name of a format, if a step has one of that name."""
    if format not in FORMAT_OF_ENDING.values():
        raise UsageError(f"format: {format!r} is none of {', '.join(dict.fromkeys(FORMAT_OF_ENDING.values()))}")
    return format


def format_of(path: str) -> str:
    """The format that the ending of a path stands for."""
    for ending, name in FORMAT_OF_ENDING.items():
        if path.endswith(ending):
            return name
    raise UsageError(f"{path}: no format has this ending; end it in one of {', '.join(FORMAT_OF_ENDING)}, or give format")


def time_text(nanoseconds: int) -> str:
    """``33 ms``: four digits in the largest unit that fits."""
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.4g} {unit}"
    return f"{nanoseconds} ns"
