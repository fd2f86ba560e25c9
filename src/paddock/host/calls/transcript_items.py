"""A row of the transcript as runners see it, and how much room it takes in an answer."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from paddock.rules.access.permissions import Grant
from paddock.rules.log.events import INLINE_BYTES
from paddock.rules.rows.rows import TranscriptRow
from paddock.rules.run.outputs import as_object
from paddock_sdk.protocol.artifacts import ArtifactRef

MAX_ANSWER_BYTES = 2 * 1024 * 1024
"""Items in one answer; a frame may have twice that, so the last item to fit never bursts it."""
MAX_ITEM_BYTES = 3 * 1024 * 1024
ENVELOPE_BYTES = 512
SMALL = 100_000
"""So short an item fits a frame, whatever it is made of."""

_encode = msgspec.json.Encoder().encode


def weight_of(row: TranscriptRow) -> int:
    """About how many bytes an item takes on the wire: its text, and what else it has beside it."""
    return ENVELOPE_BYTES + len(_encode(row.content)) + len(row.content_json) + len(row.metadata)


def is_oversize(row: TranscriptRow) -> bool:
    """Tell if no frame can hold an item. A short one is known by its length: a character takes at most six bytes."""
    at_most = ENVELOPE_BYTES + 6 * len(row.content) + len(row.content_json) + len(row.metadata)
    return at_most > MAX_ITEM_BYTES and weight_of(row) > MAX_ITEM_BYTES


def item_of(row: TranscriptRow, grant: Grant, cursor: str, *, with_artifacts: bool = False) -> dict[str, Any]:
    """The fields of a `TranscriptItem`; a page of them is checked in one go.

    An item that no frame can hold is there without its text, and its metadata says how long that is.
    """
    metadata = _metadata(row.metadata) if row.metadata else {}
    speaker: Mapping[str, Any] = metadata.pop("actor", None) or {}
    if row.run_id is not None:
        metadata["run_id"] = row.run_id
    content: str | None = row.content
    whole: dict[str, Any] | None = msgspec.json.decode(row.content_json) if row.content_json else None
    refs = list(_refs(whole)) if with_artifacts and whole else []
    if len(row.content) + len(row.content_json) + len(row.metadata) > SMALL and is_oversize(row):
        metadata |= {"oversize_bytes": len(row.content.encode())}
        content = whole = None
    elif row.item_type == "tool_result":
        content = None
    elif whole is not None and row.item_type == "message":
        whole = _beside_the_text(whole)
    elif whole is not None and row.item_type == "system":
        speaker = as_object(whole.get("actor"))
        whole = _event(whole)
    if not speaker and row.role == "user" and row.session_id == grant.scope.conversation_id:
        speaker = {"actor_type": "user", "actor_id": grant.scope.user_id}
    return {
        "transcript_id": row.item_id,
        "event_id": f"{row.session_id}.{row.seq}",
        "conversation_id": row.session_id,
        "thread_id": row.subthread_id,
        "bot_id": row.agent_id,
        "workspace_id": grant.scope.workspace_id,
        "role": row.role,
        "item_type": row.item_type,
        "actor_type": speaker.get("actor_type"),
        "actor_id": speaker.get("actor_id"),
        "actor_name": speaker.get("actor_name"),
        "content": content,
        "content_json": whole,
        "attachment_refs": refs,
        "seq": row.seq,
        "cursor": cursor,
        "created_at": row.created_at,
        "metadata": metadata,
    }


def _beside_the_text(whole: Mapping[str, Any]) -> dict[str, Any] | None:
    """A message without its words, which the item's text has; None when nothing is left but who said them."""
    content = whole.get("content")
    blocks = cast("Sequence[Any]", content) if isinstance(content, list) else ()
    others = [block for block in blocks if "text" not in as_object(block)]
    rest = {name: value for name, value in whole.items() if name != "content"}
    left: dict[str, Any] = {**rest, "content": others} if others else rest
    return left if left.keys() - {"role", "id"} else None


def _event(whole: Mapping[str, Any]) -> dict[str, Any]:
    """Event of an item without its reply target; large data is read by `events.get`."""
    data = whole.get("data")
    left = {name: value for name, value in whole.items() if name not in {"delivery", "data", "tools"}}
    return {**left, "data": data} if data and len(_encode(data)) <= INLINE_BYTES else left


def _metadata(stored: bytes) -> dict[str, Any]:
    metadata: dict[str, Any] = msgspec.json.decode(stored)
    for drawn in ("ui_schema", "ui_compiler"):  # for people; an agent has the words
        metadata.pop(drawn, None)
    return metadata


def _refs(whole: Mapping[str, Any]) -> Iterator[ArtifactRef]:
    """The files an item points to: how they are called and what they are, never their bytes."""
    content = whole.get("content")
    blocks: Sequence[Any] = cast("Sequence[Any]", content) if isinstance(content, list) else ()
    for block in (*blocks, whole.get("artifact")):
        if isinstance(block, dict) and (ref := _ref(cast("Mapping[str, Any]", block))):
            yield ref


def _ref(block: Mapping[str, Any]) -> ArtifactRef | None:
    artifact_id = block.get("artifact_id") or block.get("id")
    if not isinstance(artifact_id, str):
        return None
    return ArtifactRef(
        artifact_id=artifact_id,
        artifact_type=_text(block, "artifact_type"),
        mime_type=_text(block, "mime_type", "mimeType"),
        size=size if isinstance(size := block.get("size") or block.get("size_bytes"), int) else None,
        name=_text(block, "name", "filename", "file_name"),
        source=_text(block, "source"),
    )


def _text(block: Mapping[str, Any], *names: str) -> str | None:
    return next((value for name in names if isinstance(value := block.get(name), str)), None)
