"""How the pretend host reaches a plugin: in the same program, or as a child process over its stdin and stdout."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from paddock_sdk.connection import Connection
from paddock_sdk.runner import AgentRunner
from paddock_sdk.testing.runs import PATIENCE_SECONDS

Read = Callable[[bytes], None]
Send = Callable[[bytes], None]
LINE_BYTES = 8 * 1_048_576


@asynccontextmanager
async def in_memory(runners: Sequence[AgentRunner], read: Read) -> AsyncGenerator[Send, None]:
    """Both sides in one event loop; lines are handed over one turn later, never re-entrantly."""
    loop = asyncio.get_running_loop()

    def to_host(line: bytes) -> None:
        loop.call_soon(read, line)

    def to_plugin(line: bytes) -> None:
        loop.call_soon(connection.receive, line)

    connection = Connection(runners, to_host)
    yield to_plugin
    await asyncio.wait_for(connection.closed.wait(), PATIENCE_SECONDS)


@asynccontextmanager
async def child_process(
    command: Sequence[str], read: Read, *, cwd: Path | None, env: Mapping[str, str] | None
) -> AsyncGenerator[Send, None]:
    """A program of its own. It has ended, with status 0, when the block ends well."""
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, cwd=cwd, env=env, limit=LINE_BYTES)
    assert child.stdin is not None
    reading = asyncio.get_running_loop().create_task(_read_lines(child, read))
    try:
        yield child.stdin.write
        status = await asyncio.wait_for(child.wait(), PATIENCE_SECONDS)
        assert status == 0, f"{command[0]} ended with status {status}"
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
        await reading


async def _read_lines(child: asyncio.subprocess.Process, read: Read) -> None:
    """Frames only: a line that is not an object is somebody's stray print."""
    assert child.stdout is not None
    async for line in child.stdout:
        if line.startswith(b"{"):
            read(line)
