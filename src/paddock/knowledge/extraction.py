"""Reads a stranger's file in a child process with limits: time, memory, output. Its every end is a sentence here.

The child (`child.py`) limits itself before it looks at a single byte.
"""

import msgspec

from paddock.confinement.readers import read_apart
from paddock.knowledge.reading import Extracted
from paddock.rules.errors import ErrorCode, HostError

SECONDS = 120.0
MAX_OUTPUT_BYTES = 96 * 1024 * 1024


async def extract(name: str, content: bytes, *, seconds: float = SECONDS) -> Extracted:
    """The sections of a file. Raises HostError(INVALID_ARGUMENT) with the reason when it cannot be read."""
    command = ("-m", "paddock.knowledge.child", name[-64:])
    said = await read_apart(command, content, seconds=seconds, most_bytes=MAX_OUTPUT_BYTES)
    if said.code is None and not said.output:
        raise _unreadable(name, f"reading it took more than {seconds:g} s")
    return _judged(name, said.output, said.code)


def _judged(name: str, output: bytes, code: int | None) -> Extracted:
    if code != 0 or len(output) > MAX_OUTPUT_BYTES:
        raise _unreadable(name, "reading it needs more time or memory than a document may take")
    found = msgspec.json.decode(output, type=Extracted)
    if found.problem:
        raise _unreadable(name, found.problem)
    return found


def _unreadable(name: str, why: str) -> HostError:
    return HostError(ErrorCode.INVALID_ARGUMENT, f"{name[:120]} cannot be read: {why}")
