"""Pieces of a message that are not words: pictures that a model is to be shown, files it is told of. Pure.

A picture stands in a message by reference until the model is asked; `album.py` reads it then.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from paddock_runners.toolkit.attachments import can_be_shown, name_of
from paddock_runners.toolkit.values import listing, mapping
from paddock_sdk.protocol.artifacts import ArtifactRef

FILES = frozenset({"image", "file"})


def picture_part(ref: ArtifactRef) -> dict[str, Any]:
    return {"type": "picture", "picture": ref}


def pictures_of(said: Mapping[str, Any]) -> list[ArtifactRef]:
    """The pictures that stand in a message."""
    return [part["picture"] for part in listing(said.get("content")) if part.get("type") == "picture"]


def in_words(said: Mapping[str, Any]) -> dict[str, Any]:
    """Replace pictures in a message by words. A tool's own words name its pictures; others are named here."""
    pictures = pictures_of(said)
    if not pictures:
        return dict(said)
    words = [part["text"] for part in said["content"] if part["type"] == "text"]
    named = [] if said["role"] == "tool" else [f"(attached: {name_of(ref)}, {ref.artifact_id})" for ref in pictures]
    return {**said, "content": "\n".join([*words, *named])}


def pictures_in(result: object) -> list[ArtifactRef]:
    """The pictures that a tool gave back, in the words of the host: parts with the id of an artifact."""
    found = [_ref(part) for part in _files_in(result) if part.get("type") == "image"]
    return [ref for ref in found if ref is not None and can_be_shown(ref)]


def parts_in_words(result: object) -> str | None:
    """A result that came in parts, files among them, as a model reads it. None for every other."""
    if not _files_in(result):
        return None
    return "\n".join(map(_told, listing(result)))


def _files_in(result: object) -> Sequence[Mapping[str, Any]]:
    parts = [mapping(part) for part in listing(result)]
    return [part for part in parts if part.get("type") in FILES and ("artifact_id" in part or "problem" in part)]


def _ref(part: Mapping[str, Any]) -> ArtifactRef | None:
    artifact_id, mime_type, size, name = (part.get(key) for key in ("artifact_id", "mime_type", "size", "name"))
    if not isinstance(artifact_id, str) or not isinstance(mime_type, str):
        return None
    return ArtifactRef(
        artifact_id=artifact_id,
        mime_type=mime_type,
        size=size if type(size) is int else None,
        name=name if isinstance(name, str) else None,
    )


def _told(piece: object) -> str:
    part = mapping(piece)
    if part.get("type") == "text" and isinstance(part.get("text"), str):
        return part["text"]
    if part.get("type") not in FILES:
        return json.dumps(piece, ensure_ascii=False, separators=(",", ":"))
    kind = "picture" if part["type"] == "image" else "file"
    about = [str(part[key]) for key in ("name", "mime_type", "artifact_id") if part.get(key)]
    problem = f"; {part['problem']}" if part.get("problem") else ""
    return f"({kind}: {', '.join(about)}{problem})"
