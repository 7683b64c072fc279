"""Keyword arguments as words of the command line, which the library parses."""
from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

REPEATED = {"assume", "inject", "slow"}  # flags that are given once for each value


def _number(value: float) -> str:
    text = repr(value)
    if "e" not in text:
        return text
    from decimal import Decimal

    return format(Decimal(text), "f")


def text_of(value: Any) -> str:
    """A value as one word: ``[1, 0, -1]`` is ``1,0,-1``, ``{"rank": 2, "factor": 1.2}`` is ``rank=2,factor=1.2``."""
    if hasattr(value, "item") and not hasattr(value, "__len__"):
        value = value.item()  # a number of numpy or torch
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if isinstance(value, Mapping):
        return ",".join(f"{key}={text_of(entry)}" for key, entry in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(text_of(entry) for entry in value)
    return str(value)


def flag_of(keyword: str) -> str:
    """The flag of a keyword; one that would be a word of Python ends in an underscore."""
    return "--microbatches" if keyword == "m" else "--" + keyword.rstrip("_").replace("_", "-")


def _values(keyword: str, value: Any) -> list[Any]:
    if keyword == "assume" and isinstance(value, Mapping):
        return [f"{name}={text_of(entry)}" for name, entry in value.items()]
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return list(value) if keyword in REPEATED and is_list else [value]


def words_of(options: Mapping[str, Any]) -> list[str]:
    """One word per option; those that are None or False are left out."""
    words = []
    for keyword, given in options.items():
        for value in _values(keyword, given):
            if value is None or value is False:
                continue
            words.append(flag_of(keyword) if value is True else f"{flag_of(keyword)}={text_of(value)}")
    return words


@contextlib.contextmanager
def temporary_file(suffix: str, content: str = "") -> Iterator[str]:
    """A file with this content, which is removed afterwards."""
    import tempfile

    handle, path = tempfile.mkstemp(suffix=suffix, prefix="bubblescope-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
        yield path
    finally:
        os.unlink(path)


@contextlib.contextmanager
def options_as_words(options: Mapping[str, Any]) -> Iterator[list[str]]:
    """The words of options, among which ``costs`` may be the content of a cost file."""
    if not isinstance(options.get("costs"), Mapping):
        yield words_of(options)
        return
    import json

    with temporary_file(".json", json.dumps(options["costs"])) as path:
        yield words_of({**options, "costs": path})
