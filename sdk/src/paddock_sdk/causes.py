"""Describe exceptions in words, for people who know nothing of the classes behind them."""

import re
from collections.abc import Mapping
from typing import Any, cast

_OF_A_CLASS = re.compile(r"a valid dictionary(?: or (?:an )?(?:instance of|object to extract fields from).*)?$")
_INSTANCE = re.compile(r" or (?:an )?instance of \S+|an instance of \S+")
NO_REASON = "no reason was given"
SILENT = (
    (TimeoutError, "it took too long"),
    (ConnectionError, "the connection broke"),
    (RecursionError, "it is nested too deeply"),
    (MemoryError, "it needs more memory than there is"),
    (AssertionError, "a check of the program failed"),
    (NotImplementedError, "this is not implemented"),
)
"""Exceptions that often come without a text."""


def cause_of(error: BaseException) -> str:
    """Return what went wrong, out of however many groups it is wrapped in, without the name of a class."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    if isinstance(error, KeyError) and len(error.args) == 1:
        return f"the key {error.args[0]!r} is missing"
    if text := str(error).strip():
        return text
    return next((words for kind, words in SILENT if isinstance(error, kind)), NO_REASON)


def complaint_of(problem: Mapping[str, Any]) -> str:
    """Return the text of one problem that pydantic found, without its prefix and without the names of classes."""
    text = str(problem["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return _INSTANCE.sub("", _OF_A_CLASS.sub("an object", text))
