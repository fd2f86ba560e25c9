"""How the outcome of a tool is said: JSON for the model, files beside it, and a sentence when something went wrong."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic_core import PydanticSerializationError, to_json

from paddock.ports.tools import ToolAnswer, ToolFile

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


def given(value: Any) -> ToolAnswer:
    """What a function gave back: JSON, or bytes that are no text, alone or in a list. Raises NotJsonError."""
    pieces = cast("Sequence[Any]", value) if isinstance(value, list | tuple) else (value,)
    if not any(_is_file(piece) for piece in pieces):
        return ToolAnswer(encoded(value))
    return ToolAnswer(b"", parts=tuple(_part(piece) for piece in pieces))


def text_part(text: str) -> Mapping[str, Any]:
    return {"type": "text", "text": text}


def _part(piece: Any) -> Mapping[str, Any] | ToolFile:
    if _is_file(piece):
        return ToolFile(bytes(piece))
    return text_part(piece if isinstance(piece, str) else encoded(piece).decode())


def _is_file(piece: Any) -> bool:
    """Bytes that can be read as text are text."""
    if not isinstance(piece, bytes | bytearray):
        return False
    try:
        piece.decode()
    except UnicodeDecodeError:
        return True
    return False
