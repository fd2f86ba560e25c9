"""Files that came with an input, read whole within a limit. What cannot be read is said in words; what is done with the
bytes is the runner's business.
"""

from base64 import b64encode

from paddock_sdk import HostApi, HostCallError
from paddock_sdk.protocol.artifacts import ArtifactRef
from paddock_sdk.protocol.errors import DEADLINE_EXCEEDED

SHOWN = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Pictures that models look at."""


def can_be_shown(ref: ArtifactRef) -> bool:
    return ref.mime_type in SHOWN


def is_picture(ref: ArtifactRef) -> bool:
    return (ref.mime_type or "").startswith("image/")


def name_of(ref: ArtifactRef) -> str:
    return ref.name or ref.mime_type or "a file"


def data_url(ref: ArtifactRef, content: bytes) -> str:
    return f"data:{ref.mime_type or 'application/octet-stream'};base64,{b64encode(content).decode()}"


async def read_attachment(api: HostApi, ref: ArtifactRef, room: int) -> bytes | str:
    """Its bytes, or why there are none to have. Raises HostCallError only when the run's time is over."""
    content = bytearray()
    try:
        async for part in api.artifacts.open_stream(ref.artifact_id):
            content += part
            if len(content) > room:
                return f"it is too large: together at most {room} bytes are read"
    except HostCallError as error:
        if error.code == DEADLINE_EXCEEDED:
            raise
        return error.error.message
    return bytes(content)
