"""Schedules: built by name, read from files, written by hand or by a function."""
from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from . import _core
from ._tables import counted
from ._words import flag_of, options_as_words, path_argument, path_word, temporary_file, text_argument
from .errors import UsageError, WrongTypeError, in_keywords, needs, warn_of
from .reports import Report

if TYPE_CHECKING:
    import numpy
    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Unpack

    from ._options import Options

Rows = Sequence[Union[str, Sequence[str]]]
"""The ops of every rank: ``["0F0 0B0", "1F0 1B0"]`` or ``[["0F0", "0B0"], ["1F0", "1B0"]]``."""
Builder = Callable[..., Rows]
"""A function that returns rows; it is called with the shape: ``build(pp=4, m=8)``."""
AnySchedule = Union[str, "os.PathLike[str]", Builder, "Schedule"]

SHAPE = ("pp", "m", "microbatches", "vpp", "microbatch_group_size", "slices", "moe_overlap", "replicas", "in_flight",
         "profile", "layout", "global_batch_size")

FIXED_BY_ORDER = ("vpp", "microbatch_group_size", "slices", "moe_overlap", "replicas", "in_flight")
"""Options that not every schedule has, and that say no more where there is an order."""

LISTS = ("pytorch-csv-comms",)
"""The formats for which a profile chooses a release's lists."""


class Problem(NamedTuple):
    """One thing that is wrong with a schedule, and where."""

    rank: int | None
    position: int | None
    message: str


def _problem(entry: dict[str, Any]) -> Problem:
    return Problem(entry["rank"], entry["position"], in_keywords(entry["message"]))


class Check:
    """The result of ``check``. It is true where the schedule is legal and keeps within its cap.

    ``over_cap`` has a problem for every rank that holds more than its cap; such a schedule is legal nevertheless.

    >>> import bubblescope as bs
    >>> found = bs.check(bs.Schedule(["0F0 0B0 0F1 0B1", "1F1 1B1 1F0 1B0"]))
    >>> found.legal, found.problems[0].rank, found.problems[0].position
    (False, 0, 1)
    >>> print(found.problems[0].message)
    deadlock: rank 0 at 0B0 waits for 1B0 of rank 1; rank 1 at 1F1 waits for 0F1 of rank 0
    """

    def __init__(self, found: dict[str, Any]) -> None:
        self.json = found
        self.name: str = found["schedule"]
        self.legal: bool = found["legal"]
        self.problems = [_problem(problem) for problem in found["problems"]]
        self.over_cap = [_problem(problem) for problem in found.get("over_cap", [])]
        self.swapped_messages = [_problem(problem) for problem in found.get("swapped_messages", [])]
        self.deadlock: dict[str, bool] = found["deadlock"]
        self.deadlock_cycle: dict[str, str] = found["deadlock_cycle"]
        self.eager_slots_needed: int | None = found["eager_slots_needed"]
        self.peak_activations: list[float] = found["peak_activations"]
        self.suggestion: str | None = found.get("suggestion")

    def __bool__(self) -> bool:
        return self.legal and not self.over_cap

    def __repr__(self) -> str:
        if not self.legal:
            return (f"<Check of {self.name}: not legal, {counted(len(self.problems), 'problem')}: "
                    f"{self.problems[0].message}>")
        modes = [mode for mode, blocks in self.deadlock.items() if blocks]
        found = "deadlocks in " + ", ".join(modes) if modes else "cannot deadlock"
        ranks = counted(len(self.over_cap), "rank")
        over = f", over its cap on {ranks}: {self.over_cap[0].message}" if self.over_cap else ""
        return f"<Check of {self.name}: legal, {found}{over}>"


def _rows_of(rows: Any) -> list[str]:
    """The ops of every rank, as one text each; a text of all has a line for each."""
    if isinstance(rows, str):
        return [text_argument(line, "rows") for line in rows.splitlines() if line.strip()]
    if isinstance(rows, (bytes, Mapping)) or not isinstance(rows, Iterable):
        raise WrongTypeError(f"rows are a list with the ops of every rank, or a text with a line for each, not "
                             f"{type(rows).__name__}; read(path) reads a file")
    return [text_argument(row if isinstance(row, str) else _cells_of(row), "rows") for row in rows]


def _cells_of(row: Any) -> str:
    if isinstance(row, (bytes, Mapping)) or not isinstance(row, Iterable):
        raise WrongTypeError(f"rows: the ops of a rank are a text or a list of texts, not {type(row).__name__}")
    return " ".join("_" if cell is None or cell == "" else text_argument(cell, "an op") for cell in row)


class Schedule:
    """For every rank, the order of its ops.

    Ops are written in PyTorch's grammar: ``2F0`` is the forward of micro-batch 0 through stage 2; ``I`` is an input
    gradient, ``W`` a weight gradient, ``B`` both in one.

    >>> import bubblescope as bs
    >>> s = bs.Schedule([["0F0", "0F1", "0B0", "0B1"], ["1F0", "1B0", "1F1", "1B1"]], name="mine")
    >>> s.pp, s.m, s.simulate().makespan
    (2, 2, 9000000)

    A text has one line per rank: ``bs.Schedule("0F0 0B0\\n1F0 1B0")``. Schedules can be copied and pickled; two are
    equal where names, shapes and orders are.
    """

    def __init__(self, rows: str | Rows, name: str | None = None) -> None:
        named = "schedule" if name is None else text_argument(name, "name")
        self._order = _core.Order.parse(_rows_of(rows), named or "schedule")
        self._named: str | None = None
        self._options: dict[str, Any] = {}

    @classmethod
    def _of(cls, order: _core.Order, named: str | None = None, options: dict[str, Any] | None = None) -> Schedule:
        made = cls.__new__(cls)
        made._order, made._named, made._options = order, named, options or {}
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._order.state(), self._named, self._options)

    @property
    def name(self) -> str:
        """The name that it was built by, that its file states, or that it was given."""
        return self._order.name

    @property
    def pp(self) -> int:
        """The number of ranks."""
        return self._order.pp

    @property
    def m(self) -> int:
        """The number of micro-batches."""
        return self._order.m

    @property
    def vpp(self) -> int:
        """Stages per rank that one micro-batch passes."""
        return self._order.vpp

    @property
    def slices(self) -> int:
        """Slices of a sequence."""
        return self._order.slices

    @property
    def rank_of_stage(self) -> list[int]:
        """The rank that holds each stage."""
        return self._order.rank_of_stage

    @property
    def is_legal(self) -> bool:
        """Whether it can be simulated; ``check()`` says what is wrong with it."""
        return self._order.is_legal

    @property
    def rows(self) -> list[list[str]]:
        """The ops of every rank.

        >>> import bubblescope as bs
        >>> bs.schedule("gpipe", pp=2, m=2).rows
        [['0F0', '0F1', '0B0', '0B1'], ['1F0', '1F1', '1B0', '1B1']]
        """
        return self._order.cells

    def check(self, **options: Unpack[Options]) -> Check:
        """Finds every problem, the message modes in which it deadlocks, and its memory.

        >>> import bubblescope as bs
        >>> found = bs.schedule("zb-h1", pp=4, m=8).check(cap=4)
        >>> bool(found), found.eager_slots_needed, found.peak_activations
        (True, 0, [4.0, 4.0, 4.0, 4.0])
        """
        with temporary_file(".json", self._order.native(), shown=self.name) as path:
            return _check(path, {**self._extra_options("check"), **options})

    def simulate(self, **options: Unpack[Options]) -> Report:
        """Predicts the step.

        >>> import bubblescope as bs
        >>> r = bs.schedule("zb-h1", pp=4, m=8).simulate(f=10, i=10, w=9, p2p=0.4)
        >>> r.makespan, r.ranks[0].peak_activations
        (269800000, 4.0)

        Options that were given to ``schedule`` hold here as well. Costs may be a cost file, or its content:

        >>> stage = {"forward": 10, "input_grad": 10, "weight_grad": 9}
        >>> bs.schedule("zb-h1", pp=2, m=4).simulate(costs={"format": "bubblescope-costs/1", "stages": [stage] * 2}).makespan
        127000000
        """
        merged: dict[str, Any] = {**self._options, **options}
        with options_as_words(merged) as words:
            built = self._rebuilt(words, options)
            return Report(built._order.simulate(words), built, (built, merged))

    def _rebuilt(self, words: list[str], options: Any) -> Schedule:
        """The schedule of this shape and these options: another one where its order depends on them."""
        if self._named is None or not options:
            return self
        if not _core.reads_costs(self._named) and not any(keyword in SHAPE for keyword in options):
            return self
        self._order.expect_shape(words)
        return Schedule._of(_core.Order.load(self._named, words), self._named, {**self._options, **options})

    def simulate_many(self, **costs: ArrayLike) -> NDArray[numpy.int64]:
        """The makespans of many scenarios, whose costs are arrays in milliseconds, in one call.

        ``f``, ``i``, ``w``, ``b`` and ``p2p`` may be arrays with one number per scenario, and all but ``p2p`` with one
        row per scenario and one column per stage (the time of one micro-batch in that stage). Other options hold for all scenarios. Needs numpy.

        >>> import bubblescope as bs
        >>> bs.schedule("1f1b", pp=4, m=8).simulate_many(f=[1, 2, 3], b=2).tolist()
        [33000000, 44000000, 55000000]
        """
        with needs("numpy", "simulate_many"):
            import numpy

        arrays: list[_core.ScenarioCost] = []
        options = dict(self._options)
        for name, value in costs.items():
            numbers = _scenario_numbers(name, value)
            if numbers is None:
                options[name] = value
            else:
                options.pop(name, None)
                arrays.append(_core.ScenarioCost(name, numbers))
        with options_as_words(options) as words:
            return numpy.asarray(self._order.simulate_many(words, arrays), dtype=numpy.int64)

    def convert(self, to: str, **options: Unpack[Options]) -> str:
        """The schedule in another format, of those that ``bubblescope list formats`` names.

        >>> import bubblescope as bs
        >>> print(bs.schedule("gpipe", pp=2, m=1).convert("pytorch-csv"), end="")
        0F0,0B0
        1F0,1B0
        """
        with temporary_file("." + text_argument(to, "to").replace(os.sep, "_")) as output:
            self.save(output, to, **options)
            with open(output, encoding="utf-8") as file:
                text = file.read()
            if text:
                return text
            _remove_parts(output)
            raise UsageError(f"{to} is several files; save(path, {to!r}) writes them")

    def save(self, path: str | os.PathLike[str], to: str = "native", **options: Unpack[Options]) -> None:
        """Writes a file, by default our own json, which keeps all that a schedule says.

        Formats of several files add their endings to ``path``.
        """
        own = self._extra_options("convert")
        name, to = path_argument(path), text_argument(to, "to")
        if to not in LISTS:  # other formats have none of the messages that these are about
            own = {key: value for key, value in own.items() if key not in ("send_budget", "unshard_lookahead")}
        merged: dict[str, Any] = {**own, **options}
        if to not in LISTS and merged.get("profile") is not None:
            if merged.pop("profile") != self._options.get("profile"):
                warn_of(f"profile changes nothing: the order of {self.name} is what it is")
        with temporary_file(".json", self._order.native(), shown=self.name) as native, options_as_words(merged) as words:
            _core.run_command("convert", [native, f"--to={to}", f"--output={name}", *words])

    @classmethod
    def from_torch(cls, schedule: Any, name: str | None = None) -> Schedule:
        """Reads the order of one of PyTorch's pipeline schedules; see ``bubblescope.torch.from_torch``."""
        from . import torch

        return torch.from_torch(schedule, name)

    def to_torch(self) -> dict[int, list[Any]]:
        """The action lists of every rank for PyTorch's runtime; see ``bubblescope.torch.to_torch``."""
        from . import torch

        return torch.to_torch(self)

    def _with(self, options: dict[str, Any]) -> Schedule:
        """The same schedule with options that hold for its steps."""
        merged = {**self._options, **options}
        with options_as_words(merged) as words:
            self._order.expect_shape(words)
            return Schedule._of(self._rebuilt(words, options)._order, self._named, merged)

    def _extra_options(self, command: str) -> dict[str, Any]:
        """The options of the schedule that its file does not say, and that a command has."""
        known = _flags_of(command) if self._options else frozenset()
        return {key: value for key, value in self._options.items()
                if key not in SHAPE and flag_of(key) in known}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and self._order.native() == other._order.native()

    def __hash__(self) -> int:
        return hash((self.name, self.pp, self.m))

    def __repr__(self) -> str:
        return f"<Schedule {self.name}: {counted(self.pp, 'rank')}, {counted(self.m, 'micro-batch')}>"

    def __str__(self) -> str:
        return "\n".join(" ".join(row) for row in self.rows)


def _scenario_numbers(name: str, value: Any) -> NDArray[numpy.float64] | None:
    """The costs of all scenarios, in milliseconds; None for an option that holds for all of them."""
    import numpy

    if isinstance(value, (str, bytes)):
        return None
    if numpy.ma.isMaskedArray(value):
        raise UsageError(f"{name}: a masked array has no number where it is masked; fill it")
    try:
        array = numpy.asarray(value)
        if array.ndim in (1, 2) and 0 not in array.shape[1:] and array.dtype.kind in "fiuO":
            return numpy.ascontiguousarray(array, dtype=numpy.float64)
    except (TypeError, ValueError, OverflowError):
        array = numpy.empty(1, dtype=object)
    if array.ndim == 0:
        return None
    raise UsageError(f"{name}: costs are one number of milliseconds per scenario, or one row with a number per stage")


@functools.lru_cache
def _flags_of(command: str) -> frozenset[str]:
    """The flags of a command, as its help lists them."""
    lines = _core.run_command(command, ["--help"])[1].splitlines()
    return frozenset(name for line in lines if line.startswith("  -") for name in line.split()[0].split(","))


def _restored(state: tuple[bool, str, str, str], named: str | None, options: dict[str, Any]) -> Schedule:
    return Schedule._of(_core.Order.restore(state), named, options)


def _remove_parts(path: str) -> None:
    folder, name = os.path.split(path)
    for part in os.listdir(folder):
        if part.startswith(name) and part != name:
            os.unlink(os.path.join(folder, part))


def schedule(name: AnySchedule, **options: Unpack[Options]) -> Schedule:
    """Builds the schedule of this name, or of a function that returns its rows.

    >>> import bubblescope as bs
    >>> bs.schedule("zb-h1", pp=8, m=64)
    <Schedule zb-h1: 8 ranks, 64 micro-batches>

    A function is called with the shape that was given:

    >>> def one_by_one(pp, m):
    ...     return [[f"{rank}{op}{i}" for i in range(m) for op in "FB"] for rank in range(pp)]
    >>> bs.schedule(one_by_one, pp=2, m=2).rows[1]
    ['1F0', '1B0', '1F1', '1B1']
    """
    given: dict[str, Any] = dict(options)
    name = _without_torch(name)
    if isinstance(name, os.PathLike):
        name = read(name)
    if isinstance(name, Schedule):
        return name._with(given) if given else name
    if isinstance(name, str):
        name = text_argument(name, "name")
        with options_as_words(given) as words:
            return Schedule._of(_core.Order.load(name, words), name, given)
    if not callable(name):
        raise WrongTypeError(f"schedule() takes a name, a path, a function or a Schedule, not {type(name).__name__}; "
                             "Schedule(rows) makes one of the ops of every rank")
    named = {"m" if key == "microbatches" else key: value for key, value in given.items()}
    shape = {key: named[key] for key in ("pp", "m", "vpp", "slices") if key in named}
    made = Schedule(name(**shape), getattr(name, "__name__", "schedule"))
    made._options = {key: value for key, value in given.items() if key not in SHAPE}
    return made


def _without_torch(name: AnySchedule) -> AnySchedule:
    """The name of a class of PyTorch's, which is no function that builds rows."""
    if isinstance(name, type) and name.__module__.startswith("torch."):
        return name.__name__
    if type(name).__module__.startswith("torch."):
        raise WrongTypeError(f"{type(name).__name__} is PyTorch's; bs.Schedule.from_torch(schedule) reads its order")
    return name


def read(path: str | os.PathLike[str]) -> Schedule:
    """Reads a schedule from a file: PyTorch's csv, the text form, DeepSpeed's, or our own json."""
    text = path_argument(path)
    found = text if os.sep in text else os.path.join(os.curdir, text)  # never the name of a schedule
    return Schedule._of(_core.Order.load(found, []))


def simulate(name: AnySchedule, **options: Unpack[Options]) -> Report:
    """Builds a schedule and predicts its step.

    >>> import bubblescope as bs
    >>> r = bs.simulate("1f1b", pp=8, m=64, model="llama3-70b", gpu="h100", tp=8)
    >>> r.json["model"]["name"].split(",")[0]
    'llama3-70b on h100'
    """
    if isinstance(name, (Schedule, os.PathLike)):
        return schedule(name).simulate(**options)
    return schedule(name, **options).simulate()


def check(name: AnySchedule, **options: Unpack[Options]) -> Check:
    """Finds what is wrong with a schedule. A shape that a schedule refuses is one of its problems.

    >>> import bubblescope as bs
    >>> bs.check("chimera", pp=3, m=4).legal
    False
    """
    if isinstance(name, str):
        name = text_argument(name, "name")
        _core.reads_costs(name)  # raises where no schedule has this name
        return _check(name, options)
    if isinstance(name, (Schedule, os.PathLike)):
        return schedule(name).check(**options)
    return schedule(name, **options).check()


def _check(name_or_path: str, options: Any) -> Check:
    import json

    with options_as_words(options) as words:
        _, printed = _core.run_command("check", [path_word(name_or_path), "--format=json", *words])
    found = json.loads(printed)
    if "legal" not in found:
        raise UsageError(f"{name_or_path} is a workload, no schedule; 'bubblescope check {name_or_path}' says what is wrong with it")
    return Check(found)


def schedules() -> list[str]:
    """The names of all schedules.

    >>> import bubblescope as bs
    >>> {"1f1b", "zb-v"} <= set(bs.schedules())
    True
    """
    import json

    listed = json.loads(_core.run_command("list", ["schedules", "--format=json"])[1])
    return [entry["name"] for entry in listed]


def without_times(timed: Schedule) -> Schedule:
    """The schedule of a timeline, whose ops take the times that are given where it is simulated."""
    is_legal, native, _, _ = timed._order.state()
    return Schedule._of(_core.Order.restore((is_legal, native, "", "")))


def step_options(made: Schedule) -> dict[str, Any]:
    """The options that a schedule was made with, and that are of its steps rather than of its shape."""
    return {key: value for key, value in made._options.items() if key not in SHAPE}


def build_compared(name: str, options: dict[str, Any]) -> Schedule:
    """The schedule of this name as ``compare`` builds it, without those options of shapes that it does not have."""
    import warnings

    with warnings.catch_warnings(), options_as_words(options) as words:
        warnings.simplefilter("ignore")  # they were given when it was compared
        order = _core.Order.load_compared(name, words)
    kept = {key: value for key, value in options.items() if key not in FIXED_BY_ORDER}
    return Schedule._of(order, None if _core.is_schedule_file(name) else name, kept)


def is_all(names: object) -> bool:
    """Whether names stand for every schedule that trains."""
    return isinstance(names, str) and names.strip().lower() == "all"


def names_of(names: AnySchedule | Iterable[AnySchedule]) -> list[AnySchedule]:
    """One schedule or several, as a list."""
    names = names if isinstance(names, Iterable) else _without_torch(names)
    if isinstance(names, str):
        return [name.strip() for name in text_argument(names, "names").split(",") if name.strip()]
    if isinstance(names, (Schedule, os.PathLike)) or callable(names):
        return [names]
    if isinstance(names, (bytes, Mapping)) or not isinstance(names, Iterable):
        raise WrongTypeError(f"schedules are given by their names, files or functions, not by {type(names).__name__}")
    return [text_argument(name, "name") if isinstance(name, str) else _without_torch(name) for name in names]


def expand_all(names: list[AnySchedule]) -> list[AnySchedule]:
    """Replaces "all" by every schedule that trains and is not named beside it."""
    expanded: list[AnySchedule] = []
    for name in names:
        if is_all(name):
            expanded += [each for each in _core.trained_schedules() if each not in names and each not in expanded]
        else:
            expanded.append(name)
    return expanded


__all__ = ["AnySchedule", "Builder", "Check", "Problem", "Rows", "Schedule", "check", "expand_all", "is_all", "names_of", "read", "schedule",
           "schedules", "simulate"]
