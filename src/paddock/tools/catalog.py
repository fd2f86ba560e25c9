"""Catalog of this host's tools, joined from their sources (the `Tools` port), and the form of their answers. Of two
tools with one name the earlier source wins."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import structlog
from pydantic_core import PydanticSerializationError, to_json

from paddock.ports.tools import ToolAnswer, ToolFile, ToolInfo, Tools, ToolUse

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
    """Encode a function's result: JSON, or bytes that are no text, alone or in a list. Raises NotJsonError."""
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
    if not isinstance(piece, bytes | bytearray):
        return False
    try:
        piece.decode()
    except UnicodeDecodeError:
        return True
    return False


log = structlog.get_logger("paddock.tools")


class ToolCatalog:
    def __init__(self, sources: Sequence[Tools]) -> None:
        self._sources = tuple(sources)

    def list(self, workspace: str) -> Sequence[ToolInfo]:
        found: dict[str, ToolInfo] = {}
        for source in self._sources:
            for tool in source.list(workspace):
                found.setdefault(tool.name, tool)
        return [*found.values()]

    def find(self, workspace: str, name: str) -> ToolInfo | None:
        return next((tool for source in self._sources if (tool := source.find(workspace, name))), None)

    async def call(self, use: ToolUse) -> ToolAnswer:
        source = next((one for one in self._sources if one.find(use.workspace_id, use.name)), None)
        if source is None:
            return failed(f"the tool {use.name} is not there any more")
        try:
            return await source.call(use)
        except Exception:
            log.exception("a source of tools failed", action="tools.call", tool=use.name, run_id=use.run_id)
            text = f"the host failed while {use.name} was at work; whether it did its work is not known"
            return failed(text, unknown=True)
