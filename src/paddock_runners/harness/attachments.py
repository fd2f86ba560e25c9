"""Files that came with an input, for a harness: laid out in its working directory and named in the prompt; pictures are
kept at hand besides, for the wires that can show one to the model.
"""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from paddock_runners.toolkit.attachments import can_be_shown, name_of, read_attachment
from paddock_sdk import HostApi
from paddock_sdk.projection import Projection, ProjectionError
from paddock_sdk.protocol.artifacts import ArtifactRef

MAX_BYTES = 32 * 1024 * 1024
"""All files of one input."""
SHOWN_BYTES = 3_750_000
"""A picture's, so that it stays below the five million characters providers take; a larger one is only a file."""
MAX_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Picture:
    path: Path
    mime_type: str
    content: bytes = field(repr=False)

    @property
    def base64(self) -> str:
        return b64encode(self.content).decode()


@dataclass(slots=True)
class Brought:
    """Files that came with the input."""

    lines: list[str] = field(default_factory=list[str])
    """One for each file, for the prompt."""
    pictures: list[Picture] = field(default_factory=list[Picture])
    files: list[str] = field(default_factory=list[str])
    """Where they lie, below the working directory."""


async def bring(api: HostApi, attached: Sequence[ArtifactRef], files: Projection, folder: str) -> Brought:
    """Read and lay out what can be; the rest is named with the reason. Raises HostCallError when the time is over."""
    brought, room = Brought(), MAX_BYTES
    for number, ref in enumerate(attached, start=1):
        about = f"{ref.mime_type or 'file'}, id {ref.artifact_id}"
        content = await read_attachment(api, ref, room)
        try:
            if isinstance(content, str):
                raise ProjectionError(content)
            place = files.write(f"{folder}/{number}-{_plain(name_of(ref))}", content)
        except ProjectionError as problem:
            brought.lines.append(f"- {name_of(ref)} ({about}), not laid out: {problem}")
            continue
        room -= len(content)
        brought.files.append(place.relative_to(files.directory).as_posix())
        brought.lines.append(f"- {brought.files[-1]} ({about})")
        _keep_picture(brought, ref, place, content)
    return brought


def _keep_picture(brought: Brought, ref: ArtifactRef, place: Path, content: bytes) -> None:
    if can_be_shown(ref) and len(content) <= SHOWN_BYTES and len(brought.pictures) < MAX_SHOWN:
        brought.pictures.append(Picture(place, ref.mime_type or "", content))


def _plain(name: str) -> str:
    """A name for a file: what could lead elsewhere or hide is replaced."""
    kept = "".join(char if char.isalnum() or char in "-_." else "_" for char in Path(name).name)
    return kept.lstrip(".")[-80:] or "file"
