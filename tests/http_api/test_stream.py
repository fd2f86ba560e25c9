"""How a stream is carried: what waits goes in one write, silence is filled, and a lost reader harms nobody."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from host.scripted import small_house
from http_api.doors import a_body, open_doors
from http_api.facts import THREAD, delta, events_of, fact, stored, user_input
from http_api.frames import split
from paddock.host.conversations.inbox import Accepted
from paddock.host.people.principals import KEYLESS_DEV
from paddock.host.streams.open_streams import OpenStreams
from paddock.host.streams.tails import Entry
from paddock.http_api.ag_ui.events import SPOKEN_KINDS, AgUiPeer
from paddock.http_api.streams import run_stream
from paddock.http_api.streams.run_stream import Cursor, RunReader, RunStream, RunStreams
from paddock.rules.access.signatures import HOST
from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError
from paddock.rules.session.facts import Fact
from stores import QuickStore

pytestmark = pytest.mark.anyio
RUNS = "/api/v1/agent/runs"


class Wire:
    """Records what an ASGI application sends; its client never says anything."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.receives = 0

    async def send(self, message: Any) -> None:
        self.sent.append(message)

    async def receive(self) -> Any:
        self.receives += 1
        await asyncio.Event().wait()

    @property
    def bodies(self) -> list[bytes]:
        return [message["body"] for message in self.sent if message["type"] == "http.response.body"]


async def a_stream(follower: Any, first_seq: int) -> RunStream:
    """The stream of one reader of a run, which never ends but by its last word."""
    open_streams, deps = OpenStreams(QuickStore()), cast("Any", None)
    tails = cast("Any", SimpleNamespace(follow=lambda *_: follower))
    runs = RunStreams(
        tails=tails, runs=deps, keeping=deps, open_streams=open_streams, keep_alive_seconds=15.0, attachments=deps
    )
    reader = RunReader(AgUiPeer("1", THREAD, "run", "1"), Cursor("1", first_seq, -1), open_streams.hold(HOST))
    return await runs.open(KEYLESS_DEV, Accepted("run", THREAD, "run", False, first_seq), reader)


async def test_a_short_run_is_one_write_and_nobody_looks_at_its_client() -> None:
    async with small_house() as house:
        accepted = await house.say(thread=THREAD)
        run = await house.gateway.next()
        run.message("hello")
        run.say("run.completed")
        await house.story(accepted)
        wire = Wire()
        follower = house.tails.follow(THREAD, accepted.run_id, accepted.first_seq - 1)
        answer = await a_stream(follower, accepted.first_seq)
        await answer({}, wire.receive, wire.send)
        assert [message["type"] for message in wire.sent] == ["http.response.start", "http.response.body"]
        assert wire.sent[0]["headers"] == [
            (b"content-type", b"text/event-stream"),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
            (b"x-accel-buffering", b"no"),
        ]
        assert wire.sent[1]["more_body"] is False
        assert wire.bodies[0].count(b"\n\n") == 5
        assert b"\r" not in wire.bodies[0]
        assert wire.receives == 0


async def test_two_readers_of_one_dialect_share_the_same_bytes() -> None:
    async with small_house() as house:
        accepted = await house.say(thread=THREAD)
        (await house.gateway.next()).listener.lost("runner.crashed", "y")
        await house.story(accepted)
        for _ in range(2):
            follower = house.tails.follow(THREAD, accepted.run_id, accepted.first_seq - 1)
            await (await a_stream(follower, accepted.first_seq))({}, Wire().receive, Wire().send)
        first = house.tails.follow(THREAD, accepted.run_id, 0)
        spoken = [entry for entry in await first.next(30) if entry.fact.kind in SPOKEN_KINDS]
        assert spoken
        assert all(list(entry.frames) == ["1"] for entry in spoken)
        first.close()


@pytest.mark.spec("http/keep-alive")
async def test_silence_is_filled_with_comments_until_the_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_stream, "UNWATCHED", 0.02)
    async with open_doors(keep_alive=0.02) as doors:
        task_id = (await doors.post(a_body())).json()["taskId"]
        run = await doors.gateway.next()
        seen: list[str] = []
        async with doors.client.stream("GET", f"{RUNS}/{task_id}/events") as answer:
            async for line in answer.aiter_lines():
                seen.append(line)
                if seen.count(": keep-alive") == 2 and not run.released:
                    run.say("run.completed")
                    await doors.ended(task_id)
        assert seen.count(": keep-alive") >= 2
        assert "RUN_FINISHED" in seen[-2]


@pytest.mark.spec("http/reader-leaves")
async def test_a_reader_that_leaves_is_let_go_and_its_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_stream, "UNWATCHED", 0.02)
    async with open_doors() as doors:
        thread = a_body()["threadId"]
        task_id = (await doors.post(a_body(thread))).json()["taskId"]
        run = await doors.gateway.next()
        tail = doors.house.tails.tail_of(thread)
        async with (
            httpx.AsyncClient(base_url=doors.url, timeout=30) as leaving,
            leaving.stream("GET", f"{RUNS}/{task_id}/events") as answer,
        ):
            async for _ in answer.aiter_lines():
                break
            assert tail.followers == 1
        async with asyncio.timeout(30):
            while tail.followers:
                await asyncio.sleep(0.005)
        assert not run.asked_to_stop.is_set()
        await doors.answered(run, "still here")
        assert (await doors.row(task_id)).status == "completed"


class CannedFollower:
    """A follower that has everything at once."""

    def __init__(self, *facts: Fact) -> None:
        self.entries = [Entry(one) for one in stored(*facts)]

    async def next(self, seconds: float) -> list[Entry]:
        return self.entries

    def close(self) -> None:
        pass


@pytest.mark.spec("http/stream-order")
async def test_nothing_is_said_after_the_last_word() -> None:
    failed = fact("ERROR:RUN_FAILED", {"code": "x", "message": "y"})
    follower, wire = CannedFollower(user_input(), failed, failed, delta("m", "late", opens=True)), Wire()
    answer = await a_stream(follower, 1)
    await answer({}, wire.receive, wire.send)
    assert [event["type"] for event in events_of(split(wire.bodies[0]))] == ["RUN_STARTED", "RUN_ERROR"]
    assert len(wire.bodies) == 1


class BrokenFollower:
    """A follower whose log fails it at the n-th read."""

    def __init__(self, error: Exception, good_reads: int = 0) -> None:
        self.error = error
        self.good_reads = good_reads
        self.closed = False

    async def next(self, seconds: float) -> list[Any]:
        self.good_reads -= 1
        if self.good_reads >= 0:
            return []
        raise self.error

    def close(self) -> None:
        self.closed = True


@pytest.mark.spec("http/cursor-expired")
async def test_a_cursor_that_was_trimmed_away_is_refused_before_the_stream_begins() -> None:
    follower = BrokenFollower(HostError(ErrorCode.CURSOR_EXPIRED, "gone"))
    with pytest.raises(HostError):
        await a_stream(follower, 1)
    assert follower.closed


@pytest.mark.spec("http/cut")
@pytest.mark.parametrize("unwatched", [0.0, 1.0])
async def test_when_the_log_fails_in_the_middle_the_body_is_cut_and_not_ended(
    monkeypatch: pytest.MonkeyPatch, unwatched: float
) -> None:
    monkeypatch.setattr(run_stream, "UNWATCHED", unwatched)
    follower, wire = BrokenFollower(StorageUnavailableError("disk"), good_reads=1), Wire()
    answer = await a_stream(follower, 1)
    await answer({}, wire.receive, wire.send)
    assert [message["type"] for message in wire.sent] == ["http.response.start"]
    assert follower.closed
