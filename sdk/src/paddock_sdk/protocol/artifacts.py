"""Files by reference: how they are named, described, read and made. Bytes travel as base64, in ranges or in chunks."""

# ruff: noqa: RUF012 - pydantic gives every instance its own copy of a default
from base64 import b64decode
from typing import Any, Literal

from paddock_sdk.protocol.model import EpochSeconds, WireModel

ArtifactSource = Literal["platform", "runner", "tool", "system"]


class ArtifactRef(WireModel):
    """A pointer to a file. `artifact_id` is opaque; whoever may read it asks the host."""

    artifact_id: str
    artifact_type: str | None = None
    mime_type: str | None = None
    size: int | None = None
    name: str | None = None
    source: str | None = None
    url: str | None = None
    content: str | None = None
    id: str | None = None


class ArtifactMetadata(WireModel):
    artifact_id: str
    artifact_type: str
    mime_type: str | None = None
    name: str | None = None
    size_bytes: int | None = None
    sha256: str | None = None
    source: ArtifactSource
    conversation_id: str | None = None
    run_id: str | None = None
    runner_id: str | None = None
    created_at: EpochSeconds | None = None
    expires_at: EpochSeconds | None = None
    metadata: dict[str, Any] = {}


class ArtifactReadResult(WireModel):
    """One range. `has_more` says whether bytes follow after offset + length."""

    artifact_id: str
    mime_type: str | None = None
    size_bytes: int | None = None
    offset: int
    length: int | None = None
    content_base64: str | None = None
    file_key: str | None = None
    has_more: bool

    @property
    def content(self) -> bytes:
        """The bytes of this range."""
        return b64decode(self.content_base64 or "")


class ArtifactChunk(WireModel):
    """One chunk of `artifacts.open_stream`."""

    content_base64: str


class ArtifactCreatedData(WireModel):
    """A file the runner made: already stored (`artifact_id`) or small enough to come along (`content_base64`)."""

    artifact_id: str | None = None
    artifact_type: str
    mime_type: str | None = None
    name: str | None = None
    size_bytes: int | None = None
    sha256: str | None = None
    metadata: dict[str, Any] | None = None
    content_base64: str | None = None
