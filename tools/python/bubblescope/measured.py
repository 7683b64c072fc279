"""Parts of a measured step, under the names that those of a predicted one have."""
from __future__ import annotations

import csv
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, SupportsIndex

from . import _core
from ._tables import ops_and_messages
from .errors import needs
from .reports import Positions, TimedOp

if TYPE_CHECKING:
    import pandas


class TraceFolder:
    """A temporary folder of traces, which is deleted when nothing refers to it any more, or the process ends."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="bubblescope-run-")
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def without_path(self, text: str) -> str:
        """The text with its files by their own names."""
        return text.replace(self.path + os.sep, "")

    def __deepcopy__(self, _: Any) -> TraceFolder:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()  # another process does not keep it


class MeasuredBubble(dict[str, Any]):
    """The bubble of a measured step by each of its definitions: ``b.ratio``, or ``b["ratio"]`` as in json.

    >>> import bubblescope as bs, os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "step.trace.json")
    >>> bs.schedule("1f1b", pp=2, m=4).simulate().save(path)
    >>> bs.analyze(path).bubble.ratio
    0.2
    """

    @property
    def ratio(self) -> float:
        """The idle share of all ranks' time."""
        return float(self["ratio"])

    @property
    def overhead(self) -> float:
        """The time above the ideal, relative to the ideal: Megatron-LM's definition."""
        return float(self["overhead"])

    @property
    def span_rate(self) -> float:
        """The zero-bubble papers' rate: of the longest span of a rank."""
        return float(self["span_rate"])

    @property
    def time(self) -> int:
        """The time above the ideal, in nanoseconds."""
        return int(self["time_ns"])


class MeasuredRank:
    """Busy and idle time of a rank, in nanoseconds, and the activations that it holds at its peak.

    All are None where the rank has no trace.
    """

    def __init__(self, entry: dict[str, Any]) -> None:
        self.rank: int = entry["rank"]
        self.busy: int | None = entry["busy_ns"]
        """The time of its ops; with ``idle`` it is the makespan."""
        self.idle: int | None = entry["idle_ns"]
        """The time in which it runs no op."""
        self.first_start: int | None = entry["first_start_ns"]
        """The start of its first op."""
        self.last_end: int | None = entry["last_end_ns"]
        """The end of its last op."""
        self.sends: int | None = entry["sends"]
        """The messages that it sends."""
        self.peak_chunks: float | None = entry["peak_chunks"]
        """The stage chunks whose activations it holds at its peak."""
        self.peak_activations: float | None = entry["peak_activations"]
        """The same in micro-batches of its whole share."""
        self.peak_units: float | None = entry["peak_units"]
        """The same in the unit of ``mem``."""
        self.peak_memory_bytes: int | None = entry.get("peak_memory_bytes")
        """All that it holds, in bytes; None where nothing gives bytes."""
        self.busy_by_kind: dict[str, int] | None = entry["busy_by_kind_ns"]
        """The time of its ops by kind: ``F``, ``B``, ``I``, ``W``, ``R`` and so on."""
        causes = entry["idle_by_cause_ns"]
        self.idle_by_cause: dict[str, int] | None = causes and {**dict.fromkeys(_core.cause_names(), 0), **causes}
        """Its idle time by cause; None where the trace supports no conclusion."""

    def __repr__(self) -> str:
        return f"MeasuredRank(rank={self.rank}, busy={self.busy}, idle={self.idle}, sends={self.sends})"


class MeasuredTimeline:
    """When every op and message of the median step started and ended, from the step's first op on.

    >>> import bubblescope as bs, os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "step.trace.json")
    >>> bs.schedule("1f1b", pp=2, m=4).simulate().save(path)
    >>> bs.analyze(path).timeline[0]
    TimedOp(rank=0, op='0F0', start=0, end=1000000)
    """

    def __init__(self, write: Callable[[], str]) -> None:
        self._write = write
        self._text: str | None = None
        self._ops: list[TimedOp] | None = None

    def csv(self) -> str:
        """The timeline as ``analyze --timeline`` writes it."""
        if self._text is None:
            self._text = self._write()
        return self._text

    def df(self) -> pandas.DataFrame:
        """A DataFrame with one row per op and message, with the columns of ``Report.timeline.df()``, and the number of
        rows of the same rank."""
        import io

        with needs("pandas", "timeline.df()"):
            import pandas

        frame = pandas.read_csv(io.StringIO(self.csv()))
        slices = frame.op.str.extract(r"\.([0-9]+)$", expand=False).fillna(0).astype("int16")
        frame.insert(frame.columns.get_loc("microbatch") + 1, "slice", slices)
        frame["critical"] = frame.critical.fillna(0).astype(bool)  # empty where the trace supports no conclusion
        return frame

    def __call__(self) -> pandas.DataFrame:
        """The same as ``df()``."""
        return self.df()

    def _all(self) -> list[TimedOp]:
        if self._ops is None:
            self._ops = [TimedOp(int(row["rank"]), row["op"], int(row["start_ns"]), int(row["end_ns"]))
                         for row in csv.DictReader(self.csv().splitlines())]
        return self._ops

    def __len__(self) -> int:
        return len(self._all())

    def __getitem__(self, at: SupportsIndex | Positions) -> TimedOp | list[TimedOp]:
        try:
            return self._all()[at]
        except IndexError:
            raise IndexError(f"the timeline has {ops_and_messages(len(self))}, and none at {at}") from None

    def __iter__(self) -> Iterator[TimedOp]:
        return iter(self._all())

    def __repr__(self) -> str:
        return f"<MeasuredTimeline: {ops_and_messages(len(self))}>"
