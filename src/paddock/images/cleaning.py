"""Pictures drawn anew in a child process with limits of time, memory and output. Few at once; every end is a sentence.

A decoder that is tricked into something takes its own process down and nothing of ours; its library is never loaded
here.
"""

import msgspec

from paddock.confinement.readers import read_apart
from paddock.ports.attachments import Picture
from paddock.ports.places import Places
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.values import Value

SECONDS = 30.0
MAX_OUTPUT_BYTES = 64 * 1024 * 1024
AT_ONCE = 2
WAITING, WAITING_IN_ALL = 32, 256


class _Head(Value, frozen=True):
    width: int = 0
    height: int = 0
    problem: str = ""


class ChildPictures:
    def __init__(self, *, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._places = Places(AT_ONCE, waiting=WAITING, waiting_in_all=WAITING_IN_ALL)

    async def clean(self, content: bytes, mime_type: str, *, max_pixels: int, workspace: str = "") -> Picture:
        async with self._places.taken(workspace):
            command = ("-m", "paddock.images.child", mime_type, str(max_pixels))
            said = await read_apart(command, content, seconds=self._seconds, most_bytes=MAX_OUTPUT_BYTES)
        head, _, drawn = said.output.partition(b"\n")
        if said.code != 0 or not head or len(said.output) > MAX_OUTPUT_BYTES:
            raise _unfit("it needs more time or memory than a picture may take")
        found = msgspec.json.decode(head, type=_Head)
        if found.problem:
            raise _unfit(found.problem)
        return Picture(drawn, found.width, found.height)


def _unfit(why: str) -> HostError:
    return HostError(ErrorCode.INVALID_ARGUMENT, f"this picture is not taken: {why}")
