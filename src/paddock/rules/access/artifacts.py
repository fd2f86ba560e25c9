"""Read access to artifacts, and their descriptions. Pure."""

from typing import cast

import msgspec

from paddock.rules.access.permissions import Grant
from paddock.rules.rows.rows import ArtifactRow
from paddock.rules.values import Value
from paddock_sdk.protocol.artifacts import ArtifactMetadata, ArtifactRef, ArtifactSource


class NewArtifact(Value, frozen=True):
    """A file to keep, and its owner. `name` and `claimed_mime` are the sender's claims, not checked."""

    workspace_id: str
    source: ArtifactSource
    artifact_type: str = "file"
    name: str | None = None
    claimed_mime: str | None = None
    user_id: str | None = None
    session_id: str | None = None
    subthread_id: str | None = None
    run_id: str | None = None
    agent_id: str | None = None
    runner_id: str | None = None
    published: bool = False
    metadata: bytes = b""


def of_run(
    grant: Grant, source: ArtifactSource, *, artifact_type: str = "file", name: str | None = None
) -> NewArtifact:
    """Something made in a run: readable by its agent in this conversation until it is published there."""
    at = grant.scope
    return NewArtifact(
        workspace_id=at.workspace_id,
        source=source,
        artifact_type=artifact_type,
        name=name,
        user_id=at.user_id,
        session_id=at.session_id,
        subthread_id=at.subthread_id,
        run_id=at.run_id,
        agent_id=at.agent_id,
        runner_id=grant.runner_id,
    )


def is_expired(row: ArtifactRow, now: float) -> bool:
    return row.expires_at is not None and row.expires_at <= now


def may_read(grant: Grant, row: ArtifactRow, now: float) -> bool:
    """Its own; its agent's in this conversation; published in this conversation; given with its settings."""
    at = grant.scope
    if row.workspace_id != at.workspace_id or is_expired(row, now):
        return False
    if row.artifact_id in grant.files or row.run_id == at.run_id:
        return True
    if not row.published:
        return _is_here(grant, row) and row.agent_id == at.agent_id
    return _is_here(grant, row) or (grant.history_scope == "workspace" and row.conversation_id is not None)


def _is_here(grant: Grant, row: ArtifactRow) -> bool:
    at = grant.scope
    return (row.conversation_id, row.thread_id) == (at.session_id, at.subthread_id)


def may_publish(grant: Grant, row: ArtifactRow, now: float) -> bool:
    """An agent may mention in its conversation what it may read there."""
    return may_read(grant, row, now) and _is_here(grant, row)


def described(row: ArtifactRow) -> ArtifactMetadata:
    return ArtifactMetadata(
        artifact_id=row.artifact_id,
        artifact_type=row.artifact_type,
        mime_type=row.mime_type,
        name=row.name,
        size_bytes=row.size,
        sha256=row.sha256,
        source=cast("ArtifactSource", row.source),
        conversation_id=row.conversation_id,
        run_id=row.run_id,
        runner_id=row.runner_id,
        created_at=row.created_at,
        expires_at=row.expires_at,
        metadata=msgspec.json.decode(row.metadata) if row.metadata else {},
    )


def ref_to(row: ArtifactRow) -> ArtifactRef:
    return ArtifactRef(
        artifact_id=row.artifact_id,
        artifact_type=row.artifact_type,
        mime_type=row.mime_type,
        size=row.size,
        name=row.name,
        source=row.source,
    )


def safe_name(name: str | None) -> str | None:
    """The last part of a name, without anything a file system or a header could stumble over."""
    if name is None:
        return None
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    shown = "".join(char for char in last if char.isprintable() and char not in '<>:"|?*').strip(" .")
    return shown[:200] or None
