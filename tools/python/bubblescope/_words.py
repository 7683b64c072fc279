"""Keyword arguments as words of the command line, which the library parses."""
from __future__ import annotations

import contextlib
import numbers
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ._elsewhere import ABOUT_OUTPUT, describe
from .errors import UsageError, WrongTypeError, named_in_messages

REPEATED = {"assume", "inject", "merge", "slow"}  # flags that are given once for each value


def _number(value: float) -> str:
    text = repr(value)
    if "e" not in text:
        return text
    from decimal import Decimal

    return format(Decimal(text), "f")


def _plain(value: Any) -> Any:
    """Numbers and arrays of numpy, pandas and torch as Python's own; other iterables as lists."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        return value
    return list(value)


def _expect_writable(text: str, what: str) -> str:
    """The text, where the library and files can hold it."""
    if "\0" in text:
        raise UsageError(f"{what}: {text!r} has a zero character; leave it out")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{what}: {text!a} cannot be written as UTF-8; use another name") from None
    return text


def text_argument(text: Any, what: str) -> str:
    """An argument that is a text; ``what`` names it in messages."""
    if not isinstance(text, str):
        raise WrongTypeError(f"{what}: {type(text).__name__} is not a text")
    return _expect_writable(str(text), what)


def path_argument(path: Any, what: str = "path") -> str:
    """An argument that is a path, as text."""
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        raise WrongTypeError(f"{what}: {type(text).__name__} is not a path; give a text or a pathlib.Path")
    if not text:
        raise UsageError(f"{what}: there is none; name a file")
    return _expect_writable(text, what)


def text_of(value: Any) -> str:
    """A value as one word: ``[1, 0, -1]`` is ``1,0,-1``, ``{"rank": 2, "factor": 1.2}`` is ``rank=2,factor=1.2``."""
    value = _plain(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if isinstance(value, Mapping):
        return ",".join(f"{str(key).replace('_', '-')}={text_of(entry)}" for key, entry in value.items())
    if isinstance(value, list):
        return ",".join(text_of(entry) for entry in value)
    if value is None or isinstance(value, (str, numbers.Number)):
        return str(value)
    raise WrongTypeError(f"{type(value).__name__} is not a type of a value; give a text, a number or a list of them")


def keywords_of(words: list[str]) -> dict[str, Any]:
    """The keywords of flags and their values: ``--pp 4 --fsdp`` is ``{"pp": "4", "fsdp": True}``."""
    keywords: dict[str, Any] = {}
    for at, word in enumerate(words):
        if not word.startswith("-") or word == "-":
            continue
        following = words[at + 1:at + 2]
        value: Any = following[0] if following and (following[0] == "-" or following[0][0] != "-") else True
        name = word.lstrip("-").replace("-", "_")
        keywords[name] = [*keywords.get(name, []), value] if name in REPEATED else value
    return keywords


def flag_of(keyword: str) -> str:
    """The flag of a keyword; one that would be a word of Python ends in an underscore."""
    return "--microbatches" if keyword == "m" else "--" + keyword.rstrip("_").replace("_", "-")


def _values(keyword: str, value: Any) -> list[Any]:
    if keyword == "assume" and isinstance(value, Mapping):
        return [f"{name}={text_of(entry)}" for name, entry in value.items()]
    return value if keyword in REPEATED and isinstance(value, list) else [value]


def _words_of(keyword: str, given: Any) -> list[str]:
    _expect_writable(keyword, "keyword")
    if flag_of(keyword) in ("--help", "--h"):
        raise UsageError("help is not a keyword here; help(bubblescope.simulate) and the like explain functions, and "
                         "'bubblescope simulate --help' all flags")
    if keyword in ABOUT_OUTPUT:
        raise UsageError(describe(keyword))
    value = _plain(given)
    if value is None or value is False:
        return []
    if value is True:
        return [flag_of(keyword)]
    if isinstance(value, str) and value.lower() in ("true", "false", "yes", "no", "on", "off"):
        raise UsageError(f"{keyword}: {value!r} is a text; a flag without a value is set by True")
    try:
        texts = [_expect_writable(text_of(each), keyword) for each in _values(keyword, value)]
    except WrongTypeError as error:
        raise WrongTypeError(f"{keyword}: {error}") from None
    return [f"{flag_of(keyword)}={text}" for text in texts or [""]]


def words_of(options: Mapping[str, Any]) -> list[str]:
    """One word per value; options that are None or False are left out.

    A flag that takes a value is refused where it has none, so that no flag takes the next word for its value.
    """
    return [word for keyword, given in options.items() for word in _words_of(keyword, given)]


def path_word(path: Any) -> str:
    """A path as a word that is not a flag."""
    text = path_argument(path)
    return os.path.join(os.curdir, text) if text.startswith("-") and text != "-" else text


@contextlib.contextmanager
def temporary_file(suffix: str, content: str = "", shown: str = "") -> Iterator[str]:
    """A file with this content, which is removed afterwards. Messages name it as ``shown``."""
    import tempfile

    prefix = "bubblescope-costs-" if shown == "costs" else "bubblescope-"  # the binding knows this name
    handle, path = tempfile.mkstemp(suffix=suffix, prefix=prefix)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
        with named_in_messages(path, shown or path):
            yield path
    finally:
        os.unlink(path)


def _json_of(costs: Mapping[str, Any]) -> str:
    """The content of a cost file, whose numbers may be of numpy and the like."""
    import json

    def plain(value: Any) -> Any:
        made = dict(value) if isinstance(value, Mapping) else _plain(value)
        if made is value:
            raise WrongTypeError(f"costs: {type(value).__name__} is not a type of a cost; give numbers of milliseconds")
        return made

    try:
        return json.dumps(costs, default=plain, allow_nan=False)
    except (ValueError, TypeError, RecursionError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"costs: {error}") from None


@contextlib.contextmanager
def options_as_words(options: Mapping[str, Any]) -> Iterator[list[str]]:
    """The words of options, among which ``costs`` may be the content of a cost file."""
    costs = options.get("costs")
    if not isinstance(costs, (str, os.PathLike, Mapping, bool, type(None))):
        raise WrongTypeError(f"costs: give a cost file or its content, a mapping, not {type(costs).__name__}")
    if not isinstance(costs, Mapping):
        yield words_of(options)
        return
    with temporary_file(".json", _json_of(costs), shown="costs") as path:
        yield words_of({**options, "costs": path})
