"""Pictures and other files that tools return: kept as artifacts, named in the result by reference.

No log and no result holds their bytes. A picture that models can read is redrawn before it is kept, as uploads are: a
server's file may not be the picture it claims to be, or not one that models accept. A file that cannot be kept is
replaced by the reason; the call itself has succeeded.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from paddock.host.calls.artifacts import Artifacts
from paddock.ports.attachments import Pictures
from paddock.ports.tools import ToolFile
from paddock.rules.access.artifacts import of_run, ref_to
from paddock.rules.access.permissions import Grant
from paddock.rules.conversations.attachments import HEAD_BYTES, IMAGES, kind_of
from paddock.rules.errors import HostError
from paddock.rules.values import replace

MAX_FILES = 16
"""Most files of one result."""
MAX_SIDE = 8000
"""Most pixels of a side; some providers refuse requests with a longer picture."""
FILE_SUFFIXES: Mapping[str, str] = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp", "image/gif": "gif"}

ContentPart = Mapping[str, Any]


class ToolFiles:
    def __init__(self, artifacts: Artifacts, pictures: Pictures, *, max_pixels: int) -> None:
        self._artifacts = artifacts
        self._pictures = pictures
        self._max_pixels = max_pixels

    async def placed(self, grant: Grant, parts: Sequence[ContentPart | ToolFile], *, name: str) -> list[ContentPart]:
        """Return the parts of a result with a reference in place of each file."""
        placed: list[ContentPart] = []
        count = 0
        for part in parts:
            if isinstance(part, ToolFile):
                count += 1
                placed.append(await self._part(grant, part, f"{name}-{count}", count))
            else:
                placed.append(part)
        return placed

    async def _part(self, grant: Grant, file: ToolFile, name: str, count: int) -> ContentPart:
        if count > MAX_FILES:
            return _not_kept(file, f"more than {MAX_FILES} files came along")
        kind = kind_of(file.content[:HEAD_BYTES])
        if kind not in IMAGES:
            return await self._kept(grant, file, name, _why_no_picture(file))
        try:
            drawn = await self._pictures.clean(
                file.content, kind, max_pixels=self._max_pixels, workspace=grant.scope.workspace_id
            )
        except HostError as error:
            return await self._kept(grant, file, name, error.message)
        if max(drawn.width, drawn.height) > MAX_SIDE:
            long = f"it has {drawn.width} x {drawn.height} pixels, and models look at no more than {MAX_SIDE} on a side"
            return await self._kept(grant, file, f"{name}.{FILE_SUFFIXES[kind]}", long)
        picture = replace(file, content=drawn.content)
        about = msgspec.json.encode({"width": drawn.width, "height": drawn.height})
        return await self._kept(grant, picture, f"{name}.{FILE_SUFFIXES[kind]}", None, part_type="image", about=about)

    async def _kept(
        self,
        grant: Grant,
        file: ToolFile,
        name: str,
        problem: str | None,
        *,
        part_type: str = "file",
        about: bytes = b"",
    ) -> ContentPart:
        new = of_run(grant, "tool", artifact_type=part_type, name=file.name or name)
        try:
            row = await self._artifacts.keep(replace(new, claimed_mime=file.mime_type, metadata=about), file.content)
        except HostError as error:
            return _not_kept(file, error.message)
        part = {"type": part_type, **ref_to(row).to_wire()}
        return part if problem is None else {**part, "problem": problem}


def _why_no_picture(file: ToolFile) -> str | None:
    claimed = (file.mime_type or "").lower()
    if not claimed.startswith("image/"):
        return None
    return f"it was said to be {claimed[:80]} and is no picture that a model can be shown ({', '.join(IMAGES)})"


def _not_kept(file: ToolFile, why: str) -> ContentPart:
    about = {"mime_type": file.mime_type[:80]} if file.mime_type else {}
    return {"type": "file", **about, "size": len(file.content), "problem": f"it is not kept: {why}"}
