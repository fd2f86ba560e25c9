"""Pictures that came with the input, read for the model. What cannot be shown is said in words."""

from collections.abc import Sequence

from paddock_runners.toolkit.attachments import data_url, is_picture, name_of, read_attachment
from paddock_runners.toolkit.transcript import Said
from paddock_sdk import HostApi
from paddock_sdk.protocol.artifacts import ArtifactRef

MAX_BYTES = 2 * 1024 * 1024
"""All pictures of one input: they travel to the model in one frame."""


async def shown_files(refs: Sequence[ArtifactRef], api: HostApi) -> list[Said]:
    """Content elements for what is attached, in order."""
    room = MAX_BYTES
    shown: list[Said] = []
    for ref in refs:
        picture = await read_attachment(api, ref, room) if is_picture(ref) else None
        if picture is None:
            shown.append({"type": "text", "text": f"(attached: {name_of(ref)}, {ref.artifact_id})"})
        elif isinstance(picture, str):
            shown.append({"type": "text", "text": f"(the picture {name_of(ref)} cannot be shown: {picture})"})
        else:
            room -= len(picture)
            shown.append({"type": "image_base64", "image_base64": data_url(ref, picture)})
    return shown


def has_pictures(parts: Sequence[Said]) -> bool:
    return any(part["type"] == "image_base64" for part in parts)
