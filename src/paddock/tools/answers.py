"""How the outcome of a tool is said: JSON for the model, and a sentence when something went wrong."""

from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from paddock.ports.tools import ToolAnswer

MAX_ERROR_CHARS = 2000


class NotJsonError(Exception):
    """A tool gave back something that cannot be said in JSON."""


def encoded(value: Any) -> bytes:
    """A tool's result as JSON. Dataclasses, pydantic models, dates and the like are said in the usual way."""
    try:
        return to_json(value, inf_nan_mode="strings")  # JSON has no such numbers
    except (PydanticSerializationError, UnicodeError, RecursionError) as error:
        raise NotJsonError(f"the tool gave back a {type(value).__name__}, which cannot be said in JSON") from error


def failed(sentence: str, *, unknown: bool = False) -> ToolAnswer:
    """An error the model can read."""
    return ToolAnswer(to_json({"error": sentence[:MAX_ERROR_CHARS]}), is_error=True, unknown=unknown)
