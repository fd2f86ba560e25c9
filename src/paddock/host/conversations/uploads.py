"""Files of users taken in: judged by their content, pictures drawn anew, kept within a quota. Each leaves an audit row,
those that are refused too. At most a few at once."""

from collections.abc import Callable
from hashlib import sha256

import msgspec

from paddock.host.calls.artifacts import Artifacts, new_artifact_id
from paddock.ports import KeptRecords
from paddock.ports.attachments import Pictures
from paddock.ports.places import Places
from paddock.rules.access.artifacts import NewArtifact
from paddock.rules.conversations.attachment_urls import Owner, Upload
from paddock.rules.conversations.attachments import IMAGES, AttachmentLimits, check_size, checked_kind, wrong_type
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import ArtifactRow, AuditRow, UploadsCap

WAITING, WAITING_IN_ALL = 4, 32
"""Uploads that wait for a place, of one workspace and in all: each is held in memory."""
UPLOADED = "platform"
"""The source of a file that came from outside."""


class Uploads:
    def __init__(
        self,
        artifacts: Artifacts,
        records: KeptRecords,
        pictures: Pictures,
        *,
        clock: Callable[[], float],
        limits: AttachmentLimits,
    ) -> None:
        self._artifacts = artifacts
        self._records = records
        self._pictures = pictures
        self._clock = clock
        self._limits = limits
        self._places = Places(limits.at_once, waiting=WAITING, waiting_in_all=WAITING_IN_ALL)
        self._under_way = set[str]()
        """Addresses that somebody uploads to right now."""

    def offer(self, owner: Owner, *, mime_type: str, size: int, sha256: str | None, name: str | None) -> Upload:
        """Check the terms of a later upload. Raises INVALID_ARGUMENT, PAYLOAD_TOO_LARGE."""
        check_size(size, self._limits)
        if mime_type not in self._limits.types:
            raise wrong_type(self._limits)
        expires = int(self._clock()) + self._limits.url_seconds
        return Upload(new_artifact_id(), owner.workspace_id, owner.user_id, mime_type, size, sha256, name, expires)

    async def keep(self, owner: Owner, content: bytes, name: str | None, promised: Upload | None = None) -> ArtifactRow:
        """Keep a file; one that was offered before must be what was said. Raises HostError with the reason why not."""
        try:
            async with self._places.taken(owner.workspace_id):
                return await self._kept(owner, content, name, promised)
        except HostError as error:
            if error.code is not ErrorCode.UNAVAILABLE:
                await self._records.write([self.decided(owner, "", str(error.code), error.message)])
            raise

    async def finish(self, upload: Upload, content: bytes) -> ArtifactRow:
        """Keep what was offered, once. Raises CONFLICT for a second time."""
        if upload.artifact_id in self._under_way:
            raise _used()
        self._under_way.add(upload.artifact_id)
        try:
            if await self._records.artifact(upload.artifact_id) is not None:
                raise _used()
            owner = Owner(upload.workspace_id, upload.user_id)
            return await self.keep(owner, content, upload.name, promised=upload)
        finally:
            self._under_way.discard(upload.artifact_id)

    async def _kept(self, owner: Owner, content: bytes, name: str | None, promised: Upload | None) -> ArtifactRow:
        if promised is not None:
            _check_promise(promised, content)
        kind = checked_kind(content, self._limits)
        if promised is not None and kind != promised.mime_type:
            raise _invalid(f"the file is {kind} and not {promised.mime_type}, as was said before")
        about: dict[str, int] = {}
        if kind in IMAGES:
            picture = await self._pictures.clean(
                content, kind, max_pixels=self._limits.pixels, workspace=owner.workspace_id
            )
            content, about = picture.content, {"width": picture.width, "height": picture.height}
        artifact_id = promised.artifact_id if promised else new_artifact_id()
        new = NewArtifact(
            workspace_id=owner.workspace_id,
            user_id=owner.user_id,
            source=UPLOADED,
            artifact_type="image" if kind in IMAGES else "document",
            name=name,
            claimed_mime=kind,
            metadata=msgspec.json.encode(about) if about else b"",
        )
        return await self._artifacts.keep(
            new,
            content,
            max_bytes=max(2 * self._limits.file_bytes, len(content)),  # drawn anew it may have grown
            audit=[self.decided(owner, artifact_id, "allowed", kind)],
            artifact_id=artifact_id,
            keep_seconds=self._limits.unused_seconds,
            conditions=[UploadsCap(owner.workspace_id, owner.user_id, self._limits.user_bytes)],
        )

    def decided(
        self, owner: Owner, artifact_id: str, result: str, reason: str, action: str = "attachment.upload"
    ) -> AuditRow:
        return AuditRow(
            time=self._clock(),
            workspace_id=owner.workspace_id,
            actor=f"user:{owner.user_id}",
            action=action,
            resource=artifact_id,
            scope=owner.user_id,
            result=result,
            reason=reason,
        )


def _check_promise(promised: Upload, content: bytes) -> None:
    if len(content) != promised.size:
        raise _invalid(f"the file has {len(content)} bytes and not {promised.size}, as was said before")
    if promised.sha256 is not None and sha256(content).hexdigest() != promised.sha256:
        raise _invalid("the file has another SHA-256 than was said before")


def _used() -> HostError:
    return HostError(ErrorCode.CONFLICT, "something was uploaded here already; ask for another address")


def _invalid(text: str) -> HostError:
    return HostError(ErrorCode.INVALID_ARGUMENT, text)
