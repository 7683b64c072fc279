"""A measured job under other schedules."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Union

from ._tables import counted, table_text
from .errors import ProblemError, UsageError, WrongTypeError, in_keywords, needs
from .reports import time_text
from .schedules import Schedule

if TYPE_CHECKING:
    import pandas

TRY_OPTIONS = {"microbatches", "split_b", "vpp"}
Names = Union[str, Iterable[str]]
Counts = Union[int, str, Iterable[int], None]


class Tries:
    """Predicted steps of a measured job with other schedules; ``Analysis.try_`` makes them.

    It holds a mapping for every schedule and number of micro-batches, as ``analyze --try --format json`` prints it. The
    first is the measured schedule, with which the others are compared.
    """

    def __init__(self, found: dict[str, Any], costs: dict[str, Any], schedule: Schedule | None) -> None:
        self.json = found
        self.rows: list[dict[str, Any]] = found["tries"]
        self.costs = costs
        """The costs and the noise that were fitted to the trace, as ``simulate(costs=...)`` takes them."""
        self.fit_error: float = found["fit_error"]
        """By how much these costs miss the measured step, as a fraction of it."""
        self.notes: list[str] = [in_keywords(note) for note in found["try_notes"]]
        """Sentences on the assumptions that were made."""
        self.without: list[dict[str, Any]] = found["without"]
        """The gain of the measured schedule without each cause of its length, the largest first."""
        self._schedule = schedule

    @property
    def measured(self) -> dict[str, Any]:
        """The measured schedule."""
        return self.rows[0]

    @property
    def best(self) -> dict[str, Any]:
        """The other schedule with the shortest time per micro-batch, which may be longer than the measured one."""
        for row in self.rows:
            if row.get("best"):
                return row
        raise ProblemError(self._reasons())

    @property
    def schedule(self) -> Schedule:
        """The order of the best one: ``t.schedule.save("best.csv", "pytorch-csv")``, ``t.schedule.to_torch()``."""
        if self._schedule is None:
            raise ProblemError(self._reasons())
        return self._schedule

    def df(self) -> pandas.DataFrame:
        """A DataFrame with one row per schedule and number of micro-batches."""
        with needs("pandas", "df()"):
            import pandas

        usual = {"measured": False, "best": False, "problem": None}
        return pandas.DataFrame([{**row, **{key: row.get(key, value) for key, value in usual.items()}}
                                 for row in self.rows])

    def _reasons(self) -> str:
        refused = [f"{row['schedule']} with {counted(row['microbatches'], 'micro-batch')}: {in_keywords(row['problem'])}"
                   for row in self.rows if "problem" in row]
        return "none of the schedules can be run: " + "; ".join(refused)

    def _footnotes(self) -> list[str]:
        """The sentences that the program prints below its table."""
        lines = ["change: of the time per micro-batch, against the measured schedule with the same costs",
                 f"(fitted to the trace: with them the measured schedule takes {time_text(self.measured['step_ns'])}, "
                 f"{100 * abs(self.fit_error):.2g} % off)"]
        tried = [row for row in self.rows[1:] if "problem" not in row]
        if tried and not any(row["change_p5"] < row["change_p95"] for row in tried):
            lines.append("note: the measured steps show no spread, so that no range can be given")
        return lines + [f"note: {note}" for note in self.notes]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, at: int) -> dict[str, Any]:
        return self.rows[at]

    def __repr__(self) -> str:
        lines = [["schedule", "m", "step", "change", "p5 to p95", "memory"]]
        lines += [_cells_of(row) for row in self.rows if "problem" not in row]
        refused = [f"{row['schedule']}, m={row['microbatches']}: {in_keywords(row['problem'])}"
                   for row in self.rows if "problem" in row]
        return "\n".join([table_text(lines), *refused, *self._footnotes()])

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(repr(self))}</pre>"


def _cells_of(row: dict[str, Any]) -> list[str]:
    spread = f"{100 * row['change_p5']:+.1f} to {100 * row['change_p95']:+.1f} %"  # "-": equal steps, or one, show none
    change = [f"{100 * row['change']:+.1f} %", spread if row["change_p5"] < row["change_p95"] else "-"]
    name = row["schedule"]
    if "chunks" in row:
        name += f", vpp={row['chunks']}"
    if row.get("measured"):
        name += " (measured)"
    step = row.get("measured_ns", row["step_ns"])  # that of the measured schedule; the fitted one is nearly as long
    return [name, str(row["microbatches"]), time_text(step), *(["", ""] if row.get("measured") else change),
            f"{row['memory_ratio']:.2f} x"]


INSTEAD = {"costs_out": "the fitted costs are tries.costs",
           "try_out": "tries.schedule is the best one; its save(path, \"pytorch-csv\") writes it",
           "costs_per": "costs are mean times per stage, which any number of micro-batches takes"}


def expect_try_options(options: Mapping[str, Any]) -> None:
    """Raises where a keyword is not one of a try, but of the trace or of files."""
    for key in options:
        if key in TRY_OPTIONS:
            continue
        if key in INSTEAD:
            raise UsageError(f"{key} is not a keyword here: {INSTEAD[key]}")
        if key == "cap":
            raise UsageError("cap is not a keyword here: analyze(cap=...) checks the measured steps; what a schedule holds "
                             "is the peak_units of its row, in micro-batches of a rank's whole share")
        raise UsageError(f"{key} is not a keyword here: try_ takes m, {', '.join(sorted(TRY_OPTIONS - {'microbatches'}))}; "
                         "what analyze takes is given to it")


def names_to_try(names: Names) -> list[str]:
    """The names as a list; "all" stands for every schedule that trains and suits the job."""
    if isinstance(names, str):
        return [name.strip() for name in names.split(",") if name.strip()]
    if isinstance(names, (bytes, Mapping)) or not isinstance(names, Iterable):
        raise WrongTypeError(f"schedules are given by their names, not by {type(names).__name__}")
    listed = list(names)
    for name in listed:
        if not isinstance(name, str):
            raise UsageError("a schedule is tried at the shape of the trace, so that it must be built by its name; "
                             "s.simulate(costs=tries.costs) predicts one of your own")
    return listed


__all__ = ["Counts", "Names", "Tries", "expect_try_options", "names_to_try"]
