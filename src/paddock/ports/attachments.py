"""Files that a user uploaded for a message: a signed URL of ours stands for one, and for nothing else."""

from collections.abc import Mapping
from typing import Any, Protocol

from paddock.rules.values import Value


class AttachmentRef(Value, frozen=True):
    """One uploaded file as it is kept: a message refers to it by the id of its artifact, never by URL."""

    artifact_id: str
    mime_type: str
    size: int
    name: str | None = None

    def block(self) -> dict[str, Any]:
        """What stands in a stored message in the place of the URL."""
        named = {} if self.name is None else {"filename": self.name}
        return {"id": self.artifact_id, "mimeType": self.mime_type, **named}

    def artifact(self) -> Mapping[str, Any]:
        """The same as the runner is told of it."""
        seen = {"artifact_id": self.artifact_id, "mime_type": self.mime_type, "size": self.size, "name": self.name}
        return {name: value for name, value in seen.items() if value is not None}


class Attachments(Protocol):
    async def resolve(self, url: str, *, workspace_id: str, user_id: str) -> AttachmentRef | None:
        """What a URL stands for, when we signed it for this user and it has not expired; None for any other.

        Nothing is ever fetched.
        """
        ...

    def signed_url(self, artifact_id: str, *, workspace_id: str, user_id: str) -> str | None:
        """A fresh URL under which this user can read the file for a while; None when there is no way to."""
        ...


class NoAttachments:
    """A host without an attachment store: nobody can have been given a URL, so none is ours."""

    async def resolve(self, url: str, *, workspace_id: str, user_id: str) -> AttachmentRef | None:  # noqa: ARG002
        return None

    def signed_url(self, artifact_id: str, *, workspace_id: str, user_id: str) -> str | None:  # noqa: ARG002
        return None
