"""What somebody holds open ends with what let them in: a revoked key, an expired token, the end of keyless access."""

import asyncio
import json
import re
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from joserfc import jws
from joserfc.jwk import OctKey
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from http_api.doors import Doors, a_body, assert_problem, open_doors
from http_api.test_attach import ONE, a_token, an_open_house, serve_by_hand, until_listed
from http_api.test_attachments import picture
from paddock.host.streams import open_streams
from paddock.host.streams.open_streams import StreamLimits
from paddock.http_api.edge.tokens import LEEWAY_SECONDS, TokenRules, Tokens
from paddock.ports import ApiKeyRow
from paddock.rules.access.signatures import HOST, KEYLESS, Credential, read_credential
from paddock.rules.rows.rows import AuditRow

pytestmark = pytest.mark.anyio
SOON = 10.0
"""Seconds within which all of it must be over."""
THREAD = "4d1f1c9e-56f4-4c2e-9f1e-0d6e6b0f5c11"
SESSIONS = f"/api/v1/agent/sessions/{THREAD}"
SECRET = b"a secret of thirty-two characters"
Headers = dict[str, str]
Opened = Callable[[Doors, Headers], Any]


async def a_live_run(doors: Doors, headers: Headers) -> str:
    """A run that goes on until its runner says otherwise."""
    accepted = await doors.post(a_body(thread=THREAD), headers=headers)
    assert accepted.status_code == 202, accepted.text
    run = await doors.gateway.next()
    run.delta("it goes on")
    await doors.recorded(run.run_id, "it goes on")
    return run.run_id


@asynccontextmanager
async def run_events(doors: Doors, headers: Headers) -> AsyncGenerator[httpx.Response]:
    run_id = await a_live_run(doors, headers)
    async with doors.client.stream("GET", f"/api/v1/agent/runs/{run_id}/events", headers=headers) as answer:
        yield answer


@asynccontextmanager
async def session_events(doors: Doors, headers: Headers) -> AsyncGenerator[httpx.Response]:
    await a_live_run(doors, headers)
    async with doors.client.stream("GET", f"{SESSIONS}/events", headers=headers) as answer:
        yield answer


@asynccontextmanager
async def ag_ui_post(doors: Doors, headers: Headers) -> AsyncGenerator[httpx.Response]:
    body = {"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "hello"}]}
    async with doors.client.stream("POST", "/api/v1/agent/ag-ui", json=body, headers=headers) as answer:
        await doors.gateway.next()
        yield answer


@asynccontextmanager
async def ag_ui_connect(doors: Doors, headers: Headers) -> AsyncGenerator[httpx.Response]:
    await a_live_run(doors, headers)
    body = {"threadId": THREAD, "runId": "c", "messages": []}
    async with doors.client.stream("POST", "/api/v1/agent/ag-ui/connect", json=body, headers=headers) as answer:
        yield answer


STREAMS: list[Opened] = [run_events, session_events, ag_ui_post, ag_ui_connect]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_streams, "LOOK_SECONDS", 0.1)


async def a_key(doors: Doors, user: str = "ann", role: Any = "user") -> tuple[Headers, str]:
    headers = await doors.key_for(user, role=role)
    return headers, headers["Authorization"].removeprefix("Bearer ")


async def revoked_here(doors: Doors, key_id: str) -> None:
    admin = await doors.key_for("boss", role="admin")
    answer = await doors.client.delete(f"/api/v1/api-keys/{key_id}", headers=admin)
    assert answer.status_code == 204


async def revoked_elsewhere(doors: Doors, key_id: str) -> None:
    """By another host of the same store: this one is told nothing."""
    row = AuditRow(time.time(), "default", "user:boss", "api_keys.revoke", key_id, "default", "allowed", "role admin")
    await doors.house.store.revoke_key(key_id, time.time(), row)


async def cut_within(answer: httpx.Response, seconds: float = SOON) -> bytes:
    """What the stream still says until it is cut; it must not end as one that was whole."""
    assert answer.status_code == 200
    heard = list[bytes]()

    async def read_on() -> None:
        async for piece in answer.aiter_raw():
            heard.append(piece)

    async with asyncio.timeout(seconds):
        with pytest.raises(httpx.RemoteProtocolError):
            await read_on()
    return b"".join(heard)


@pytest.mark.spec("http/open-ends")
@pytest.mark.parametrize("opened", STREAMS, ids=lambda opened: opened.__name__)
@pytest.mark.parametrize("revoke", [revoked_here, revoked_elsewhere], ids=["here", "at another host"])
async def test_a_revoked_key_ends_every_stream_it_opened(
    opened: Opened, revoke: Callable[[Doors, str], Awaitable[None]], quick: None
) -> None:
    async with open_doors() as doors:
        headers, key_id = await a_key(doors)
        async with opened(doors, headers) as answer:
            await revoke(doors, key_id)
            assert b"the key that opened this was revoked" in await cut_within(answer)


@pytest.mark.spec("http/open-ends")
async def test_a_revoked_key_ends_its_streams_within_ten_seconds_as_the_host_is_set() -> None:
    async with open_doors() as doors:
        headers, key_id = await a_key(doors)
        async with session_events(doors, headers) as answer:
            await revoked_elsewhere(doors, key_id)
            await cut_within(answer)


@pytest.mark.spec("http/open-ends")
async def test_the_run_of_a_reader_that_was_cut_goes_on(quick: None) -> None:
    async with open_doors() as doors:
        headers, key_id = await a_key(doors)
        run_id = await a_live_run(doors, headers)
        async with doors.client.stream("GET", f"/api/v1/agent/runs/{run_id}/events", headers=headers) as answer:
            await revoked_elsewhere(doors, key_id)
            await cut_within(answer)
        assert (await doors.row(run_id)).status == "running"


async def test_streams_of_other_keys_of_the_same_user_go_on(quick: None) -> None:
    async with open_doors() as doors:
        headers, key_id = await a_key(doors)
        other = await doors.key_for("ann", role="admin")
        await doors.post(a_body(thread=THREAD), headers=headers)
        run = await doors.gateway.next()
        path = f"/api/v1/agent/runs/{run.run_id}/events"
        async with (
            doors.client.stream("GET", path, headers=headers) as cut,
            doors.client.stream("GET", path, headers=other) as kept,
        ):
            await revoked_elsewhere(doors, key_id)
            await cut_within(cut)
            run.message("done")
            run.say("run.completed")
            assert b"RUN_FINISHED" in await kept.aread()


@pytest.mark.spec("http/open-ends")
@pytest.mark.parametrize("opened", STREAMS, ids=lambda opened: opened.__name__)
async def test_an_expired_token_ends_every_stream_it_opened(opened: Opened, quick: None) -> None:
    async with open_doors(tokens=Tokens(TokenRules(), secret=SECRET)) as doors:
        claims = {"sub": "ann", "exp": time.time() - LEEWAY_SECONDS + 2}
        token = jws.serialize_compact({"alg": "HS256"}, json.dumps(claims).encode(), OctKey.import_key(SECRET))
        async with opened(doors, {"Authorization": f"Bearer {token}"}) as answer:
            assert b"the token that opened this has expired" in await cut_within(answer, 2 + SOON)


@pytest.mark.spec("http/open-ends")
@pytest.mark.parametrize("opened", STREAMS, ids=lambda opened: opened.__name__)
async def test_the_first_key_ends_every_stream_that_was_opened_without_one(opened: Opened, quick: None) -> None:
    async with open_doors() as doors, opened(doors, {}) as answer:
        made = await doors.client.post("/api/v1/api-keys", json={"user": "me", "role": "admin"})
        assert made.status_code == 201
        assert b"callers are known by key now" in await cut_within(answer)


@pytest.mark.spec("http/open-ends")
async def test_a_revoked_key_ends_the_runner_that_attached_with_its_token(tmp_path: Path, quick: None) -> None:
    async with an_open_house(tmp_path) as (house, gateway, client, address):
        await house.store.add_key(_row("k-admin", b"pdk_boss", role="admin"))
        token = await a_token(client, Authorization="Bearer pdk_boss")
        async with connect(f"{address}?token={token}") as socket:
            serving = asyncio.create_task(serve_by_hand(socket))
            await until_listed(gateway, [ONE])
            await house.store.revoke_key("k-admin", time.time(), _decided("k-admin"))
            async with asyncio.timeout(SOON):
                await until_listed(gateway, [])
                with pytest.raises(ConnectionClosed) as closed:
                    await serving
            assert closed.value.rcvd is not None
            assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4401, "the key that opened this was revoked")


@pytest.mark.spec("http/revoke-key")
async def test_a_token_of_a_key_that_was_revoked_since_attaches_no_runner(tmp_path: Path) -> None:
    async with an_open_house(tmp_path) as (house, _, client, address):
        await house.store.add_key(_row("k-admin", b"pdk_boss", role="admin"))
        token = await a_token(client, Authorization="Bearer pdk_boss")
        await house.store.revoke_key("k-admin", time.time(), _decided("k-admin"))
        async with connect(f"{address}?token={token}") as socket:
            with pytest.raises(ConnectionClosed) as closed:
                await socket.recv()
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4401, "the key that opened this was revoked")


# --- transfers --------------------------------------------------------------------------------------------------------


async def broken_off(
    doors: Doors, method: str, url: str, key_id: str, headers: Headers, size: int = 100_000
) -> dict[str, Any]:
    """The answer to a body whose second half never came, because its key was revoked in between."""
    parts = urlsplit(f"{doors.url}{url}" if url.startswith("/") else url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    told = {"Host": parts.netloc, "Content-Length": str(size), **headers}
    lines = [f"{method} {parts.path}?{parts.query} HTTP/1.1", *(f"{name}: {value}" for name, value in told.items())]
    writer.write("\r\n".join([*lines, "", ""]).encode() + b"{" * (size // 2))
    await until_held(doors)
    await revoked_elsewhere(doors, key_id)
    async with asyncio.timeout(SOON):
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 401"), head
        size = int(re.findall(rb"content-length: (\d+)", head)[0])
        answer = json.loads(await reader.readexactly(size))
    writer.close()
    return answer


async def until_held(doors: Doors) -> None:
    async with asyncio.timeout(30):
        while not doors.open_streams.open:
            await asyncio.sleep(0.005)


@pytest.mark.parametrize(
    ("method", "path", "kind", "size"),
    [
        ("POST", "/api/v1/agent/attachments", "multipart/form-data; boundary=x", 100_000),
        ("POST", "/api/v1/agent/runs", "application/json", 100_000),
        ("POST", "/api/v1/agent/ag-ui", "application/json", 100_000),
        ("POST", f"{SESSIONS}/messages", "application/json", 50_000),
        ("PATCH", "/api/v1/users/me", "application/json", 50_000),
    ],
)
async def test_a_body_that_is_still_being_sent_is_broken_off(
    method: str, path: str, kind: str, size: int, quick: None
) -> None:
    async with open_doors() as doors:
        headers, key_id = await a_key(doors)
        headers = {**headers, "Content-Type": kind}
        answer = await broken_off(doors, method, path, key_id, headers, size)
        assert answer["detail"] == "the key that opened this was revoked"


async def test_an_upload_to_a_signed_address_is_broken_off_and_the_address_counts_no_more(quick: None) -> None:
    async with open_doors() as doors:
        headers, key_id = await a_key(doors)
        said = {"filename": "map.png", "mimeType": "image/png", "size": 200_000}
        offered = await doors.client.post("/api/v1/agent/attachments", json=said, headers=headers)
        url = offered.json()["upload"]["url"]
        answer = await broken_off(doors, "PUT", url, key_id, {})
        assert answer["detail"] == "the key that opened this was revoked"
        assert_problem(await doors.client.put(url, content=b"x"), 403, "unauthorized", "this address is not valid")


@pytest.mark.spec("http/open-ends")
async def test_a_signed_address_to_read_counts_no_longer_than_the_key_it_was_given_to(quick: None) -> None:
    async with open_doors() as doors:
        headers, key_id = await a_key(doors)
        form = {"file": ("map.png", picture(), "image/png")}
        kept = await doors.client.post("/api/v1/agent/attachments", files=form, headers=headers)
        url = kept.json()["url"]
        assert (await doors.client.get(url)).status_code == 200
        await revoked_elsewhere(doors, key_id)
        assert_problem(await doors.client.get(url), 403, "unauthorized", "this address is not valid")
        another = await doors.key_for("ann", role="admin")
        fresh = (
            await doors.client.get(f"/api/v1/agent/attachments/{kept.json()['attachmentId']}", headers=another)
        ).json()
        assert (await doors.client.get(fresh["url"])).status_code == 200
        swapped = fresh["url"].replace("by=k.pdk_ann_default_admin", "by=")
        assert swapped != fresh["url"]
        assert_problem(await doors.client.get(swapped), 403, "unauthorized", "this address is not valid")


async def test_a_download_and_an_export_are_broken_off(quick: None) -> None:
    async with open_doors() as doors:
        headers, key_id = await a_key(doors)
        await a_live_run(doors, headers)
        going_on = asyncio.Event()
        doors.house.store.transcript = _stalled(doors.house.store.transcript, going_on)  # type: ignore[method-assign]
        async with asyncio.timeout(SOON):
            asking = asyncio.create_task(doors.client.get(f"{SESSIONS}/export", headers=headers))
            await until_held(doors)
            await revoked_elsewhere(doors, key_id)
            with pytest.raises(httpx.RemoteProtocolError):
                await asking


def _stalled(read: Any, going_on: asyncio.Event) -> Any:
    async def stalled(*given: Any, **named: Any) -> Any:
        await going_on.wait()
        return await read(*given, **named)

    return stalled


# --- how many ---------------------------------------------------------------------------------------------------------


@pytest.mark.spec("http/open-streams")
async def test_a_user_holds_so_many_streams_and_no_more_until_one_is_closed() -> None:
    async with open_doors(stream_limits=StreamLimits(of_user=2, of_workspace=100)) as doors:
        ann, bob = await doors.key_for("ann"), await doors.key_for("bob")
        for headers in (ann, bob):
            await doors.client.post("/api/v1/agent/sessions", json={"threadId": str(uuid.uuid4())}, headers=headers)
        mine = (await doors.client.post("/api/v1/agent/sessions", json={}, headers=ann)).json()["threadId"]
        path = f"/api/v1/agent/sessions/{mine}/events"
        async with doors.client.stream("GET", path, headers=ann), doors.client.stream("GET", path, headers=ann):
            refused = await doors.client.get(path, headers=ann)
            assert_problem(refused, 429, "rate_limited", "2 streams are open, as many as a user may hold")
            assert refused.headers["retry-after"] == "5"
            body = {"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "hello"}]}
            asked = await doors.client.post("/api/v1/agent/ag-ui", json=body, headers=ann)
            assert_problem(asked, 429, "rate_limited", "2 streams are open, as many as a user may hold")
            theirs = (await doors.client.post("/api/v1/agent/sessions", json={}, headers=bob)).json()["threadId"]
            async with doors.client.stream("GET", f"/api/v1/agent/sessions/{theirs}/events", headers=bob) as other:
                assert other.status_code == 200
        await until_nothing_is_held(doors)
        async with doors.client.stream("GET", path, headers=ann) as again:
            assert again.status_code == 200
        assert doors.gateway.started.empty()


@pytest.mark.spec("http/open-streams")
async def test_the_streams_of_a_workspace_are_bounded_together() -> None:
    async with open_doors(stream_limits=StreamLimits(of_user=2, of_workspace=2)) as doors:
        people = [await doors.key_for(name) for name in ("ann", "bob", "cleo")]
        paths: list[str] = []
        for headers in people:
            made = await doors.client.post("/api/v1/agent/sessions", json={}, headers=headers)
            paths.append(f"/api/v1/agent/sessions/{made.json()['threadId']}/events")
        async with (
            doors.client.stream("GET", paths[0], headers=people[0]),
            doors.client.stream("GET", paths[1], headers=people[1]),
        ):
            refused = await doors.client.get(paths[2], headers=people[2])
            assert_problem(refused, 429, "rate_limited", "2 streams are open, as many as a workspace may hold")


async def until_nothing_is_held(doors: Doors) -> None:
    async with asyncio.timeout(30):
        while doors.open_streams.open:
            await asyncio.sleep(0.005)


async def test_a_finished_stream_gives_its_place_back_on_every_way() -> None:
    async with open_doors(stream_limits=StreamLimits(of_user=1, of_workspace=1)) as doors:
        ann = await doors.key_for("ann")
        for number in range(3):
            body = {"threadId": "t", "runId": str(number), "messages": [{"id": "1", "role": "user", "content": "hi"}]}
            asking = asyncio.create_task(doors.client.post("/api/v1/agent/ag-ui", json=body, headers=ann))
            run = await doors.gateway.next()
            run.message("fine")
            run.say("run.completed")
            answer = await asking
            assert b"RUN_FINISHED" in answer.content
            again = await doors.client.get(f"/api/v1/agent/runs/{run.run_id}/events", headers=ann)
            assert again.status_code == 200
            broken = await doors.client.post("/api/v1/agent/ag-ui", json={"threadId": 1}, headers=ann)
            assert broken.status_code == 422
        await until_nothing_is_held(doors)


# --- how it is written ------------------------------------------------------------------------------------------------


WRITTEN = [HOST, KEYLESS, Credential("key", "a-key"), Credential("token", ends_at=1_800_000_000.0)]


@pytest.mark.parametrize("given", WRITTEN, ids=lambda given: given.kind)
def test_a_credential_is_read_as_it_was_written(given: Credential) -> None:
    assert read_credential(given.written()) == given


@pytest.mark.parametrize("text", ["k.", "k", "t.", "t.x", "t." + "9" * 40, "t.²", "n", "x.y", "."])
def test_what_no_credential_wrote_is_none(text: str) -> None:
    assert read_credential(text) is None


def _row(key_id: str, key: bytes, role: Any = "user") -> ApiKeyRow:
    return ApiKeyRow(key_id, sha256(key).digest(), "default", "boss", role, 0.0)


def _decided(key_id: str) -> AuditRow:
    return AuditRow(time.time(), "default", "user:boss", "api_keys.revoke", key_id, "default", "allowed", "role admin")
