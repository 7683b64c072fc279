"""Tables and counts as text."""
from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    """``1 rank``, ``4 ranks``, ``2 micro-batches``."""
    return f"{number} {noun}" + ("" if number == 1 else "es" if noun.endswith(("ch", "ss")) else "s")


def ops_and_messages(number: int) -> str:
    """The rows of a timeline: one row alone is an op, because a message needs two of them."""
    return "1 op" if number == 1 else f"{number} ops and messages"


def table_text(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Rows of cells in columns: the first ``left`` are aligned at their left, all others at their right."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) if at < left else cell.rjust(width)
                               for at, (cell, width) in enumerate(zip(row, widths))) for row in rows)
