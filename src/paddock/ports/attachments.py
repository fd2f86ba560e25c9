"""Files that a user uploaded for a message: a signed URL of ours stands for one, and for nothing else."""

from collections.abc import Mapping
from typing import Any, Protocol

from paddock.rules.access.signatures import HOST, Credential
from paddock.rules.rows.rows import ArtifactAttached
from paddock.rules.values import Value


class AttachmentRef(Value, frozen=True):
    """One uploaded file as it is kept: a message refers to it by the id of its artifact, never by URL."""

    artifact_id: str
    mime_type: str
    size: int
    name: str | None = None
    keep_until: float | None = None
    """Until when it is kept once a message holds it; None for ever."""

    def block(self) -> dict[str, Any]:
        """Block that stands in a stored message in the place of the URL."""
        named = {} if self.name is None else {"filename": self.name}
        return {"id": self.artifact_id, "mimeType": self.mime_type, **named}

    def artifact(self) -> Mapping[str, Any]:
        """Description of the file for the runner."""
        seen = {"artifact_id": self.artifact_id, "mime_type": self.mime_type, "size": self.size, "name": self.name}
        return {name: value for name, value in seen.items() if value is not None}

    def attached(self, session_id: str, subthread_id: str | None = None) -> ArtifactAttached:
        """Row written with the message (`NewRun.rows`): from then on runs of this session, or of the platform's
        subthread it came in, may read the file.
        """
        return ArtifactAttached(self.artifact_id, session_id, self.keep_until, subthread_id)


class Attachments(Protocol):
    async def resolve(
        self, url: str, *, workspace_id: str, user_id: str, session_id: str, known: bool = False
    ) -> AttachmentRef | None:
        """Find the file behind a URL that we signed for this user and that has not expired; None for any other.

        A file that is part of another conversation comes as a copy for this one. Of a message that the host knows
        already (`known`) a URL may have expired. Nothing is ever fetched.
        """
        ...

    async def keep(self, content: bytes, *, name: str | None, workspace_id: str, user_id: str) -> AttachmentRef:
        """Keep a file of a user's, checked like every upload. Raises HostError with the reason why not."""
        ...

    def signed_url(self, artifact_id: str, *, workspace_id: str, user_id: str, by: Credential = HOST) -> str | None:
        """A fresh URL under which this user can read the file for a while, and no longer than the credential counts
        that asked for it; None when there is no way to.

        It may be a path only; then it counts from the address the caller used."""
        ...


class Picture(Value, frozen=True):
    """A picture as it is kept: drawn anew, so nothing is in it but what can be seen."""

    content: bytes
    width: int
    height: int


class Pictures(Protocol):
    async def clean(self, content: bytes, mime_type: str, *, max_pixels: int, workspace: str = "") -> Picture:
        """Read it as what it says it is and write it anew; workspaces take turns. Raises HostError(INVALID_ARGUMENT)
        with the reason, RATE_LIMITED when too many wait."""
        ...
