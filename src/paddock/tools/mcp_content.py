"""What an MCP tool gave back, in our words: text as text, structure as structure, pictures and other bytes as files."""

import binascii
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

from paddock.ports.tools import ToolAnswer, ToolFile
from paddock.tools.answers import encoded, failed, text_part


def answer_of(result: Any) -> ToolAnswer:
    parts: Sequence[Any] = result.content or ()
    texts = [part.text for part in parts if part.type == "text"]
    if result.is_error:
        return failed("\n".join(texts) or "the tool failed and gave no reason")
    structure = result.structured_content
    if any(_base64_in(part) is not None for part in parts):
        # a server that gives structure says it in words as well; one that does not is helped out
        before = [] if texts or structure is None else [text_part(encoded(structure).decode())]
        return ToolAnswer(b"", parts=(*before, *map(_part, parts)))
    if structure is not None:
        return ToolAnswer(encoded(structure))
    if len(texts) == len(parts):
        return ToolAnswer(encoded("\n".join(texts)))
    return ToolAnswer(encoded([_dumped(part) for part in parts]))


def _part(part: Any) -> Mapping[str, Any] | ToolFile:
    data = _base64_in(part)
    if data is None:
        return _dumped(part)
    about = getattr(part, "resource", part)
    try:
        content = b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return text_part(
            f"(a file came along, {about.mime_type or 'of no kind'}, that cannot be read: it is not base64)"
        )
    if (text := _text_in(part, content)) is not None:
        return {"type": "resource", "resource": {"uri": str(about.uri), "mimeType": about.mime_type, "text": text}}
    name = str(about.uri).rstrip("/").rsplit("/", 1)[-1] if part.type == "resource" else None
    return ToolFile(content, about.mime_type, name)


def _text_in(part: Any, content: bytes) -> str | None:
    """Of a resource that is text and comes as bytes."""
    if part.type != "resource" or (part.resource.mime_type or "").startswith("image/"):
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _base64_in(part: Any) -> str | None:
    """Of pictures, sounds, and resources that are no text."""
    if part.type in {"image", "audio"}:
        return part.data
    return getattr(part.resource, "blob", None) if part.type == "resource" else None


def _dumped(part: Any) -> dict[str, Any]:
    return part.model_dump(mode="json", exclude_none=True)
