"""Pictures read for a model, once a run, as many as travel in one question. What cannot be shown is said in words.

Which are shown follows from the messages alone: those before stay as they were when a new one comes, until together
they are too many; then all before the new one are only named. So the beginning of the prompt changes seldom.
"""

from collections.abc import Sequence
from typing import Any

from paddock_runners.toolkit.attachments import data_url, name_of, read_attachment
from paddock_runners.toolkit.parts import pictures_of
from paddock_sdk import HostApi
from paddock_sdk.protocol.artifacts import ArtifactRef

MAX_BYTES = 2 * 1024 * 1024
"""All pictures of one question: they travel to the model in one frame."""
MAX_PICTURES = 50
BLIND = "this model cannot look at pictures"
GONE_BY = "too much came after it"
TOO_LARGE = f"it is too large: together at most {MAX_BYTES} bytes are shown"

Said = dict[str, Any]


class Album:
    """The pictures of one run. Without `sees` none is read."""

    def __init__(self, api: HostApi, *, sees: bool = True) -> None:
        self._api, self._sees = api, sees
        self._known: dict[str, bytes | str] = {}

    async def shown(self, messages: Sequence[Said]) -> list[Said]:
        """The messages as a model takes them. Raises HostCallError when the run's time is over."""
        if not self._sees:
            return [_in_place(said, [BLIND] * len(pictures_of(said))) for said in messages]
        fitting = [await self._fitting(pictures_of(said)) for said in messages]
        first = _first_shown([[size for size in sizes if size is not None] for sizes in fitting])
        return [await self._developed(said, fitting[at], at >= first) for at, said in enumerate(messages)]

    async def _fitting(self, pictures: Sequence[ArtifactRef]) -> list[int | None]:
        """The sizes of the pictures of one message; None for those that no question has room for beside the others."""
        room, sizes = MAX_BYTES, list[int | None]()
        for ref in pictures:
            size = ref.size if ref.size is not None else len(await self._content(ref))
            fits = size <= room and len(sizes) < MAX_PICTURES
            room -= size if fits else 0
            sizes.append(size if fits else None)
        return sizes

    async def _developed(self, said: Said, sizes: Sequence[int | None], shown: bool) -> Said:
        contents: list[bytes | str] = []
        for ref, size in zip(pictures_of(said), sizes, strict=True):
            why_not = TOO_LARGE if size is None else None if shown else GONE_BY
            contents.append(why_not or await self._content(ref))
        return _in_place(said, contents)

    async def _content(self, ref: ArtifactRef) -> bytes | str:
        """Its bytes, or why there are none to have."""
        if ref.artifact_id not in self._known:
            self._known[ref.artifact_id] = await read_attachment(self._api, ref, MAX_BYTES)
        return self._known[ref.artifact_id]


def _first_shown(sizes: Sequence[Sequence[int]]) -> int:
    """The first message whose pictures are shown, of messages with pictures of these sizes."""
    first = used = count = 0
    for at, here in enumerate(sizes):
        if here and (used + sum(here) > MAX_BYTES or count + len(here) > MAX_PICTURES):
            first, used, count = at, 0, 0
        used, count = used + sum(here), count + len(here)
    return first


def _in_place(said: Said, contents: Sequence[bytes | str]) -> Said:
    """A message with its pictures, or why there is none, in their places. One without any picture left is words."""
    if not contents:
        return said
    given = iter(contents)
    parts = [_part(part["picture"], next(given)) if part["type"] == "picture" else part for part in said["content"]]
    if any(part["type"] != "text" for part in parts):
        return {**said, "content": parts}
    return {**said, "content": "\n".join(part["text"] for part in parts)}


def _part(ref: ArtifactRef, content: bytes | str) -> Said:
    if isinstance(content, str):
        return {"type": "text", "text": f"(the picture {name_of(ref)} cannot be shown: {content})"}
    return {"type": "image_base64", "image_base64": data_url(ref, content)}
