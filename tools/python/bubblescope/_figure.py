"""A figure that a notebook shows even where nothing has imported pyplot. Importing this imports matplotlib."""
from __future__ import annotations

import io

import matplotlib.figure


class Figure(matplotlib.figure.Figure):  # type: ignore[misc, unused-ignore]
    """A Figure like any other; without it, a notebook shows the text "<Figure size ...>"."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png")
        return file.getvalue()
