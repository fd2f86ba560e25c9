"""Files by reference: kept, described, read in ranges and streams. Every read by a run takes the grant that allows it.

Bytes are stored under their hash (`ports/artifacts.py`); rows say to whom they belong. Other modules call `keep` for
large results, and `find` and `pieces` for a user's file.
"""

import asyncio
import binascii
import math
import uuid
from base64 import b64decode, b64encode
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import msgspec
import structlog

from paddock.host.calls.work import CallHandler
from paddock.ports import KeptRecords
from paddock.ports.artifacts import Blobs, RawContent, RawReader
from paddock.rules.access.artifacts import (
    NewArtifact,
    described,
    is_expired,
    may_publish,
    may_read,
    of_run,
    ref_to,
    safe_name,
)
from paddock.rules.access.limits import MAX_ARTIFACT_INLINE_BYTES, MAX_RANGE_BYTES
from paddock.rules.access.permissions import Grant
from paddock.rules.content_types import content_type
from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError
from paddock.rules.rows.rows import ArtifactRow, ArtifactsCap, AuditRow, UploadsCap
from paddock.rules.run.results import ARTIFACT_REFUSED, Result
from paddock.rules.values import Value, replace
from paddock_sdk.protocol import host_calls
from paddock_sdk.protocol.artifacts import ArtifactMetadata, ArtifactReadResult, ArtifactRef

PIECE_BYTES = 65_536
PREVIEW_CHARS = 2_000
LARGE_RESULT_BYTES = 32 * 1024
"""A result above this is kept as an artifact, with a preview in its place."""
MAX_METADATA_BYTES = 16 * 1024
MAX_TYPE_CHARS = 64
KEEP_SECONDS = 30.0
RECORDED = {"artifact_id", "artifact_type", "mime_type", "name", "size_bytes", "metadata"}
"""Fields on record. The digest is not among them: a file may be erased, or expire, before the log."""

log = structlog.get_logger("paddock.artifacts")


class ArtifactLimits(Value, frozen=True):
    """Limits of size and time; None means no limit."""

    keep_seconds: float | None = 30 * 86_400.0
    workspace_bytes: int = 10 * 1024**3
    file_bytes: int = 100 * 1024**2


@dataclass(eq=False)
class Artifacts:
    records: KeptRecords
    blobs: Blobs
    _: KW_ONLY
    clock: Callable[[], float]
    limits: ArtifactLimits = field(default_factory=ArtifactLimits)
    raw: RawReader | None = None
    """Answers for references to large payloads of the log."""

    @property
    def work(self) -> Mapping[str, CallHandler]:
        return {
            "artifacts.metadata": CallHandler(read=self.metadata),
            "artifacts.read_range": CallHandler(read=self.read_range),
            "artifacts.open_stream": CallHandler(stream=self.open_stream),
            "artifacts.create": CallHandler(write=self.create),
        }

    # --- for other rooms ---------------------------------------------------------------------------------------------

    async def keep(
        self,
        new: NewArtifact,
        content: bytes | AsyncIterable[bytes],
        *,
        max_bytes: int | None = None,
        audit: Sequence[AuditRow] = (),
        artifact_id: str | None = None,
        keep_seconds: float | None = None,
        conditions: Sequence[UploadsCap] = (),
    ) -> ArtifactRow:
        """Keep a file, streamed if it comes so. The row, the workspace's limit, conditions and audit rows are one
        commit.

        `keep_seconds` is how long it is kept, when not as long as other files; `math.inf` for ever.

        Raises HostError(PAYLOAD_TOO_LARGE) for a file or a workspace that is too large; then nothing is kept.
        """
        pieces = _one_piece(content) if isinstance(content, bytes) else content
        most = self.limits.file_bytes if max_bytes is None else max_bytes
        async with self.blobs.keep(pieces, max_bytes=most) as blob:
            now = self.clock()
            row = ArtifactRow(
                artifact_id=artifact_id or new_artifact_id(),
                workspace_id=new.workspace_id,
                user_id=new.user_id,
                conversation_id=new.session_id,
                thread_id=new.subthread_id,
                run_id=new.run_id,
                agent_id=new.agent_id,
                runner_id=new.runner_id,
                source=new.source,
                artifact_type=new.artifact_type[:MAX_TYPE_CHARS],
                mime_type=content_type(blob.head, new.claimed_mime),
                name=safe_name(new.name),
                size=blob.size,
                sha256=blob.sha256,
                published=new.published,
                created_at=now,
                expires_at=self._until(now, keep_seconds),
                metadata=new.metadata,
            )
            await self.records.write([row, self._cap(row), *conditions, *audit])
        return row

    async def keep_large(
        self, grant: Grant, result: object, *, name: str, artifact_type: str = "tool_result"
    ) -> tuple[Any, ArtifactRef | None]:
        """Return a small result as it is, a large one as a preview and the artifact that holds it."""
        text = result if isinstance(result, str) else msgspec.json.encode(result).decode()
        content = text.encode()
        if len(content) <= LARGE_RESULT_BYTES:
            return result, None
        claimed = "text/plain" if isinstance(result, str) else "application/json"
        new = replace(of_run(grant, "tool", artifact_type=artifact_type, name=name), claimed_mime=claimed)
        return text[:PREVIEW_CHARS], ref_to(await self.keep(new, content))

    async def find(self, workspace_id: str, artifact_id: str) -> ArtifactRow | None:
        """Return an artifact of this workspace that has not expired. The caller decides which user may see it."""
        row = await self.records.artifact(artifact_id)
        if row is None or row.workspace_id != workspace_id or is_expired(row, self.clock()):
            return None
        return row

    async def attach(
        self, row: ArtifactRow, session_id: str, subthread_id: str | None = None, *, audit: Sequence[AuditRow] = ()
    ) -> ArtifactRow:
        """Make an upload part of a conversation. One that is part of another conversation gets a second row for the
        same bytes."""
        there = replace(row, conversation_id=session_id, thread_id=subthread_id, published=True)
        if row.conversation_id not in (None, session_id):
            now = self.clock()
            there = replace(there, artifact_id=new_artifact_id(), created_at=now, expires_at=self.kept_until(now))
        await self.records.write([there, self._cap(there), *audit])
        return there

    async def publish(self, row: ArtifactRow, *, audit: Sequence[AuditRow] = ()) -> ArtifactRow:
        """Let everybody in its conversation read a file that was mentioned there."""
        published = replace(row, published=True)
        await self.records.write([published, *audit])
        return published

    async def pieces(self, row: ArtifactRow, *, offset: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        end = row.size if length is None else min(row.size, offset + length)
        while offset < end:
            piece = await self.blobs.read(row.sha256, offset, min(PIECE_BYTES, end - offset))
            yield piece
            offset += len(piece)

    # --- for runs ----------------------------------------------------------------------------------------------------

    async def metadata(self, grant: Grant, asked: host_calls.ArtifactsMetadataParams) -> ArtifactMetadata:
        found = await self.readable(grant, asked.artifact_id)
        return found.metadata if isinstance(found, RawContent) else described(found)

    async def read_range(self, grant: Grant, asked: host_calls.ArtifactsReadRangeParams) -> ArtifactReadResult:
        if asked.offset < 0 or asked.length < 0:
            raise HostError(ErrorCode.INVALID_ARGUMENT, "offset and length must not be negative")
        if asked.length > MAX_RANGE_BYTES:
            text = (
                f"a range may have at most {MAX_RANGE_BYTES} bytes; read on with offset, or use artifacts.open_stream"
            )
            raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, text)
        found = await self.readable(grant, asked.artifact_id)
        about = found.metadata if isinstance(found, RawContent) else described(found)
        content = await self._range(found, asked.offset, asked.length)
        return ArtifactReadResult(
            artifact_id=asked.artifact_id,
            mime_type=about.mime_type,
            size_bytes=about.size_bytes,
            offset=asked.offset,
            length=len(content),
            content_base64=b64encode(content).decode(),
            has_more=asked.offset + len(content) < (about.size_bytes or 0),
        )

    async def open_stream(self, grant: Grant, asked: host_calls.ArtifactsOpenStreamParams) -> "ArtifactStream":
        found = await self.readable(grant, asked.artifact_id)
        pieces = _cut(found.content) if isinstance(found, RawContent) else self.pieces(found)
        return ArtifactStream(pieces)

    async def create(self, grant: Grant, asked: host_calls.ArtifactsCreateParams, audit: AuditRow) -> ArtifactMetadata:
        content = decoded(asked.content_base64, "content_base64", MAX_ARTIFACT_INLINE_BYTES)
        new = replace(
            of_run(grant, "runner", artifact_type=asked.artifact_type, name=asked.name),
            claimed_mime=asked.mime_type,
            metadata=small_json(asked.metadata),
        )
        return described(await self.keep(new, content, audit=[audit]))

    async def readable(self, grant: Grant, artifact_id: str) -> ArtifactRow | RawContent:
        """Find what this run may read under an id. Foreign, expired and unknown ids are all `not_found`."""
        row = await self.records.artifact(artifact_id)
        if row is not None and may_read(grant, row, self.clock()):
            return row
        raw = await self.raw(grant, artifact_id) if row is None and self.raw is not None else None
        if raw is None:
            raise HostError(ErrorCode.NOT_FOUND, "there is no such artifact")
        return raw

    # --- for results of runs -----------------------------------------------------------------------------------------

    async def keep_created(self, grant: Grant, result: Result) -> Result:
        """Keep the file of an `artifact.created` and return the result by reference, without bytes. Never raises."""
        try:
            async with asyncio.timeout(KEEP_SECONDS):
                row = await self._created(grant, result.data)
        except HostError as error:
            return _refused(result, error.message)
        except (StorageUnavailableError, TimeoutError):
            return _refused(result, "the host could not store it")
        except Exception:  # whatever it is, the run goes on
            log.exception("a file could not be kept", action="artifact.created", run_id=result.run_id)
            return _refused(result, "the host failed to store it")
        about = described(row).model_dump(mode="json", include=RECORDED, exclude_none=True)
        return Result(result.run_id, result.type, about, result.sequence, result.timestamp)

    async def _created(self, grant: Grant, data: Mapping[str, Any]) -> ArtifactRow:
        encoded = data.get("content_base64")
        if encoded is not None:
            content = decoded(encoded, "data.content_base64", MAX_ARTIFACT_INLINE_BYTES)
            new = of_run(grant, "runner", artifact_type=data["artifact_type"], name=data.get("name"))
            metadata = small_json(data.get("metadata"))
            new = replace(new, claimed_mime=data.get("mime_type"), published=True, metadata=metadata)
            return await self.keep(new, content)
        found = await self.readable(grant, str(data.get("artifact_id")))
        if isinstance(found, RawContent) or not may_publish(grant, found, self.clock()):
            raise HostError(ErrorCode.NOT_FOUND, "there is no such artifact")
        return found if found.published else await self.publish(found)

    async def _range(self, found: ArtifactRow | RawContent, offset: int, length: int) -> bytes:
        if isinstance(found, RawContent):
            return found.content[offset : offset + length]
        if offset >= found.size or not length:
            return b""
        return await self.blobs.read(found.sha256, offset, min(length, found.size - offset))

    def _until(self, now: float, seconds: float | None) -> float | None:
        if seconds is None:
            return self.kept_until(now)
        return None if seconds == math.inf else now + seconds

    def kept_until(self, now: float) -> float | None:
        """Time until which a new file is kept; None for ever."""
        return None if self.limits.keep_seconds is None else now + self.limits.keep_seconds

    def _cap(self, row: ArtifactRow) -> ArtifactsCap:
        return ArtifactsCap(row.workspace_id, self.limits.workspace_bytes)


def _refused(result: Result, reason: str) -> Result:
    data = {"artifact_type": result.data.get("artifact_type"), "reason": reason}
    return Result(result.run_id, ARTIFACT_REFUSED, data, result.sequence, result.timestamp)


class ArtifactStream:
    """Answer of `artifacts.open_stream`: pieces, then an empty response."""

    result: Mapping[str, Any] = {}

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[Mapping[str, Any]]:
        async for piece in self._pieces:
            yield {"content_base64": b64encode(piece).decode()}


def new_artifact_id() -> str:
    return f"art_{uuid.uuid4().hex}"


async def _one_piece(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def _cut(content: bytes) -> AsyncIterator[bytes]:
    for offset in range(0, len(content), PIECE_BYTES):
        yield content[offset : offset + PIECE_BYTES]


def decoded(text: str, field: str, max_bytes: int) -> bytes:
    """Decode base64. Raises INVALID_ARGUMENT or PAYLOAD_TOO_LARGE; nothing is cut or repaired."""
    if len(text) > (max_bytes + 2) // 3 * 4:
        raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, f"{field} may hold at most {max_bytes} bytes")
    try:
        content = b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"{field} is not base64: {error}") from error
    if len(content) > max_bytes:
        raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, f"{field} may hold at most {max_bytes} bytes")
    return content


def small_json(value: Mapping[str, Any] | None) -> bytes:
    if not value:
        return b""
    encoded = msgspec.json.encode(value)
    if len(encoded) > MAX_METADATA_BYTES:
        raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, f"metadata may have at most {MAX_METADATA_BYTES} bytes of JSON")
    return encoded


async def free(records: KeptRecords, blobs: Blobs, hashes: Sequence[str]) -> int:
    """Remove those bytes that no row refers to; returns how many."""
    used = await records.blobs_in_use(hashes)
    removed = 0
    for name in sorted({*hashes} - used):
        removed += await blobs.remove(name, needed=lambda name=name: _needed(records, name))
    return removed


async def _needed(records: KeptRecords, name: str) -> bool:
    return bool(await records.blobs_in_use([name]))
