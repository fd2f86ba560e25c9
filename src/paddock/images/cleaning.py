"""Pictures drawn anew in a child process with limits of time, memory and output. Few at once; every end is a sentence.

A decoder that is tricked into something takes its own process down and nothing of ours; its library is never loaded
here.
"""

import asyncio
import os
import signal
import sys
from contextlib import suppress

import msgspec

from paddock.ports.pictures import Picture
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.values import Value

SECONDS = 30.0
MAX_OUTPUT_BYTES = 64 * 1024 * 1024
AT_ONCE = 2
ENVIRONMENT = frozenset({"PATH", "LANG", "LC_ALL", "PYTHONPATH", "VIRTUAL_ENV"})


class _Head(Value, frozen=True):
    width: int = 0
    height: int = 0
    problem: str = ""


class ChildPictures:
    def __init__(self, *, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._places = asyncio.Semaphore(AT_ONCE)

    async def clean(self, content: bytes, mime_type: str, *, max_pixels: int) -> Picture:
        async with self._places:  # who waits here is bounded by the uploads that are let in
            output, code = await self._ask(content, mime_type, max_pixels)
        head, _, drawn = output.partition(b"\n")
        if code != 0 or not head or len(output) > MAX_OUTPUT_BYTES:
            raise _unfit("it needs more time or memory than a picture may take")
        found = msgspec.json.decode(head, type=_Head)
        if found.problem:
            raise _unfit(found.problem)
        return Picture(drawn, found.width, found.height)

    async def _ask(self, content: bytes, mime_type: str, max_pixels: int) -> tuple[bytes, int | None]:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "paddock.images.child",
            mime_type,
            str(max_pixels),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            env={key: value for key, value in os.environ.items() if key in ENVIRONMENT},
        )
        try:
            async with asyncio.timeout(self._seconds):
                output = await _talk(process, content)
        except TimeoutError:
            return b"", None
        finally:
            await _end(process)
        return output, process.returncode


async def _talk(process: asyncio.subprocess.Process, content: bytes) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError, ConnectionResetError):  # it gave up early; what it says tells why
        process.stdin.write(content)
        await process.stdin.drain()
        process.stdin.close()
    output = bytearray()
    while part := await process.stdout.read(1 << 20):
        output += part
        if len(output) > MAX_OUTPUT_BYTES:
            return bytes(output)
    await process.wait()
    return bytes(output)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _unfit(why: str) -> HostError:
    return HostError(ErrorCode.INVALID_ARGUMENT, f"this picture is not taken: {why}")
