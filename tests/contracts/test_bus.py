"""What every bus promises: words reach the others, never whoever said them; a bus that is away is no error."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio
import pytest
import structlog

from nats_server import NatsServer
from paddock.bus.in_process import InProcessBus, Meeting
from paddock.bus.nats import NatsBus
from paddock.ports.bus import Bus

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def server() -> Iterator[NatsServer]:
    server = NatsServer().start()
    yield server
    server.kill()


@pytest.fixture(params=["in_process", "nats"])
async def pair(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Bus, Bus]]:
    buses: tuple[Bus, Bus]
    if request.param == "in_process":
        meeting = Meeting()
        buses = InProcessBus(meeting), InProcessBus(meeting)
    else:
        url = request.getfixturevalue("server").url
        buses = NatsBus(url), NatsBus(url)
    for bus in buses:
        await bus.open()
    yield buses
    for bus in buses:
        await bus.close()


async def until(true: object) -> None:
    assert callable(true)
    with anyio.fail_after(30):
        while not true():
            await anyio.sleep(0.01)


async def test_words_reach_the_other_in_order_and_never_come_back(pair: tuple[Bus, Bus]) -> None:
    here, there = pair
    mine, theirs = list[bytes](), list[bytes]()
    await here.subscribe("a.b", mine.append)
    await there.subscribe("a.b", theirs.append)
    for number in range(100):
        here.publish("a.b", b"%d" % number)
    here.publish("a.c", b"for somebody else")
    await until(lambda: len(theirs) == 100)
    assert theirs == [b"%d" % number for number in range(100)]
    assert mine == []


async def test_who_stopped_listening_hears_nothing_more(pair: tuple[Bus, Bus]) -> None:
    here, there = pair
    first, second = list[bytes](), list[bytes]()
    stopped = await there.subscribe("a", first.append)
    await there.subscribe("a", second.append)
    here.publish("a", b"1")
    await until(lambda: first and second)
    await stopped.stop()
    here.publish("a", b"2")
    await until(lambda: len(second) == 2)
    assert first == [b"1"]


async def test_both_are_healthy_while_open_and_say_how_long_a_word_may_be(pair: tuple[Bus, Bus]) -> None:
    assert all(bus.healthy() and bus.max_bytes >= 1024 * 1024 for bus in pair)


async def test_a_bus_alone_in_its_process_does_not_claim_to_reach_others() -> None:
    bus = InProcessBus()
    await bus.open()
    assert not bus.healthy()


async def test_a_server_that_is_away_is_found_when_it_comes_and_again_after_it_went() -> None:
    server, lost = NatsServer(), asyncio.Event()
    here, there = NatsBus(server.url), NatsBus(server.url)
    heard = list[bytes]()
    await here.open()
    await there.open(lost.set)
    assert not here.healthy()
    assert not there.healthy()
    here.publish("a", b"said to nobody")
    await there.subscribe("a", heard.append)
    for word in (b"first", b"second"):
        await anyio.to_thread.run_sync(server.start)
        await until(lambda: here.healthy() and there.healthy())

        async def said(word: bytes = word) -> bool:
            here.publish("a", word)
            await anyio.sleep(0.02)
            return word in heard

        with anyio.fail_after(30):
            while not await said():
                pass
        await anyio.to_thread.run_sync(server.kill)
        await until(lambda: not here.healthy())
    assert lost.is_set()
    for bus in (here, there):
        await bus.close()


async def test_who_begins_to_listen_while_the_server_is_away_hears_when_it_is_back() -> None:
    server = NatsServer().start()
    here, there = NatsBus(server.url), NatsBus(server.url)
    heard, stopped = list[bytes](), list[bytes]()
    for bus in (here, there):
        await bus.open()
    await anyio.to_thread.run_sync(server.kill)
    await until(lambda: not here.healthy() and not there.healthy())
    await there.subscribe("a", heard.append)
    await (await there.subscribe("a", stopped.append)).stop()
    await anyio.to_thread.run_sync(server.start)
    with anyio.fail_after(30):
        while not heard:
            here.publish("a", b"again")
            await anyio.sleep(0.02)
    assert stopped == []
    for bus in (here, there):
        await bus.close()
    await anyio.to_thread.run_sync(server.kill)


async def test_a_server_that_sends_us_away_and_changes_its_mind_is_used_again(tmp_path: Path) -> None:
    server = NatsServer(config=tmp_path / "nats.conf")
    assert server.config is not None

    def let_in(password: str) -> None:
        assert server.config is not None
        server.config.write_text(f'authorization {{ users: [{{user: "host", password: "{password}"}}] }}')

    let_in("right")
    await anyio.to_thread.run_sync(server.start)
    url = server.url.replace("//", "//host:right@")
    here, there, heard = NatsBus(url), NatsBus(url), list[bytes]()
    for bus in (here, there):
        await bus.open()
    await there.subscribe("a", heard.append)
    let_in("wrong")
    server.signal(signal.SIGHUP)
    await until(lambda: not here.healthy() and not there.healthy())
    let_in("right")
    server.signal(signal.SIGHUP)
    with anyio.fail_after(30):
        while not heard:
            here.publish("a", b"again")
            await anyio.sleep(0.02)
    for bus in (here, there):
        await bus.close()
    await anyio.to_thread.run_sync(server.kill)


async def test_a_server_that_does_not_let_us_in_is_told_from_one_that_is_away(tmp_path: Path) -> None:
    server = NatsServer(config=tmp_path / "nats.conf")
    assert server.config is not None
    server.config.write_text('authorization { users: [{user: "host", password: "right"}] }')
    await anyio.to_thread.run_sync(server.start)
    bus = NatsBus(server.url.replace("//", "//host:hunter2@"))
    with structlog.testing.capture_logs() as lines:
        await bus.open()
        await until(lambda: "Authorization" in bus.problem)
    await bus.close()
    assert not bus.healthy()
    assert [line["reason"] for line in lines if line.get("action") == "bus.refused"] == [bus.problem]
    assert "hunter2" not in str(lines)
    await anyio.to_thread.run_sync(server.kill)


@pytest.mark.parametrize("patience", [0.1, 30.0], ids=["who goes away", "who waits it out"])
async def test_a_server_that_is_silent_for_a_while_makes_nobody_deaf(server: NatsServer, patience: float) -> None:
    here, there = NatsBus(server.url), NatsBus(server.url)
    first, second, lost = list[bytes](), list[bytes](), list[str]()
    await here.open()
    await there.open(lambda: lost.append("lost"))
    await there.subscribe("a", first.append)
    server.signal(signal.SIGSTOP)
    try:
        with anyio.move_on_after(patience):  # a reader that comes just then, and may leave again
            await there.subscribe("b", second.append)
    finally:
        server.signal(signal.SIGCONT)
    with anyio.fail_after(30):
        while not first:
            here.publish("a", b"again")
            await anyio.sleep(0.02)
    assert lost == []
    for bus in (here, there):
        await bus.close()


@pytest.mark.parametrize("patience", [0.0, 0.1], ids=["before it had said so", "before it was answered"])
async def test_who_went_while_it_began_to_listen_hears_nothing(server: NatsServer, patience: float) -> None:
    here, there = NatsBus(server.url), NatsBus(server.url)
    for bus in (here, there):
        await bus.open()
    first, second = list[bytes](), list[bytes]()
    server.signal(signal.SIGSTOP)
    try:
        with anyio.move_on_after(patience) as leaving:
            await there.subscribe("a", first.append)
    finally:
        server.signal(signal.SIGCONT)
    assert leaving.cancelled_caught
    await there.subscribe("a", second.append)
    here.publish("a", b"1")
    await until(lambda: second)
    assert first == []
    for bus in (here, there):
        await bus.close()


async def test_who_closes_the_bus_itself_is_not_told_that_it_is_away(server: NatsServer) -> None:
    bus, lost = NatsBus(server.url), list[str]()
    await bus.open(lambda: lost.append("lost"))
    await bus.close()
    assert lost == []


async def test_a_server_that_stays_silent_counts_as_away_until_it_answers(server: NatsServer) -> None:
    bus = NatsBus(server.url)
    await bus.open()
    server.signal(signal.SIGSTOP)
    try:
        await until(lambda: not bus.healthy())
    finally:
        server.signal(signal.SIGCONT)
    await until(bus.healthy)
    await bus.close()


def test_an_embedded_host_loads_nothing_of_a_cluster() -> None:
    code = "import sys, paddock.compose; print(sorted({'nats', 'obstore', 'asyncpg'} & {*sys.modules}))"
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "[]"
