"""Answers of host calls as MCP content: plain text, because models read that best, and pictures as pictures."""

import json
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import msgspec
from mcp_types import CallToolResult, ContentBlock, ImageContent, TextContent

from paddock.rules.conversations.attachments import IMAGES

SHOWN_BYTES = 3_750_000
"""A picture's, so that it stays below the five million characters providers take; a larger one is only named."""

ReadFile = Callable[[str], Awaitable[bytes | None]]
_encode = msgspec.json.Encoder().encode


def said(text: str, *, is_error: bool = False) -> CallToolResult:
    words = TextContent(type="text", text=text)
    return CallToolResult(content=[words], structured_content=_wrapped(text), is_error=is_error)


async def answered(method: str, answer: Mapping[str, Any], read: ReadFile) -> CallToolResult:
    """Convert an answer: a tool's text as it is, files by type, everything else as JSON. `read` gets a file's bytes."""
    match method:
        case "tools.call":
            return await _of_tool(answer, read)
        case "artifacts.read_range":
            shown = await _picture(answer, read) if not answer.get("offset") else None
            return CallToolResult(content=[shown]) if shown is not None else said(_file_text(answer))
        case _:
            return said(_encode(answer).decode())


async def _of_tool(answer: Mapping[str, Any], read: ReadFile) -> CallToolResult:
    parts = _parts(answer.get("result"))
    if not any(part.get("type") in {"image", "file"} for part in parts):
        return said(_tool_text(answer), is_error=bool(answer.get("is_error")))
    content: list[ContentBlock] = [await _block(part, read) for part in parts]
    if answer.get("artifact"):
        content.append(TextContent(type="text", text=_whole(answer)))
    return CallToolResult(content=content)


def _parts(result: Any) -> list[Mapping[str, Any]]:
    """A result that came in parts, files among them; any other has none."""
    parts = cast("list[Any]", result) if isinstance(result, list) else []
    return [cast("Mapping[str, Any]", part) for part in parts] if all(isinstance(one, dict) for one in parts) else []


async def _block(part: Mapping[str, Any], read: ReadFile) -> ContentBlock:
    if part.get("type") == "image" and (shown := await _picture(part, read)) is not None:
        return shown
    if part.get("type") == "text" and isinstance(part.get("text"), str):
        return TextContent(type="text", text=part["text"])
    return TextContent(type="text", text=_encode(part).decode())


async def _picture(about: Mapping[str, Any], read: ReadFile) -> ImageContent | None:
    """The picture somebody's words are about; None for what is none, or cannot be shown."""
    kind, artifact_id = about.get("mime_type"), about.get("artifact_id")
    if kind not in IMAGES or not isinstance(artifact_id, str):
        return None
    content = await read(artifact_id)
    return ImageContent(data=b64encode(content).decode(), mime_type=str(kind)) if content else None


def _wrapped(text: str) -> dict[str, Any] | None:
    """Only for text that is JSON and no object, such as a number. Gemini CLI takes JSON text for structured content,
    which must be an object, and fails the call if it is none; where we say it ourselves it leaves the text alone."""
    if not text.startswith(tuple('-0123456789["tfn')):
        return None
    try:
        return {"result": value} if not isinstance(value := json.loads(text), dict) else None
    except (ValueError, RecursionError):
        return None


def _tool_text(answer: Mapping[str, Any]) -> str:
    result = answer.get("result")
    text = result if isinstance(result, str) else _encode(result).decode() if result is not None else ""
    if not answer.get("artifact"):
        return text
    return f"{text}\n\n{_whole(answer)}" if text else _whole(answer)


def _whole(answer: Mapping[str, Any]) -> str:
    about = cast("Mapping[str, Any]", answer["artifact"])
    return f"The whole result is the file {about.get('artifact_id')}; read it with artifact_read."


def _file_text(answer: Mapping[str, Any]) -> str:
    """Text as text; bytes stay base64, with what is known of them."""
    content = b64decode(str(answer.get("content_base64") or ""))
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return _encode(answer).decode()
    if "\0" in text:
        return _encode(answer).decode()
    more = answer.get("has_more")
    return f"{text}\n\n[more follows from offset {int(answer['offset']) + len(content)}]" if more else text
