"""Plans, searches and analyses: long questions whose answers are tables."""
from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Union

from . import _core
from ._tables import counted, table_text
from ._words import flag_of, keywords_of, options_as_words, path_argument, path_word, temporary_file, text_argument
from .errors import ProblemError, UsageError, WrongTypeError, in_keywords, named_in_messages, needs
from .measured import MeasuredBubble, MeasuredRank, MeasuredTimeline, TraceFolder
from .reports import Report, TimedOp, expect_format, format_of, row_of_rank, time_text
from .schedules import Schedule, read, simulate, without_times
from .tries import Counts, Names, Tries, expect_try_options, names_to_try

if TYPE_CHECKING:
    import pandas
    from typing_extensions import Unpack

    from ._options import AnalyzeOptions, PlanOptions, SearchOptions, TryOptions

OF_TRACES = {"--rules", "--mem", "--cap", "--release", "--saved-fraction", "--max-input"}
"""The flags of ``analyze`` that say how a trace is read; they hold whenever it is read again."""
SEARCH_ONLY = ("placement", "objective", "time_limit", "effort", "seed")
Paths = Union[str, "os.PathLike[str]", Iterable[Union[str, "os.PathLike[str]"]]]


def _run(name: str, words: list[str], options: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    import json

    with options_as_words(options) as more:
        status, printed = _core.run_command(name, [*words, "--format=json", *more])
    try:
        return status, json.loads(printed)
    except json.JSONDecodeError:
        raise UsageError(f"with these options {name} prints no single report: {', '.join(options)}") from None


def _content(path: str) -> dict[str, Any]:
    import json

    with open(path, encoding="utf-8") as file:
        content: dict[str, Any] = json.load(file)
    return content


def _with_costs_named(command: str) -> str:
    """The command with a name for the costs, whose file is gone."""
    import shlex

    words = shlex.split(command)
    words[words.index("--costs") + 1] = "costs"
    return shlex.join(words)


MAX_SHOWN = 10
"""Configurations that a printed plan shows."""


class Plan:
    """Configurations, the best first. It is empty where none fits.

    Each is a mapping, as ``plan --format json`` prints it; ``df()`` has all of them. Printed, and in a notebook, a plan
    is the table of its first ones:

    >>> import bubblescope as bs
    >>> print(bs.plan(pp=[4, 8], m=32, schedules="1f1b,zb-h1", f=10, i=10, w=9))
    #  schedule  pp  vpp   m     step  bubble  peak act
    1  zb-h1      4    1  32   961 ms    3.4%         4
    2  zb-h1      8    1  32  1.005 s    7.7%         8
    3  1f1b       4    1  32  1.015 s    8.6%         4
    4  1f1b       8    1  32  1.131 s   17.9%         8
    """

    def __init__(self, found: dict[str, Any], costs: Any = None) -> None:
        self.json = found
        self._costs = costs  # the content of a cost file; the commands name it `costs`
        if costs is not None:
            for plan in found["plans"]:
                plan["command"] = _with_costs_named(plan["command"])
        self.plans: list[dict[str, Any]] = found["plans"]

    @property
    def best(self) -> dict[str, Any]:
        """The first configuration, as ``plan --format json`` prints it."""
        if not self.plans:
            reasons = "; ".join(f"{entry['schedule']}: {entry['reason']}" for entry in self.json.get("refused", []))
            raise ProblemError(in_keywords(f"no configuration fits: {reasons}" if reasons else "no configuration fits"))
        return self.plans[0]

    def report(self, at: int = 0) -> Report:
        """The step of a configuration: of the best one, or of the one at that place.

        >>> import bubblescope as bs
        >>> p = bs.plan(pp=[4, 8], m=32, schedules="1f1b,zb-h1", f=10, i=10, w=9)
        >>> p.report()
        <Report of zb-h1: makespan 961 ms, bubble 3.4 %>
        """
        import shlex

        plan = self[at] if self.plans else self.best  # which says why there is none
        _, _, name, *words = shlex.split(plan["command"])
        costs = {} if self._costs is None else {"costs": self._costs}
        options: dict[str, Any] = {**keywords_of(words), **costs}
        return simulate(name, **options)

    def df(self) -> pandas.DataFrame:
        """A DataFrame with one row per configuration."""
        with needs("pandas", "df()"):
            import pandas

        return pandas.json_normalize(self.plans)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.plans)

    def __len__(self) -> int:
        return len(self.plans)

    def __getitem__(self, at: int) -> dict[str, Any]:
        try:
            return self.plans[at]
        except IndexError:
            raise IndexError(f"the plan has {counted(len(self), 'configuration')}, and none at {at}") from None

    def __repr__(self) -> str:
        if not self.plans:
            return "<Plan: no configuration fits>"
        best = self.best
        return f"<Plan: {counted(len(self), 'configuration')}, best {best['schedule']} in {time_text(best['step_ns'])}>"

    def __str__(self) -> str:
        if not self.plans:
            return repr(self)
        shown = self.plans[:MAX_SHOWN]
        rows = [["#", *_column_names(shown)]]
        rows += [[str(at), *_cells_of(plan)] for at, plan in enumerate(shown, 1)]
        more = len(self) - len(shown)
        return table_text(rows, left=2) + (f"\n... and {more} more: df() has them all" if more else "")

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(str(self))}</pre>"


def _column_names(plans: list[dict[str, Any]]) -> list[str]:
    if not plans[0]["layout"]:  # without a model
        return ["schedule", "pp", "vpp", "m", "step", "bubble", "peak act"]
    return ["schedule", "pp", "vpp", "tp", "cp", "ep", "dp", "mbs", "m", "recompute", "step", "bubble", "mfu", "peak GiB"]


def _cells_of(plan: dict[str, Any]) -> list[str]:
    step, bubble = time_text(plan["step_ns"]), f"{100 * plan['bubble_ratio']:.1f}%"
    if not plan["layout"]:
        shape = [plan[key] for key in ("schedule", "pp", "vpp", "microbatches")]
        return [*map(str, shape), step, bubble, f"{plan['peak_activations']:.4g}"]
    shape = [plan[key] for key in ("schedule", "pp", "vpp", "tp", "cp", "ep", "dp", "micro_batch_size", "microbatches")]
    recompute = ",".join(plan.get("recompute_modules", [])) or plan["recompute"]
    return [*map(str, shape), recompute, step, bubble, f"{100 * plan['mfu']:.1f}%",
            f"{plan['peak_memory_bytes'] / 2**30:.1f}"]


def plan(**options: Unpack[PlanOptions]) -> Plan:
    """Ranks schedules and shapes, for given costs or for a model on a cluster.

    Keywords are the flags of ``bubblescope plan``; where those take several numbers, lists do.

    >>> import bubblescope as bs
    >>> p = bs.plan(pp=[4, 8], m=[16, 32], schedules=["1f1b", "zb-h1"], f=10, i=10, w=9, cap=8)
    >>> len(p), p.best["schedule"]
    (8, 'zb-h1')
    """
    if "shard" in options:
        raise UsageError("shard: one part of a plan is no plan; run 'bubblescope plan --shard' on each machine, and give "
                         "merge= their files here")
    given = options.get("schedules")
    if given is not None and not isinstance(given, (str, bool)):
        names = list(given) if isinstance(given, Iterable) else [given]
        if not all(isinstance(name, str) for name in names):
            raise UsageError("schedules: a plan builds schedules of many shapes, so that each is given by its name")
        options = {**options, "schedules": names}
    costs = options.get("costs")
    return Plan(_run("plan", [], options)[1], costs if isinstance(costs, Mapping) else None)


class Search:
    """The schedule that a search found, and what it proved about it."""

    def __init__(self, found: dict[str, Any], schedule: Schedule, costs: dict[str, Any]) -> None:
        self.json = found
        self.schedule = schedule
        self._costs = costs
        self.value: int = found["value_ns"]
        """The time of this schedule that was minimized, in nanoseconds."""
        self.bound: int = found["bound_ns"]
        """No schedule within the limits is better."""
        self.proved_optimal: bool = found["proved_optimal"]
        self.gap: float = found["gap"]
        self.claim: str = found["claim"]

    @property
    def report(self) -> Report:
        """The step of the schedule under the costs of the search."""
        return self.schedule.simulate(**self._costs)

    def __repr__(self) -> str:
        return f"<Search: {time_text(self.value)}, {self.claim}>"


def search(**options: Unpack[SearchOptions]) -> Search:
    """Finds a schedule for given costs and memory, and bounds how good any could be.

    Keywords are the flags of ``bubblescope search``. Ctrl-C ends the search with the best schedule so far.

    >>> import bubblescope as bs
    >>> found = bs.search(pp=2, m=3, cap=2)
    >>> found.proved_optimal, found.report.makespan == found.value
    (True, True)
    """
    with temporary_file(".json") as path:
        _, found = _run("search", [f"--output={path}"], options)
        schedule = read(path)
    costs = {key: value for key, value in options.items() if key not in SEARCH_ONLY and key != "vpp"}
    return Search(found, schedule, costs)


def _timeline_csv(paths: list[str], options: dict[str, Any], _: object) -> str:
    with temporary_file(".csv") as path:
        _run("analyze", [*paths, f"--timeline={path}"], options)
        with open(path, encoding="utf-8") as file:
            return file.read()


class Analysis:
    """A measured trace as a report, whose numbers have the names of a ``Report``'s. Times are whole nanoseconds.

    ``json`` is what ``analyze --format json`` prints, and ``print`` shows the program's text.

    >>> import bubblescope as bs, os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "step.trace.json")
    >>> bs.schedule("1f1b", pp=4, m=8).simulate().save(path)
    >>> a = bs.analyze(path)
    >>> a.makespan, round(a.bubble.ratio, 4), a.ranks[3].idle_by_cause["warmup"]
    (33000000, 0.2727, 3000000)
    >>> a.schedule == bs.schedule("1f1b", pp=4, m=8)
    True
    """

    def __init__(self, paths: list[str], options: dict[str, Any], found: dict[str, Any],
                 folder: TraceFolder | None = None) -> None:
        self._paths = paths
        self._options = {key: value for key, value in options.items() if flag_of(key) in OF_TRACES}
        self._split_b = options.get("split_b")
        self._schedule: Schedule | None = None
        self.json = found
        self._folder = folder  # of the traces, if it is deleted when nothing refers to it any more
        self.timeline = MeasuredTimeline(functools.partial(_timeline_csv, paths, self._options, folder))
        """When every op and message of the median step started and ended."""

    @property
    def name(self) -> str:
        """The schedule that was recognized in the measured order."""
        return str(self.json["schedule"])

    @property
    def schedule(self) -> Schedule:
        """The order that was measured, in the median step."""
        if self._schedule is None:
            with temporary_file(".json") as path:
                self.save(path)
                self._schedule = without_times(read(path))
        return self._schedule

    @property
    def makespan(self) -> int:
        """The mean time of the pipeline's ops."""
        return int(self.json["makespan_ns"])

    @property
    def max_span(self) -> int:
        """The longest of the ranks' own times."""
        return int(self.json["max_span_ns"])

    @property
    def ideal(self) -> int:
        """The busy time of the busiest rank."""
        return int(self.json["ideal_ns"])

    @property
    def lower_bound(self) -> int | None:
        """No order of these ops on these ranks is faster; None where the trace supports no conclusion."""
        bound = self.json["lower_bound_ns"]
        return None if bound is None else int(bound)

    @property
    def period(self) -> int | None:
        """The time per micro-batch of a schedule that never flushes."""
        period = self.json.get("period_ns")
        return None if period is None else int(period)

    @property
    def step(self) -> int | None:
        """The mean time of whole steps, with what follows the pipeline, of the slowest replica; None if ranges around the
        ops leave it open."""
        step = self.json["step_ns"]
        return None if step is None else int(step)

    @property
    def bubble(self) -> MeasuredBubble | None:
        """The bubble by each of its definitions; None where the trace supports no conclusion."""
        bubble = self.json["bubble"]
        return None if bubble is None else MeasuredBubble(bubble)

    @property
    def ranks(self) -> list[MeasuredRank]:
        """Busy and idle time, and memory, of every rank."""
        return [MeasuredRank(entry) for entry in self.json["ranks"]]

    @property
    def critical_path(self) -> list[TimedOp]:
        """One chain of ops and messages that makes the step as long as it is; empty where the trace supports none."""
        return [TimedOp(entry["rank"], entry["op"], entry["start_ns"], entry["end_ns"])
                for entry in self.json["critical_path"] or []]

    @property
    def trust(self) -> dict[str, Any]:
        """How far the trace explains its own times: the verdict, and why."""
        return self.json["trust"]  # type: ignore[no-any-return]

    @property
    def causes(self) -> list[dict[str, Any]]:
        """The causes that make steps long, the largest first: ``cause``, ``where``, and the time that each step would save
        without it. The idle time of each rank by cause is ``ranks[0].idle_by_cause``."""
        return self.json["causes"] or []

    def df(self) -> pandas.DataFrame:
        """A DataFrame with one row per rank, with the columns of ``Report.df()`` and those of json."""
        with needs("pandas", "df()"):
            import pandas

        frame = pandas.DataFrame([row_of_rank(rank.rank, rank) for rank in self.ranks]).set_index("rank")
        json = pandas.json_normalize(self.json["ranks"]).set_index("rank")
        return frame.join(json[[name for name in json.columns if name not in frame.columns]])

    def iterations(self) -> pandas.DataFrame:
        """A DataFrame with one row per measured step."""
        with needs("pandas", "iterations()"):
            import pandas

        return pandas.DataFrame(self.json["per_iteration"])

    def timeline_csv(self) -> str:
        """The timeline as ``analyze --timeline`` writes it."""
        return self.timeline.csv()

    def try_(self, schedules: Names, m: Counts = None, **options: Unpack[TryOptions]) -> Tries:
        """Predicts this job with other schedules and numbers of micro-batches, which keep their measured size.

        ``schedules`` are names; "search" looks for an order, and "all" stands for every schedule that suits the job,
        the best first. ``vpp`` are chunks per rank, for schedules that leave them open. A trace with whole backwards
        needs ``split_b=0.5``, the input gradient's part of them, for schedules that split them. All else that
        ``analyze`` takes is about the trace, and is given there.

        >>> import bubblescope as bs, os, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = os.path.join(folder.name, "run.trace.json")
        >>> bs.schedule("zb-h1", pp=4, m=8).simulate(f=10, i=11, w=9, p2p=0.4).save(path)
        >>> tries = bs.analyze(path).try_(["1f1b", "zb-v"], m=[8, 16])
        >>> tries
        schedule           m      step   change  p5 to p95  memory
        zb-h1 (measured)   8  280.8 ms                      1.00 x
        1f1b               8  336.4 ms  +19.8 %          -  1.00 x
        1f1b              16  581.2 ms   +3.5 %          -  1.00 x
        zb-v               8  261.7 ms   -6.8 %          -  1.00 x
        zb-v              16  501.7 ms  -10.7 %          -  1.00 x
        change: of the time per micro-batch, against the measured schedule with the same costs
        (fitted to the trace: with them the measured schedule takes 280.8 ms, 0 % off)
        note: the measured steps show no spread, so that no range can be given
        note: zb-v has 8 stages, the trace 4: the work of each counts as spread evenly within it
        note: layers are split among the stages as in the trace: another split may take more or less time, which no interval covers
        >>> tries.best["schedule"], tries.best["microbatches"], tries.schedule
        ('zb-v', 16, <Schedule zb-v: 4 ranks, 16 micro-batches>)
        >>> tries.schedule.simulate(costs=tries.costs).makespan == tries.best["step_ns"]
        True
        """
        if (self.json.get("trust") or {}).get("verdict") == "none":
            raise ProblemError(f"nothing can be predicted from these steps: {self.trust['why'][0]}")
        expect_try_options(options)
        split = {} if self._split_b is None else {"split_b": self._split_b}
        asked = {**self._options, **split, "try": names_to_try(schedules), "m": m, **options}
        with temporary_file(".json") as costs, temporary_file(".json") as best:
            words = [*self._paths, f"--costs-out={costs}"]
            try:
                _, found = _run("analyze", [*words, f"--try-out={best}"], asked)
                return Tries(found, _content(costs), read(best))
            except ProblemError:  # none of them can be run, or the trace cannot be used
                _, found = _run("analyze", words, asked)
                return Tries(found, _content(costs), None)

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Writes a drawing or a file of the median step, by the ending of its name, as ``Report.save`` does.

        Pictures that matplotlib draws, ``.png`` and ``.pdf``, are of reports alone.
        """
        name = path_argument(path)
        kind = format_of(name.removesuffix(".gz")) if format is None else expect_format(text_argument(format, "format"))
        _run("analyze", [*self._paths, f"--{kind}={name}"], self._options)

    def __repr__(self) -> str:
        return f"<Analysis of {self.name}: makespan {time_text(self.makespan)}, trust {self.trust['verdict']}>"

    def __str__(self) -> str:
        with options_as_words(self._options) as words:
            text = _core.run_command("analyze", [*self._paths, *words])[1]
        return self._folder.without_path(text) if self._folder else text

    def _repr_html_(self) -> str:
        import html

        with temporary_file(".html") as path:
            self.save(path)
            with open(path, encoding="utf-8") as file:
                page = file.read()
        return (f'<iframe srcdoc="{html.escape(page)}" title="trace" '
                f'style="width:100%;height:600px;border:1px solid #ccc"></iframe>')


def analyze(paths: Paths, **options: Unpack[AnalyzeOptions]) -> Analysis:
    """Reports on measured traces: files or folders of PyTorch's profiler, Nsight Systems, or our own.

    >>> import bubblescope as bs, os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "step.trace.json")
    >>> bs.schedule("1f1b", pp=2, m=4).simulate().save(path)
    >>> a = bs.analyze(path)
    >>> a.makespan, a.trust["verdict"]
    (15000000, 'good')
    """
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    if isinstance(paths, bytes) or not isinstance(paths, Iterable):
        raise WrongTypeError(f"traces are given by their paths, not by {type(paths).__name__}")
    return analyze_files([path_word(path) for path in paths], dict(options))


def analyze_files(names: list[str], options: dict[str, Any], folder: TraceFolder | None = None) -> Analysis:
    """The same for paths as words. The folder is kept for as long as the analysis is."""
    import json

    if folder is None:
        return Analysis(names, options, _run("analyze", names, options)[1])
    with named_in_messages(folder.path + os.sep, ""):
        found = _run("analyze", names, options)[1]
    return Analysis(names, options, json.loads(folder.without_path(json.dumps(found, ensure_ascii=False))), folder)
