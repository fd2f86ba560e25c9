"""Files that agents are given in their settings: read with the agents file and kept under a digest of their content.

Runs read them by grant. A changed file gets a new id, so running runs go on reading the old content.
"""

from collections import OrderedDict
from hashlib import sha256
from pathlib import Path

from paddock.ports.artifacts import RawContent, RawReader
from paddock.rules.access.permissions import Grant
from paddock.rules.agents.resources import OfferedFile
from paddock.rules.content_types import HEAD_BYTES, content_type
from paddock_sdk.protocol.artifacts import ArtifactMetadata

MAX_FILE_BYTES = 4 * 1024 * 1024
MAX_KEPT_BYTES = 64 * 1024 * 1024
"""For all files together; beyond it the oldest are dropped."""
CLAIMS = {".md": "text/markdown", ".csv": "text/csv", ".json": "application/json", ".yaml": "application/yaml"}


def first_of(*readers: RawReader) -> RawReader:
    """A reader that asks several readers in turn."""

    async def read(grant: Grant, file_id: str) -> RawContent | None:
        for reader in readers:
            if (found := await reader(grant, file_id)) is not None:
                return found
        return None

    return read


class AgentFileError(Exception):
    """A file cannot be given to an agent; the text says why."""


class AgentFiles:
    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[OfferedFile, bytes]] = OrderedDict()
        self._bytes = 0

    def read(self, path: Path) -> OfferedFile:
        """Read a file and remember it. Raises AgentFileError."""
        try:
            with path.open("rb") as file:
                content = file.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise AgentFileError(f"{path.name!r} cannot be read: {error.strerror}") from error
        if len(content) > MAX_FILE_BYTES:
            raise AgentFileError(f"{path.name!r} is larger than {MAX_FILE_BYTES} bytes; put it into a knowledge base")
        mime = content_type(content[:HEAD_BYTES], CLAIMS.get(path.suffix.lower()))
        digest = sha256(f"{path.name}\0".encode() + content).hexdigest()
        known = OfferedFile(f"file-{digest[:40]}", path.name, mime)
        self._keep(known, content)
        return known

    async def raw(self, grant: Grant, file_id: str) -> RawContent | None:
        """The file under this id if the run was granted it, for `artifacts.*`."""
        kept = self._kept.get(file_id) if file_id in grant.files else None
        if kept is None:
            return None
        about, content = kept
        metadata = ArtifactMetadata(
            artifact_id=file_id,
            artifact_type="file",
            mime_type=about.mime_type,
            name=about.name,
            size_bytes=len(content),
            sha256=sha256(content).hexdigest(),
            source="system",
        )
        return RawContent(metadata, content)

    def _keep(self, known: OfferedFile, content: bytes) -> None:
        if known.file_id in self._kept:
            self._kept.move_to_end(known.file_id)
            return
        self._kept[known.file_id] = (known, content)
        self._bytes += len(content)
        while self._bytes > MAX_KEPT_BYTES:
            _, (_, forgotten) = self._kept.popitem(last=False)
            self._bytes -= len(forgotten)
