"""Whoever has no key costs the host next to nothing: no body is read, no row each is written, no place is kept."""

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from host.scripted import AGENTS
from http_api.doors import Doors, a_body, open_doors
from http_api.test_connection import DOOR, Socket, a_socket
from http_api.test_events import CHAT, encoded, send
from http_api.test_patience import refused, until
from images.pictures import picture
from paddock.host.audit import Audit
from paddock.http_api.edge.bounds import PATIENCE, Crowd
from paddock.http_api.edge.connection import SENT_AHEAD
from paddock.http_api.native.platforms import LARGE_AT_ONCE
from paddock.rules.rows.rows import AuditRow
from stores import QuickStore

pytestmark = pytest.mark.anyio
ORDINARY = "/api/v1/api-keys"
EVENTS = "/api/v1/events?platform=nobody"


def begin(client: Socket, path: str, size: int, *headers: str, of: int = 1_000_000) -> None:
    """A request of which so many bytes of the body come."""
    lines = [f"POST {path} HTTP/1.1", "host: 127.0.0.1", "content-type: application/json", f"content-length: {of}"]
    client.writer.write("\r\n".join([*lines, *headers, "", "x" * size]).encode())


@asynccontextmanager
async def sockets(doors: Doors, count: int) -> AsyncGenerator[list[Socket]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(a_socket(doors)) for _ in range(count)]


@pytest.mark.spec("http/events-signed")
async def test_an_event_of_an_unknown_platform_is_refused_before_its_body_is_read() -> None:
    async with open_doors() as doors, a_socket(doors) as client:
        begin(client, EVENTS, 1, of=20)  # nineteen bytes never come
        assert "401" in (await client.head()).splitlines()[0]


@pytest.mark.spec("http/events-signed")
async def test_large_events_that_nobody_signed_keep_no_signed_one_out() -> None:
    made_up = ("webhook-id: 1", "webhook-timestamp: 1", "webhook-signature: v1,x")
    crowd = Crowd()
    async with (
        open_doors(platforms={"chat": CHAT}, crowd=crowd) as doors,
        sockets(doors, 4 * LARGE_AT_ONCE) as strangers,
    ):
        for stranger in strangers:
            begin(stranger, "/api/v1/events?platform=chat", 100_000, *made_up, of=8_000_000)
        await until(lambda: crowd.unfinished_bytes >= len(strangers) * 100_000)
        large = {"content": b64encode(picture("image/png", (700, 700), compress_level=0)).decode()}
        signed = await send(doors, encoded(input={"text": "a picture", "attachments": [large]}))
        assert signed.status_code == 202, signed.text
        await doors.answered(await doors.gateway.next(), "seen")


async def test_what_strangers_bring_about_is_a_row_and_a_number_and_not_a_row_each(store: QuickStore) -> None:
    tasks: set[asyncio.Task[None]] = set()
    audit = Audit(store, lambda work: tasks.add(task := asyncio.create_task(work)) or task)
    row = AuditRow(1.0, "", "platform:", "events.accept", "", "host", "unauthenticated", "not signed")
    for _ in range(5000):
        audit.counted(row)
    await audit.close()
    told = [one.reason for one in await store.audit()]
    assert told == ["not signed; 4999 more within 60 seconds", "not signed"]


@pytest.mark.spec("http/key")
async def test_sign_ins_that_failed_are_on_record_by_number() -> None:
    async with open_doors() as doors:
        await doors.key_for("ann")
        for number in range(20):
            wrong = {"Authorization": f"Bearer pdk_{number}"}
            assert (await doors.client.get("/api/v1/users/me", headers=wrong)).status_code == 401
        await doors.house.audit.close()
        rows = [row for row in await doors.house.store.audit() if row.action == "auth.sign_in"]
        assert [(row.workspace_id, row.result, row.reason) for row in rows] == [
            ("", "unauthenticated", "this key is not known here; 19 more within 60 seconds"),
            ("", "unauthenticated", "this key is not known here"),
        ]


@pytest.mark.spec("http/connections")
async def test_for_one_more_connection_the_one_that_was_idle_for_longest_goes() -> None:
    async with open_doors(crowd=Crowd(most=4)) as doors, sockets(doors, 4) as [busy, oldest, newer, newest]:
        busy.ask(a_body())
        await busy.head()
        run = await doors.gateway.next()
        for client in (oldest, newer, newest):  # each was idle since its answer
            client.writer.write(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            assert "200" in (await client.head()).splitlines()[0]
            await client.reader.readexactly(len(b'{"status":"alive"}'))
        async with a_socket(doors) as late:
            assert await oldest.reader.read() == b""
            for client in (newer, newest, late):
                client.writer.write(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
                assert "200" in (await client.head()).splitlines()[0]
        run.message("hello")
        run.say("run.completed")
        assert "RUN_FINISHED" in await busy.rest()


@pytest.mark.spec("http/connections")
async def test_where_nobody_is_idle_a_request_on_its_way_goes_and_then_who_comes() -> None:
    async with open_doors(crowd=Crowd(most=2)) as doors, sockets(doors, 2) as [slow, busy]:
        begin(slow, DOOR, 1, of=20)
        busy.ask(a_body())
        await busy.head()
        await doors.gateway.next()
        async with a_socket(doors) as late:
            assert (await refused(slow))[0] == "http/1.1 503 service unavailable"
            late.ask(a_body(run="r2"))
            await late.head()
            await doors.gateway.next()
            async with a_socket(doors) as one_more:
                assert (await refused(one_more))[0] == "http/1.1 503 service unavailable"


@pytest.mark.spec("http/unfinished")
async def test_what_is_on_its_way_is_bounded_for_a_caller_and_in_all_and_the_oldest_goes_first() -> None:
    crowd = Crowd(body_bytes=380_000)
    async with open_doors(crowd=crowd) as doors, sockets(doors, 8) as clients:
        keys = {user: (await doors.key_for(user))["Authorization"] for user in ("ann", "bob", *"cdef")}
        first, second, third, ann, *others = clients
        for number, client in enumerate((first, second, third), 1):  # one caller: 95,000 bytes
            begin(client, DOOR, 40_000, f"authorization: {keys['bob']}", of=60_000)
            await until(lambda: crowd.unfinished_bytes // 40_000 == min(number, 2))  # noqa: B023 - it is awaited here
        assert (await refused(first))[0] == "http/1.1 503 service unavailable"
        begin(ann, DOOR, 60_000, f"authorization: {keys['ann']}", of=65_000)
        for user, client in zip("cdef", others, strict=True):  # each another caller
            begin(client, DOOR, 64_000, f"authorization: {keys[user]}", of=65_000)
            await asyncio.sleep(0)
        assert (await refused(second))[0] == "http/1.1 503 service unavailable"
        assert crowd.unfinished_bytes <= 380_000


@pytest.mark.spec("http/unfinished")
async def test_all_who_show_no_key_are_one_caller() -> None:
    crowd = Crowd(body_bytes=380_000)
    async with open_doors(crowd=crowd) as doors, sockets(doors, 3) as clients:
        for number, client in enumerate(clients, 1):
            begin(client, DOOR, 40_000, of=60_000)
            await until(lambda: crowd.unfinished_bytes // 40_000 == min(number, 2))  # noqa: B023 - it is awaited here
        assert (await refused(clients[0]))[0] == "http/1.1 503 service unavailable"


@pytest.mark.spec("http/unfinished")
async def test_of_callers_who_are_not_known_nothing_is_held() -> None:
    crowd = Crowd()
    async with open_doors(crowd=crowd) as doors, a_socket(doors) as client:
        await doors.key_for("ann")
        begin(client, DOOR, 1000, "authorization: Bearer nobody's", of=60_000)
        assert "401" in (await client.head()).splitlines()[0]
        assert crowd.unfinished_bytes == 0


async def test_what_came_in_full_or_was_given_up_is_held_no_more() -> None:
    crowd = Crowd()
    async with open_doors(crowd=crowd) as doors:
        async with a_socket(doors) as client:
            begin(client, ORDINARY, 5, of=20)
            await until(lambda: crowd.unfinished_bytes > 0)
            client.writer.write(b"x" * 15)
            await client.head()
            assert crowd.unfinished_bytes == 0
            begin(client, ORDINARY, 5, of=20)
            await until(lambda: crowd.unfinished_bytes > 0)
        await until(lambda: crowd.unfinished_bytes == 0)


def a_head(size: int) -> bytes:
    """A request of exactly so many bytes."""
    begins, ends = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nx-long: ", b"\r\n\r\n"
    return begins + b"a" * (size - len(begins) - len(ends)) + ends


@pytest.mark.spec("http/patience")
@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize("before", [0, 1])
async def test_the_cap_of_a_head_is_exact_however_it_comes(pieces: int, before: int) -> None:
    most = PATIENCE.max_head_bytes
    for size, status in ((most, "200"), (most + 1, "431")):
        async with open_doors() as doors, a_socket(doors) as client:
            for _ in range(before):
                client.writer.write(a_head(200))
                assert "200" in (await client.head()).splitlines()[0]
                await client.reader.readexactly(len(b'{"status":"alive"}'))
            head = a_head(size)
            step = -(-size // pieces)
            for at in range(0, size, step):
                client.writer.write(head[at : at + step])
                await client.writer.drain()
                await asyncio.sleep(0.01)  # so that they come one by one; one that comes with the next is as good
            assert status in (await client.head()).splitlines()[0], size


async def test_a_head_without_end_is_refused_when_it_is_too_large_and_not_when_it_is_done() -> None:
    async with open_doors() as doors, a_socket(doors) as client:
        client.writer.write(a_head(PATIENCE.max_head_bytes + 10)[:-3])
        assert "431" in (await client.head()).splitlines()[0]


async def test_headers_behind_a_body_are_bounded_like_those_before_it() -> None:
    async with open_doors() as doors, a_socket(doors) as client:
        lines = [f"POST {ORDINARY} HTTP/1.1", "host: 127.0.0.1", "content-type: application/json"]
        client.writer.write("\r\n".join([*lines, "transfer-encoding: chunked", "", "2", "{}", "0", ""]).encode())
        client.writer.write(b"a: b\r\n" * 1000)
        assert "431" in (await client.head()).splitlines()[0]
        assert json.loads(await client.reader.read())["code"] == "payload_too_large"


AHEAD = {
    "short": b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    "refused": b"GET /api/v1/agents HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer none\r\n\r\n",
    "long": b"GET /api/openapi.json HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    "with a body": f"POST {DOOR} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 2\r\n\r\n{{}}".encode(),
}


@pytest.mark.spec("http/sent-ahead")
@pytest.mark.parametrize("kind", AHEAD)
async def test_of_requests_sent_ahead_some_are_kept_and_the_connection_ends_after_their_answers(kind: str) -> None:
    async with open_doors() as doors, a_socket(doors) as client:
        client.writer.write(AHEAD[kind] * 5000)
        said = await client.reader.read()
        assert 1 < said.count(b"HTTP/1.1 ") <= SENT_AHEAD + 1


@pytest.mark.spec("http/sent-ahead")
async def test_a_stream_that_goes_on_does_not_let_more_be_sent_ahead() -> None:
    async with open_doors() as doors, a_socket(doors) as client:
        client.ask(a_body())
        await client.head()
        run = await doors.gateway.next()
        for _ in range(200):
            client.writer.write(AHEAD["short"] * 25)
            await asyncio.sleep(0)
        run.say("run.completed")
        said = await client.reader.read()
        assert b"RUN_FINISHED" in said
        assert said.count(b"HTTP/1.1 ") <= SENT_AHEAD + 1


@pytest.mark.spec("http/reader-leaves")
@pytest.mark.parametrize("path", [DOOR, f"{DOOR}?ordinary"])
async def test_a_reader_who_sent_ahead_and_goes_away_is_noticed(path: str) -> None:
    agents = AGENTS.replace('"plugin:test/one/default"}', '"plugin:test/one/default", cancel_on_disconnect: true}')
    async with open_doors(agents=agents) as doors, a_socket(doors) as client:
        client.ask(a_body(), path)
        await client.head()
        run = await doors.gateway.next()
        client.writer.write(AHEAD["short"])
        await client.writer.drain()
        assert (await doors.client.get("/healthz")).status_code == 200  # what came before this has been read
        client.writer.close()
        async with asyncio.timeout(30):
            await run.asked_to_stop.wait()


@pytest.mark.spec("http/unfinished")
@pytest.mark.parametrize("path", [ORDINARY, EVENTS, "/nowhere"])
async def test_of_a_body_whose_answer_was_given_nothing_is_counted_and_little_is_taken(path: str) -> None:
    crowd = Crowd(body_bytes=2_000_000)
    async with open_doors(crowd=crowd) as doors, sockets(doors, 2) as [honest, stranger]:
        key = (await doors.key_for("ann"))["Authorization"]
        begin(honest, DOOR, 1000, f"authorization: {key}", of=60_000)
        await until(lambda: crowd.unfinished_bytes > 0)
        begin(stranger, path, 1, of=1_000_000_000)
        assert (await stranger.head()).splitlines()[0].split()[1] in {"401", "404"}
        with pytest.raises(ConnectionError):
            await send_without_end(stranger, lambda: 1000 <= crowd.unfinished_bytes < 3000)  # the honest one's
        honest.writer.write(b"x" * 59_000)
        assert "422" in (await honest.head()).splitlines()[0]


async def send_without_end(client: Socket, still: Callable[[], bool]) -> None:
    """Send until the other end closes."""
    while still():
        client.writer.write(b"x" * 100_000)
        await client.writer.drain()
