"""MCP servers that mean harm, and programs behind a run that do: each is refused or answered, and nobody is held up."""

import asyncio
import gzip
import logging
import resource
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from loopback import NO_TLS, free_port
from mcp_endpoint.reach import reach
from paddock.telemetry.loop_watch import LoopWatch
from patience import at_most
from tools.servers.hostile import TOOLS
from tools.test_mcp import calling, running
from walk.hosts import wait_until

pytestmark = pytest.mark.anyio
HOSTILE = str(Path(__file__).parents[1] / "tools" / "servers" / "hostile.py")
MIB = 1024 * 1024
ONLY_HTTP = {name for name in TOOLS if "bomb" in name or name.endswith("_of_events")}
ANSWERED = {"good", "long", "drops", "drops_of_events"}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    port = free_port()
    with subprocess.Popen([sys.executable, HOSTILE, str(port)]) as server:
        wait_until(lambda: answers(port), what="the server listening")
        yield f"http://127.0.0.1:{port}/mcp"
        server.kill()


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(autouse=True)
def only_the_host_is_watched() -> Iterator[None]:
    """For the report of a test pytest keeps what libraries log, and formats it once more; no host does that."""
    logger = logging.getLogger("mcp")
    before, logger.level = logger.level, logging.CRITICAL
    yield
    logger.setLevel(before)


@asynccontextmanager
async def nobody_is_held_up() -> AsyncGenerator[None]:
    watch = LoopWatch()
    watch.start()
    async with asyncio.timeout(30):
        while not watch.questions:  # it looks from now on
            await asyncio.sleep(0)
    try:
        yield
        asked = watch.questions
        async with asyncio.timeout(30):
            while watch.questions < asked + 2:  # by then it has told of all that was before
                await asyncio.sleep(0)
    finally:
        watch.stop()
    assert (watch.stalls, watch.worst) == (0, 0.0)


def most_memory() -> int:
    """So many bytes this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize("name", TOOLS)
async def test_a_hostile_server_at_an_address_is_answered_for_and_holds_up_nobody(address: str, name: str) -> None:
    async with running(bad={"url": address, "timeout_seconds": at_most(1)}) as tools:
        assert (await calling(tools, "bad__good")).is_error is False
        before = most_memory()
        async with nobody_is_held_up(), asyncio.timeout(60):
            answer = await calling(tools, f"bad__{name}")
        assert answer.is_error is (name not in ANSWERED), answer.content[:200]
        assert most_memory() - before < 300 * MIB
        async with asyncio.timeout(60):
            while (await calling(tools, "bad__good")).is_error:
                await asyncio.sleep(0.05)


@pytest.mark.parametrize("name", sorted(TOOLS.keys() - ONLY_HTTP))
async def test_a_hostile_server_over_stdio_is_answered_for_and_holds_up_nobody(name: str) -> None:
    async with running(bad={"command": sys.executable, "args": [HOSTILE], "timeout_seconds": at_most(1)}) as tools:
        assert (await calling(tools, "bad__good")).is_error is False
        before = most_memory()
        async with nobody_is_held_up(), asyncio.timeout(60):
            answer = await calling(tools, f"bad__{name}")
        assert answer.is_error is (name not in ANSWERED), answer.content[:200]
        assert most_memory() - before < 300 * MIB
        async with asyncio.timeout(60):
            while (await calling(tools, "bad__good")).is_error:
                await asyncio.sleep(0.05)


CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":'
REQUESTS = {
    "values": (CALL + b'{"a":[' + b"[]," * 1_200_000 + b"1]}}}", 413),
    "calls at once": (b"[" + b'{"jsonrpc":"2.0","id":1,"method":"ping"},' * 90_000 + b"1]", 413),
    "keys": (CALL + b"{" + b",".join(b'"k%d":1' % n for n in range(300_000)) + b"}}}", 413),
    "deep": (CALL + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}}", 413),
    "deep enough to pass": (CALL + b"[" * 90_000 + b"]" * 90_000 + b"}}", 400),
    "digits": (CALL + b"9" * 3_000_000 + b"}}", 400),
    "half characters": (CALL + b'{"a":"' + b"\\ud800" * 600_000 + b'"}}}', 400),
    "brackets": (b"{" * 4_000_000, 413),
    "nothing": (b"", 400),
    "packed": (gzip.compress(b"[]" * 5_000_000), 400),
}


@pytest.mark.parametrize("what", REQUESTS)
async def test_a_hostile_program_behind_a_run_is_refused_and_holds_up_nobody(tmp_path: Path, what: str) -> None:
    body, status = REQUESTS[what]
    async with reach(tmp_path) as house:
        run = await house.a_run()
        async with run.client() as session:
            assert (await session.list_tools()).tools
            kinds = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
            async with nobody_is_held_up(), httpx.AsyncClient(timeout=60, verify=NO_TLS) as client:
                answer = await client.post(run.url, content=body, headers={**run.headers, **kinds})
            assert answer.status_code == status, answer.text[:300]
            assert (await session.list_tools()).tools


async def test_a_request_in_very_many_pieces_costs_its_length(tmp_path: Path) -> None:
    async def drops() -> AsyncIterator[bytes]:
        for _ in range(20_000):
            yield b" " * 100
        yield b'{"jsonrpc":"2.0","id":1,"method":"ping"}'

    async with reach(tmp_path) as house:
        run = await house.a_run()
        kinds = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        async with nobody_is_held_up(), httpx.AsyncClient(timeout=60, verify=NO_TLS) as client:
            answer = await client.post(run.url, content=drops(), headers={**run.headers, **kinds})
        assert answer.status_code in {200, 400}, answer.text
