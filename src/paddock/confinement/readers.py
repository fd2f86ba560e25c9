"""Child processes that read one stranger's file each: the file goes in, an answer comes out, nothing else does either.

Where bubblewrap works they are confined like a runner at L1, without network and with nothing of ours to see but the
programs. Everywhere they take from themselves what reading does not need (`limits.py`).
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from paddock.confinement.homes import FIRST_UID
from paddock.confinement.sandbox import Sandbox, active_level, filtered, interpreter, outermost
from paddock.confinement.trees import known

ENVIRONMENT = frozenset({"PATH", "LANG", "LC_ALL", "PYTHONPATH", "VIRTUAL_ENV"})
PACKAGES = ("paddock", "paddock_sdk", "msgspec", "PIL", "pypdf")
"""Where readers are made of anything that does not lie in the interpreter's own directories."""


class ReaderAnswer(NamedTuple):
    output: bytes
    code: int | None
    """How it ended; None when its time was up or it had no end of words."""


async def read_apart(command: Sequence[str], content: bytes, *, seconds: float, most_bytes: int) -> ReaderAnswer:
    """Give some bytes to a Python program in a child process, and return what it says of them."""
    with filtered(await asyncio.to_thread(_confined, (sys.executable, "-P", *command))) as (argv, files):
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
            env={key: value for key, value in os.environ.items() if key in ENVIRONMENT},
            pass_fds=files,
        )
    try:
        async with asyncio.timeout(seconds):
            return ReaderAnswer(await _talk(process, content, most_bytes), process.returncode)
    except TimeoutError:
        return ReaderAnswer(b"", None)
    finally:
        await _end(process)


def _confined(argv: tuple[str, ...]) -> tuple[str, ...]:
    return argv if active_level().level != "L1" else _sandbox().around(argv)


@cache
def _sandbox() -> Sandbox:
    """Make the readers' sandbox; as root, with a user that no plugin gets."""
    shown = outermost(known(path) for path in interpreter(Path(sys.executable), PACKAGES) if path.exists())
    return Sandbox(read_only=shown, uid=FIRST_UID if os.geteuid() == 0 else None)


async def _talk(process: asyncio.subprocess.Process, content: bytes, most: int) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError, ConnectionResetError):  # it gave up early; what it says tells why
        process.stdin.write(content)
        await process.stdin.drain()
        process.stdin.close()
    output = bytearray()
    while part := await process.stdout.read(1 << 20):
        output += part
        if len(output) > most:
            return bytes(output)
    await process.wait()
    return bytes(output)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
