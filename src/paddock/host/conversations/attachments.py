"""Uploads of users: offered under signed URLs, checked, and made part of a message.

The door knows the user and passes them as a value. Files are judged by their content. No address that a client names is
ever fetched.
"""

from collections.abc import AsyncIterator, Callable
from hashlib import sha256

import msgspec

from paddock.host.calls.artifacts import Artifacts, new_artifact_id
from paddock.host.people.principals import Principal
from paddock.ports import KeptRecords
from paddock.ports.attachments import AttachmentRef, Pictures
from paddock.ports.places import Places
from paddock.rules.access.artifacts import NewArtifact, is_expired
from paddock.rules.access.signatures import HOST, Credential, SigningKeys
from paddock.rules.conversations.attachments import (
    IMAGES,
    MAX_URL_CHARS,
    AttachmentLimits,
    Disposition,
    Owner,
    ReadAddress,
    Upload,
    check_size,
    checked_kind,
    counts,
    granted_upload,
    offered_id,
    offered_until,
    origin_of,
    read_address,
    taken_apart,
    upload_address,
    wrong_type,
)
from paddock.rules.errors import ErrorCode, HostError, invalid
from paddock.rules.rows.rows import ArtifactGone, ArtifactRow, AuditRow, UploadsCap
from paddock.rules.values import replace

UPLOADED = "platform"
"""The source of a file that a user uploaded."""
TOLD = (UPLOADED, "tool")
"""Sources of files that a user may see although no message mentions them."""
NOT_OURS = "this address is not valid, or not any more; ask for a fresh one"


WAITING, WAITING_IN_ALL = 4, 32
"""Most uploads that wait, of one workspace and in all; each is held in memory."""


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
        """`public_url` is this host's address for clients; without it URLs are paths."""
        self.limits = limits or AttachmentLimits()
        self._artifacts = artifacts
        self._records = records
        self._pictures = pictures
        self._keys = keys
        self._clock = clock
        self._public_url = (public_url or "").rstrip("/")
        self._origin = origin_of(self._public_url) if self._public_url else None
        self._places = Places(self.limits.at_once, waiting=WAITING, waiting_in_all=WAITING_IN_ALL)
        self._under_way = set[str]()
        """Addresses with an upload under way."""

    # --- uploading ---------------------------------------------------------------------------------------------------

    async def upload(self, principal: Principal, content: bytes, name: str | None) -> ArtifactRow:
        return await self._keep(Owner(principal.workspace_id, principal.user_id), content, name)

    async def keep(self, content: bytes, *, name: str | None, workspace_id: str, user_id: str) -> AttachmentRef:
        return self._ref(await self._keep(Owner(workspace_id, user_id), content, name))

    def offer(self, principal: Principal, *, mime_type: str, size: int, sha256: str | None, name: str | None) -> Upload:
        """Check the terms of a later upload and return them. Raises INVALID_ARGUMENT, PAYLOAD_TOO_LARGE."""
        check_size(size, self.limits)
        if mime_type not in self.limits.types:
            raise wrong_type(self.limits)
        owner, by = Owner(principal.workspace_id, principal.user_id), principal.credential
        expires = _no_longer_than(by, int(self._clock()) + self.limits.url_seconds)
        artifact_id = offered_id(self._keys(), owner, new_artifact_id(), expires)
        return Upload(
            artifact_id, owner.workspace_id, owner.user_id, mime_type, size, sha256, name, expires, by=by.written()
        )

    async def pending_until(self, principal: Principal, artifact_id: str) -> int | None:
        """Return the time until which this user may upload an offered file; None when it is there, or was not
        offered."""
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
        """Keep the file of an offer, once. Raises CONFLICT for a second time."""
        if upload.artifact_id in self._under_way:
            raise _used()
        self._under_way.add(upload.artifact_id)
        try:
            if await self._records.artifact(upload.artifact_id) is not None:
                raise _used()
            owner = Owner(upload.workspace_id, upload.user_id)
            return await self._keep(owner, content, upload.name, promised=upload)
        finally:
            self._under_way.discard(upload.artifact_id)

    async def _keep(
        self, owner: Owner, content: bytes, name: str | None, promised: Upload | None = None
    ) -> ArtifactRow:
        """Keep a file; one that was offered must match its offer. Raises HostError with the reason."""
        try:
            async with self._places.taken(owner.workspace_id):
                return await self._kept(owner, content, name, promised)
        except HostError as error:
            if error.code is not ErrorCode.UNAVAILABLE:
                await self._records.write([self._decided(owner, "", str(error.code), error.message)])
            raise

    async def _kept(self, owner: Owner, content: bytes, name: str | None, promised: Upload | None) -> ArtifactRow:
        if promised is not None:
            _check_promise(promised, content)
        kind = checked_kind(content, self.limits)
        if promised is not None and kind != promised.mime_type:
            raise invalid(f"the file is {kind} and not {promised.mime_type}, as was said before")
        about: dict[str, int] = {}
        if kind in IMAGES:
            picture = await self._pictures.clean(
                content, kind, max_pixels=self.limits.pixels, workspace=owner.workspace_id
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
            max_bytes=max(2 * self.limits.file_bytes, len(content)),  # the redrawn picture may be larger
            audit=[self._decided(owner, artifact_id, "allowed", kind)],
            artifact_id=artifact_id,
            keep_seconds=self.limits.unused_seconds,
            conditions=[UploadsCap(owner.workspace_id, owner.user_id, self.limits.user_bytes)],
        )

    def _decided(
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

    # --- reading -----------------------------------------------------------------------------------------------------

    async def find(self, principal: Principal, artifact_id: str) -> ArtifactRow:
        """Return a file that this user uploaded, that was made for them, or that a tool gave to a run of theirs.

        Raises NOT_FOUND. A user sees the results of tools, and so the files in them; files that an agent keeps to
        itself stay hidden.
        """
        row = await self._artifacts.find(principal.workspace_id, artifact_id)
        if row is None or row.user_id != principal.user_id or not (row.published or row.source in TOLD):
            raise HostError(ErrorCode.NOT_FOUND, "there is no such attachment")
        return row

    async def opened(self, address: ReadAddress | None) -> ArtifactRow:
        """Return the file of a signed address. Raises UNAUTHORIZED, also for an unknown file."""
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
        """Remove an upload that no message holds. Raises NOT_FOUND, CONFLICT."""
        row = await self.find(principal, artifact_id)
        if row.conversation_id is not None or row.source != UPLOADED:
            raise HostError(ErrorCode.CONFLICT, "this file is part of a conversation; erase the message that holds it")
        owner = Owner(principal.workspace_id, principal.user_id)
        gone = self._decided(owner, artifact_id, "allowed", "taken back", action="attachment.delete")
        await self._records.write([ArtifactGone(artifact_id), gone])

    # --- in a message ------------------------------------------------------------------------------------------------

    async def resolve(
        self, url: str, *, workspace_id: str, user_id: str, session_id: str, known: bool = False
    ) -> AttachmentRef | None:
        row = await self._signed(url, Owner(workspace_id, user_id), known=known)
        if row is None or row.mime_type not in self.limits.types:
            return None
        if known and row.conversation_id != session_id:
            return None
        if row.conversation_id not in (None, session_id):
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
        """Tell by its beginning whether an address may be ours: a path, or the public URL if one is set.

        Doors turn an address at the host that their caller used into a path.
        """
        if url.startswith("/"):
            return not url.startswith("//")
        origin = origin_of(url) if len(url) <= MAX_URL_CHARS else None
        return origin is not None and origin == self._origin

    async def _copy(self, row: ArtifactRow) -> ArtifactRow:
        """Return a second row for the same bytes, for another conversation, so that each can be removed alone."""
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
        audit = self._decided(_owner(row), copy.artifact_id, "allowed", f"copy of {row.artifact_id}")
        await self._records.write([copy, cap, audit])
        return copy

    def _ref(self, row: ArtifactRow) -> AttachmentRef:
        until = self._artifacts.kept_until(self._clock())
        return AttachmentRef(row.artifact_id, row.mime_type, row.size, row.name, until)


def _no_longer_than(by: Credential, expires: int) -> int:
    return expires if by.ends_at is None else min(expires, int(by.ends_at))


def _owner(row: ArtifactRow) -> Owner:
    return Owner(row.workspace_id, row.user_id or "")


def _check_promise(promised: Upload, content: bytes) -> None:
    if len(content) != promised.size:
        raise invalid(f"the file has {len(content)} bytes and not {promised.size}, as was said before")
    if promised.sha256 is not None and sha256(content).hexdigest() != promised.sha256:
        raise invalid("the file has another SHA-256 than was said before")


def _used() -> HostError:
    return HostError(ErrorCode.CONFLICT, "something was uploaded here already; ask for another address")
