"""Uploads of users: handed out under signed URLs, and made part of a message.

Who asks is known to the door and comes in as a value. What is taken in is judged by `uploads.py`; no address that a
client names is ever fetched.
"""

from collections.abc import AsyncIterator, Callable

from paddock.host.calls.artifacts import Artifacts, new_artifact_id
from paddock.host.conversations.uploads import UPLOADED, Uploads
from paddock.host.people.principals import Principal
from paddock.ports import KeptRecords
from paddock.ports.attachments import AttachmentRef, Pictures
from paddock.rules.access.artifacts import is_expired
from paddock.rules.access.credentials import HOST, Credential
from paddock.rules.conversations.attachment_urls import (
    MAX_URL_CHARS,
    Disposition,
    Owner,
    ReadAddress,
    SigningKeys,
    Upload,
    counts,
    granted_upload,
    offered_id,
    offered_until,
    origin_of,
    read_address,
    taken_apart,
    upload_address,
)
from paddock.rules.conversations.attachments import AttachmentLimits
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import ArtifactGone, ArtifactRow, UploadsCap
from paddock.rules.values import replace

TOLD = (UPLOADED, "tool")
"""Where a file comes from that its user may see although nobody mentioned it."""
NOT_OURS = "this address is not valid, or not any more; ask for a fresh one"


class UserAttachments:
    def __init__(
        self,
        artifacts: Artifacts,
        records: KeptRecords,
        pictures: Pictures,
        *,
        keys: Callable[[], SigningKeys],
        clock: Callable[[], float],
        limits: AttachmentLimits | None = None,
        public_url: str | None = None,
    ) -> None:
        """`public_url` is where clients reach this host; without it URLs are paths."""
        self.limits = limits or AttachmentLimits()
        self._uploads = Uploads(artifacts, records, pictures, clock=clock, limits=self.limits)
        self._artifacts = artifacts
        self._records = records
        self._keys = keys
        self._clock = clock
        self._public_url = (public_url or "").rstrip("/")
        self._origin = origin_of(self._public_url) if self._public_url else None

    # --- uploading ---------------------------------------------------------------------------------------------------

    async def upload(self, principal: Principal, content: bytes, name: str | None) -> ArtifactRow:
        """Keep a file that came with the request."""
        return await self._uploads.keep(Owner(principal.workspace_id, principal.user_id), content, name)

    async def keep(self, content: bytes, *, name: str | None, workspace_id: str, user_id: str) -> AttachmentRef:
        return self._ref(await self._uploads.keep(Owner(workspace_id, user_id), content, name))

    def offer(self, principal: Principal, *, mime_type: str, size: int, sha256: str | None, name: str | None) -> Upload:
        """Prepare an upload and return its terms. Raises INVALID_ARGUMENT, PAYLOAD_TOO_LARGE."""
        owner = Owner(principal.workspace_id, principal.user_id)
        upload = self._uploads.offer(owner, mime_type=mime_type, size=size, sha256=sha256, name=name)
        by = principal.credential
        expires = _no_longer_than(by, upload.expires)
        artifact_id = offered_id(self._keys(), owner, upload.artifact_id, expires)
        return replace(upload, artifact_id=artifact_id, by=by.written(), expires=expires)

    async def pending_until(self, principal: Principal, artifact_id: str) -> int | None:
        """Until when this user may still upload what was offered under this id; None when it is there, or no offer."""
        owner = Owner(principal.workspace_id, principal.user_id)
        until = offered_until(self._keys(), owner, artifact_id, self._clock())
        return until if until is None or await self._records.artifact(artifact_id) is None else None

    def upload_url(self, upload: Upload) -> str:
        return self._public_url + upload_address(self._keys(), upload)

    def granted(self, artifact_id: str, query: str) -> Upload:
        """Read the terms of an upload from its signed address. Raises UNAUTHORIZED."""
        upload = granted_upload(self._keys(), artifact_id, query, self._clock())
        if upload is None:
            raise HostError(ErrorCode.UNAUTHORIZED, NOT_OURS)
        return upload

    async def finish(self, upload: Upload, content: bytes) -> ArtifactRow:
        """Keep what was uploaded under an address, once. Raises CONFLICT for a second time."""
        return await self._uploads.finish(upload, content)

    # --- reading -----------------------------------------------------------------------------------------------------

    async def find(self, principal: Principal, artifact_id: str) -> ArtifactRow:
        """A file this user uploaded, that was made for them, or that a tool gave back to a run of theirs.

        Raises NOT_FOUND. The results of tools are told to the user of a run, and so are the files they refer to; what
        an agent keeps to itself is not.
        """
        row = await self._artifacts.find(principal.workspace_id, artifact_id)
        if row is None or row.user_id != principal.user_id or not (row.published or row.source in TOLD):
            raise _unknown()
        return row

    async def opened(self, address: ReadAddress | None) -> ArtifactRow:
        """The file that a signed address stands for. Raises UNAUTHORIZED; an unknown file looks the same."""
        row = await self._records.artifact(address.artifact_id) if address is not None else None
        now = self._clock()
        if (
            address is None
            or row is None
            or is_expired(row, now)
            or not counts(self._keys(), _owner(row), address, now)
        ):
            raise HostError(ErrorCode.UNAUTHORIZED, NOT_OURS)
        return row

    def pieces(self, row: ArtifactRow) -> AsyncIterator[bytes]:
        return self._artifacts.pieces(row)

    def signed_url(self, artifact_id: str, *, workspace_id: str, user_id: str, by: Credential = HOST) -> str | None:
        return self.url(Owner(workspace_id, user_id), artifact_id, by=by)

    def url(self, owner: Owner, artifact_id: str, disposition: Disposition = "inline", *, by: Credential = HOST) -> str:
        expires = _no_longer_than(by, int(self._clock()) + self.limits.url_seconds)
        return self._public_url + read_address(
            self._keys(), owner, artifact_id, expires=expires, disposition=disposition, by=by.written()
        )

    async def forget(self, principal: Principal, artifact_id: str) -> None:
        """Take back an upload that no message holds. Raises NOT_FOUND, CONFLICT."""
        row = await self.find(principal, artifact_id)
        if row.conversation_id is not None or row.source != UPLOADED:
            raise HostError(ErrorCode.CONFLICT, "this file is part of a conversation; erase the message that holds it")
        owner = Owner(principal.workspace_id, principal.user_id)
        gone = self._uploads.decided(owner, artifact_id, "allowed", "taken back", action="attachment.delete")
        await self._records.write([ArtifactGone(artifact_id), gone])

    # --- in a message ------------------------------------------------------------------------------------------------

    async def resolve(
        self, url: str, *, workspace_id: str, user_id: str, thread_id: str, known: bool = False
    ) -> AttachmentRef | None:
        row = await self._signed(url, Owner(workspace_id, user_id), known=known)
        if row is None or row.mime_type not in self.limits.types:
            return None
        if known and row.conversation_id != thread_id:
            return None
        if row.conversation_id not in (None, thread_id):
            row = await self._copy(row)
        return self._ref(row)

    async def _signed(self, url: str, owner: Owner, *, known: bool) -> ArtifactRow | None:
        address = taken_apart(url) if self._is_here(url) else None
        row = await self._records.artifact(address.artifact_id) if address is not None else None
        now = self._clock()
        if address is None or row is None or _owner(row) != owner or is_expired(row, now):
            return None
        return row if counts(self._keys(), owner, address, -1.0 if known else now) else None

    def _is_here(self, url: str) -> bool:
        """Tell if an address may be ours by its beginning: a path, or the public URL if one is set.

        Doors make a path of an address at the host that their caller used.
        """
        if url.startswith("/"):
            return not url.startswith("//")
        origin = origin_of(url) if len(url) <= MAX_URL_CHARS else None
        return origin is not None and origin == self._origin

    async def _copy(self, row: ArtifactRow) -> ArtifactRow:
        """A second row for the same bytes, for another conversation: what becomes of one does not touch the other."""
        now = self._clock()
        copy = replace(
            row,
            artifact_id=new_artifact_id(),
            conversation_id=None,
            source=UPLOADED,
            run_id=None,
            agent_id=None,
            runner_id=None,
            published=False,
            created_at=now,
            expires_at=now + self.limits.unused_seconds,
        )
        cap = UploadsCap(row.workspace_id, str(row.user_id), self.limits.user_bytes)
        audit = self._uploads.decided(_owner(row), copy.artifact_id, "allowed", f"copy of {row.artifact_id}")
        await self._records.write([copy, cap, audit])
        return copy

    def _ref(self, row: ArtifactRow) -> AttachmentRef:
        until = self._artifacts.kept_until(self._clock())
        return AttachmentRef(row.artifact_id, row.mime_type, row.size, row.name, until)


def _no_longer_than(by: Credential, expires: int) -> int:
    return expires if by.ends_at is None else min(expires, int(by.ends_at))


def _owner(row: ArtifactRow) -> Owner:
    return Owner(row.workspace_id, row.user_id or "")


def _unknown() -> HostError:
    return HostError(ErrorCode.NOT_FOUND, "there is no such attachment")
