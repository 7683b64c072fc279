"""Exceptions, and messages in Python's words: the flag ``--p2p-mode`` is the keyword ``p2p_mode``."""
from __future__ import annotations

import contextlib
import re
import sys
import warnings
from collections.abc import Iterator

from ._elsewhere import explain


class Error(Exception):
    """Every error of the library.

    ``details`` holds what the program would print beside it, such as the drawing of a deadlock.

    >>> import bubblescope as bs
    >>> try:
    ...     bs.schedule("1f1b", pp=4, m=8).simulate(p2p_mod="fifo")
    ... except bs.Error as error:
    ...     print(error)
    no flag is called 'p2p_mod'; did you mean 'p2p_mode'? ('bubblescope simulate --help' shows them all)
    """

    details: str = ""


class UsageError(Error, ValueError):
    """A wrong argument, or a file that cannot be read."""


class WrongTypeError(UsageError, TypeError):
    """An argument of a wrong type."""


class MissingPackageError(Error, ImportError):
    """A function needs an optional package that is not installed."""


class ProblemError(Error):
    """A problem of what was asked about: a schedule that is not legal, or that deadlocks."""


class MachineError(Error, RuntimeError):
    """The machine failed: a full disk, a device that is missing."""


@contextlib.contextmanager
def needs(package: str, function: str) -> Iterator[None]:
    """Imports inside are those of an optional package, which this function needs."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        raise MissingPackageError(f"{function} needs {package}; install it with 'pip install {package}'") from None


_COMMAND = re.compile(r"('bubblescope [^']*')")
_FLAG = re.compile(r"(?<![\w/-])--([A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*)|(?<![\w-])-m\b")
_CALL = re.compile(r"'bubblescope (simulate|check|compare|search)( [^' -][^' ]*)?((?: --?[a-z][a-z0-9-]* [0-9]+)+)'")
_SHOWN: dict[str, str] = {}
"""Names of temporary files in messages."""


@contextlib.contextmanager
def named_in_messages(path: str, name: str) -> Iterator[None]:
    """Messages have this name for the path meanwhile."""
    _SHOWN[path] = name
    try:
        yield
    finally:
        del _SHOWN[path]


def _keyword(flag: str) -> str:
    return "m" if flag in ("-m", "--microbatches") else flag.lstrip("-").replace("-", "_")


def _call_of(command: re.Match[str]) -> str:
    """A command line that stands for an example as a call: ``bs.simulate("1f1b", pp=4, m=8)``."""
    words = command[3].split()
    given = [f'"{command[2].strip()}"'] if command[2] else []
    given += [f"{_keyword(flag)}={value}" for flag, value in zip(words[::2], words[1::2])]
    return f"bs.{command[1]}({', '.join(given)})"


def in_keywords(message: str) -> str:
    """The message with keywords for flags, except in command lines."""
    for path, name in list(_SHOWN.items()):
        message = message.replace(path, name)
    parts = _COMMAND.split(_CALL.sub(_call_of, message))
    for at in range(0, len(parts), 2):
        parts[at] = _FLAG.sub(lambda flag: _keyword(flag[0]), parts[at])
    return "".join(parts)


def make_error(kind: type[Error], message: str, details: str) -> Error:
    """An exception with its details, which also follow it in a traceback."""
    error = kind(explain(in_keywords(message)))
    error.details = details
    if details and hasattr(error, "add_note"):
        error.add_note(details)
    return error


def warn_of(messages: str) -> None:
    """Warns of every message of the library, for the user's line that called it."""
    level = 2
    frame = sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        level += 1
        frame = frame.f_back
    for message in messages.splitlines():
        if message.startswith("wrote "):
            continue
        text = in_keywords(message.removeprefix("bubblescope: "))
        warnings.warn(text, UserWarning, stacklevel=level)
