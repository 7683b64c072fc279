"""Flags and words that are no keyword of a function, because a method or an attribute of its result does the same."""
from __future__ import annotations

import re

_REPORT = "bs.simulate(...)"


def _saved(name: str) -> str:
    return f"a report writes it: {_REPORT}.save(\"{name}\")"


_FILES = {"dot": "step.dot", "html": "step.html", "pdf": "step.pdf", "perfetto": "step.pftrace", "png": "step.png",
          "save": "step.json", "svg": "step.svg", "timeline": "step.csv", "trace": "step.trace.json"}
_PRINTED = "results are values: .json is what '--format json' prints, print(...) shows the text, and .df() is a DataFrame"
_OUTPUT = 'results have methods that write them: s.save("mine.csv", "pytorch-csv") a schedule, r.save("step.html") a report'
ABOUT_OUTPUT = ("all_ranks", "each", "fail_if", "format", "output", "wide")
"""The flags that say what a command prints or where, which no function has."""
INSTEAD: dict[str, str] = {
    **{keyword: _saved(name) for keyword, name in _FILES.items()},
    "all_ranks": "the printed report is cut to fit a terminal; .ranks and .df() have every rank",
    "backend": "the package predicts; 'bubblescope run' and 'bubblescope compare' measure on backends, and bs.torch.run "
               "with PyTorch",
    "csv": "results are values: .df() is a DataFrame, which to_csv writes",
    "df": "results have it: .df()",
    "each": "call the function once for each trace",
    "fail_if": "results are values, to be compared in Python: bs.simulate(...).bubble.ratio > 0.1",
    "format": _PRINTED,
    "json": _PRINTED,
    "o": _OUTPUT,
    "out": _OUTPUT,
    "output": _OUTPUT,
    "plot": f"a report draws it: {_REPORT}.plot()",
    "results": "it keeps what was measured on a backend; 'bubblescope compare --backend' has it",
    "shapes": "call the function once for each shape",
    "wide": "the printed table is cut to fit a terminal; .df() has all columns",
}
_UNKNOWN = re.compile(r"no flag is called ('\w+'(?: \([^()]*\))?(?:, '\w+'(?: \([^()]*\))?)*)")


def describe(keyword: str) -> str:
    """The answer to a keyword that is none: how the same is done in Python."""
    return f"{keyword} is not a keyword here: {INSTEAD[keyword]}"


def explain(message: str) -> str:
    """The message on unknown keywords, with what does the same in Python where there is something."""
    found = _UNKNOWN.match(message)
    unknown: list[tuple[str, str]] = re.findall(r"'(\w+)'( \([^()]*\))?", found[1]) if found else []
    answers = [describe(name) for name, _ in unknown if name in INSTEAD]
    if not answers:
        return message
    return "; ".join(answers + [f"no keyword is called '{name}'{hint}" for name, hint in unknown if name not in INSTEAD])
