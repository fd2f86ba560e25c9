"""Files that come inside a client's message: kept here and referred to by id. Nothing a client points at is fetched."""

import re
from collections.abc import Callable

from paddock.host.artifacts import Artifacts, decoded
from paddock.host.principals import Principal
from paddock.ports.attachments import AttachmentRef, Attachments
from paddock.rules.artifacts import NewArtifact
from paddock.rules.client_history import Media
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows import ArtifactRow, AuditRow

MAX_FILE_BYTES = 6 * 1024 * 1024
"""Of one that comes inline: larger ones are uploaded first."""
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w=.+-]+)*;base64,", re.ASCII)


class ClientFiles:
    def __init__(self, artifacts: Artifacts, attachments: Attachments, *, clock: Callable[[], float]) -> None:
        self._artifacts = artifacts
        self._attachments = attachments
        self._clock = clock

    async def take(self, principal: Principal, thread_id: str, media: Media) -> AttachmentRef | str:
        """The file as this conversation has it, or why it cannot be used."""
        inline = _DATA_URL.match(media.url) if media.url else None
        if media.data is not None or inline is not None:
            given = media.data if media.data is not None else str(media.url)[inline.end() if inline else 0 :]
            return await self._keep(principal, thread_id, media, given, inline[1] if inline else None)
        if media.url is not None:
            found = await self._attachments.resolve(
                media.url, workspace_id=principal.workspace_id, user_id=principal.user_id, thread_id=thread_id
            )
            return found or "its url is none that this host signed for you, and others are never fetched"
        if media.file_id is not None:
            return await self._own(principal, thread_id, media.file_id)
        return "it has neither data nor a url"

    async def _keep(
        self, principal: Principal, thread_id: str, media: Media, given: str, said: str | None
    ) -> AttachmentRef | str:
        try:
            content = decoded(given, "data", MAX_FILE_BYTES)
        except HostError as error:
            return error.message
        if not content:
            return "it is empty"
        new = NewArtifact(
            workspace_id=principal.workspace_id,
            source="platform",
            name=media.filename,
            claimed_mime=media.mime_type or said,
            user_id=principal.user_id,
            conversation_id=thread_id,
            published=True,
        )
        try:
            return _ref(await self._artifacts.keep(new, content, audit=[self._audit(principal, thread_id)]))
        except HostError as error:
            if error.code is not ErrorCode.PAYLOAD_TOO_LARGE:
                raise
            return error.message

    async def _own(self, principal: Principal, thread_id: str, file_id: str) -> AttachmentRef | str:
        row = await self._artifacts.find(principal.workspace_id, file_id)
        if row is None or row.user_id != principal.user_id:
            return "there is no such file of yours"
        if row.conversation_id != thread_id or not row.published:
            row = await self._artifacts.attach(row, thread_id, audit=[self._audit(principal, thread_id)])
        return _ref(row)

    def _audit(self, principal: Principal, thread_id: str) -> AuditRow:
        return AuditRow(
            time=self._clock(),
            workspace_id=principal.workspace_id,
            actor=f"user:{principal.user_id}",
            action="message.attach",
            resource=thread_id,
            scope=thread_id,
            result="allowed",
            reason="came inside a message",
            session_id=thread_id,
        )


def _ref(row: ArtifactRow) -> AttachmentRef:
    return AttachmentRef(row.artifact_id, row.mime_type, row.size, row.name)
