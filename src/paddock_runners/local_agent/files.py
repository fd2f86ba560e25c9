"""Pictures that came with the input, read for the model. What cannot be shown is said in words."""

from base64 import b64encode
from collections.abc import Sequence

from paddock_runners.toolkit.transcript import Said
from paddock_sdk import HostApi, HostCallError, RunContext
from paddock_sdk.protocol.artifacts import ArtifactRef
from paddock_sdk.protocol.errors import DEADLINE_EXCEEDED

MAX_BYTES = 2 * 1024 * 1024
"""All pictures of one input: they travel to the model in one frame."""


async def shown_files(ctx: RunContext, api: HostApi) -> list[Said]:
    """Content elements for what is attached, in order."""
    room = MAX_BYTES
    shown: list[Said] = []
    for ref in ctx.input.attachments:
        picture = await _picture(api, ref, room) if _is_picture(ref) else None
        if picture is None:
            shown.append({"type": "text", "text": f"(attached: {_name(ref)}, {ref.artifact_id})"})
        elif isinstance(picture, str):
            shown.append({"type": "text", "text": picture})
        else:
            room -= len(picture)
            shown.append({"type": "image_base64", "image_base64": _data_url(ref, picture)})
    return shown


def _is_picture(ref: ArtifactRef) -> bool:
    return (ref.mime_type or "").startswith("image/")


def _name(ref: ArtifactRef) -> str:
    return ref.name or ref.mime_type or "a file"


def _data_url(ref: ArtifactRef, content: bytes) -> str:
    return f"data:{ref.mime_type};base64,{b64encode(content).decode()}"


async def _picture(api: HostApi, ref: ArtifactRef, room: int) -> bytes | str:
    """Its bytes, or why it cannot be shown."""
    content = bytearray()
    try:
        async for part in api.artifacts.open_stream(ref.artifact_id):
            content += part
            if len(content) > room:
                return f"(the picture {_name(ref)} is too large to be shown: together at most {MAX_BYTES} bytes are)"
    except HostCallError as error:
        if error.code == DEADLINE_EXCEEDED:
            raise
        return f"(the picture {_name(ref)} cannot be read: {error.error.message})"
    return bytes(content)


def has_pictures(parts: Sequence[Said]) -> bool:
    return any(part["type"] == "image_base64" for part in parts)
