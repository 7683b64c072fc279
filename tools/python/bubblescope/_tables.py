"""Tables of text."""
from __future__ import annotations

from collections.abc import Sequence


def table_text(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Rows of cells in columns: the first ``left`` are aligned at their left, all others at their right."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) if at < left else cell.rjust(width)
                               for at, (cell, width) in enumerate(zip(row, widths))) for row in rows)
