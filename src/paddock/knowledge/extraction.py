"""Reads a stranger's file in a child process with limits: time, memory, output. Its every end is a sentence here.

The parent half starts it and waits; the child half (`python -m paddock.knowledge.extraction`) limits itself before it
looks at a single byte.
"""

import asyncio
import os
import resource
import signal
import sys
from contextlib import suppress

import msgspec

from paddock.rules.chunking import Section
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.values import Value

SECONDS = 120.0
CPU_SECONDS = 60
MEMORY_BYTES = 1024 * 1024 * 1024
MAX_OUTPUT_BYTES = 96 * 1024 * 1024
ENVIRONMENT = frozenset({"PATH", "LANG", "LC_ALL", "PYTHONPATH", "VIRTUAL_ENV"})


class Extracted(Value, frozen=True):
    media_type: str = ""
    sections: tuple[Section, ...] = ()
    problem: str = ""


async def extract(name: str, content: bytes, *, seconds: float = SECONDS) -> Extracted:
    """The sections of a file. Raises HostError(INVALID_ARGUMENT) with the reason when it cannot be read."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        __name__,
        name[-64:],
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
        env={key: value for key, value in os.environ.items() if key in ENVIRONMENT},
    )
    try:
        async with asyncio.timeout(seconds):
            output = await _talk(process, content)
    except TimeoutError:
        raise _unreadable(name, f"reading it took more than {seconds:g} s") from None
    finally:
        await _end(process)
    return _judged(name, output, process.returncode)


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
            break
    else:
        await process.wait()
    return bytes(output)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _judged(name: str, output: bytes, code: int | None) -> Extracted:
    if code != 0 or len(output) > MAX_OUTPUT_BYTES:
        raise _unreadable(name, "reading it needs more time or memory than a document may take")
    found = msgspec.json.decode(output, type=Extracted)
    if found.problem:
        raise _unreadable(name, found.problem)
    return found


def _unreadable(name: str, why: str) -> HostError:
    return HostError(ErrorCode.INVALID_ARGUMENT, f"{name[:120]} cannot be read: {why}")


# --- the child --------------------------------------------------------------------------------------------------------


def _child(name: str) -> None:
    from paddock.knowledge.formats import media_type_of, sections_of  # the host never needs them
    from paddock.knowledge.reading import UnreadableError

    _limit()
    content = sys.stdin.buffer.read()
    try:
        media_type = media_type_of(name, content)
        found = Extracted(media_type, tuple(sections_of(media_type, content)))
    except UnreadableError as error:
        found = Extracted(problem=str(error))
    except (MemoryError, RecursionError) as error:
        found = Extracted(problem=f"it is built in a way that no reader can follow ({type(error).__name__})")
    sys.stdout.buffer.write(msgspec.json.encode(found))


def _limit() -> None:
    """Before the first byte of the file: no more memory, time, files or processes than reading it takes."""
    for what, most in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        with suppress(ValueError, OSError):  # already lower
            resource.setrlimit(what, (most, most))


if __name__ == "__main__":
    _child(sys.argv[1])
