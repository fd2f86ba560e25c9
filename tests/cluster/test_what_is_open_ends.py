"""What somebody holds open at one host ends when another host is told that they are let in no more."""

import asyncio
import json
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from joserfc import jws
from joserfc.jwk import OctKey
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from cluster.conftest import Hosts
from http_api.test_attach import serve_by_hand
from paddock.http_api.edge.tokens import LEEWAY_SECONDS
from paddock.rules.agents.addresses import PATH
from walk.hosts import HostProcess, start_together, wait_until

SOON = 10.0
"""Seconds within which all of it must be over."""
SECRET = "a secret of thirty-two characters"


@pytest.fixture(scope="module")
def two(new_host: Hosts, tmp_path_factory: pytest.TempPathFactory) -> tuple[HostProcess, HostProcess]:
    secret = tmp_path_factory.mktemp("tokens") / "secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    env = {"PADDOCK_JWT_SECRET_FILE": str(secret), "PADDOCK_JWT_ROLE_CLAIM": "role"}
    hosts = new_host("here", env=env), new_host("there", env=env)
    start_together(hosts)
    return hosts


@pytest.fixture(scope="module")
def boss(two: tuple[HostProcess, HostProcess]) -> dict[str, str]:
    """Who administers, at whichever host."""
    headers = {"Authorization": f"Bearer {signed({'sub': 'boss', 'role': 'admin', 'exp': time.time() + 3600})}"}
    for host in two:
        with host.client(headers=headers) as client:
            assert client.get("/api/v1/users/me").json()["role"] == "admin"
    return headers


def signed(claims: dict[str, Any]) -> str:
    return jws.serialize_compact({"alg": "HS256"}, json.dumps(claims).encode(), OctKey.import_key(SECRET.encode()))


class Held:
    """A stream that is read on a thread until it ends."""

    def __init__(self, host: HostProcess, headers: dict[str, str], method: str, path: str, **more: Any) -> None:
        self.heard = b""
        self.ended_at = 0.0
        self._asked = (host, headers, method, path, more)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        host, headers, method, path, more = self._asked
        try:
            with host.client(headers=headers) as client, client.stream(method, path, **more) as answer:
                for piece in answer.iter_raw():
                    self.heard += piece
        except httpx.HTTPError:
            pass
        self.ended_at = time.monotonic()


def live_run(host: HostProcess, headers: dict[str, str]) -> tuple[str, str]:
    thread = str(uuid.uuid4())
    body = {
        "threadId": thread,
        "runId": uuid.uuid4().hex,
        "forwardedProps": {"runtime_mode": "chat"},
        "messages": [{"id": "m", "role": "user", "content": "count 20000 0.01"}],
    }
    with host.client(headers=headers) as client:
        accepted = client.post("/api/v1/agent/runs", json=body, params={"agent": "slow"})
    assert accepted.status_code == 202, accepted.text
    return thread, accepted.json()["taskId"]


@contextmanager
def holding(owner: HostProcess, reader: HostProcess, headers: dict[str, str]) -> Iterator[list[Held]]:
    """A run that goes on at one host, and every kind of stream of it that is read at the other."""
    thread, task = live_run(owner, headers)
    connected = {"threadId": thread, "runId": "c", "messages": []}
    spoken = {"id": "m", "role": "user", "content": "count 20000 0.01"}
    ag_ui = {"threadId": str(uuid.uuid4()), "runId": "r", "messages": [spoken]}
    held = [
        Held(reader, headers, "GET", f"/api/v1/agent/runs/{task}/events"),
        Held(reader, headers, "GET", f"/api/v1/agent/sessions/{thread}/events"),
        Held(reader, headers, "POST", "/api/v1/agent/ag-ui/connect", json=connected),
        Held(reader, headers, "POST", "/api/v1/agent/ag-ui/slow", json=ag_ui),
    ]
    for one in held:
        wait_until(lambda one=one: one.heard, 30, "the stream saying something")
    yield held


def all_end(held: list[Held], since: float, words: bytes) -> None:
    for one in held:
        wait_until(lambda one=one: one.ended_at, SOON + 5, "the end of a stream")
        assert one.ended_at - since < SOON
        assert words in one.heard, one.heard[-300:]


@pytest.mark.spec("http/open-ends")
def test_when_all_keys_of_a_user_are_revoked_at_one_host_their_streams_end_at_another(
    two: tuple[HostProcess, HostProcess], boss: dict[str, str]
) -> None:
    here, there = two
    with here.client(headers=boss) as client:
        keys = [client.post("/api/v1/api-keys", json={"user": "ann"}).json() for _ in range(2)]
        users = [{"Authorization": f"Bearer {key['key']}"} for key in keys]
        with holding(here, there, users[0]) as first, holding(there, there, users[1]) as second:
            assert not any(one.ended_at for one in (*first, *second))
            since = time.monotonic()
            for key in keys:
                assert client.delete(f"/api/v1/api-keys/{key['keyId']}").status_code == 204
            all_end([*first, *second], since, b"the key that opened this was revoked")
            wait_until(lambda: not any(lets_in(there, headers) for headers in users), 5, "the keys being refused")
            assert time.monotonic() - since < SOON


def lets_in(host: HostProcess, headers: dict[str, str]) -> bool:
    with host.client(headers=headers) as client:
        return client.get("/api/v1/users/me").status_code != 401


@pytest.mark.spec("http/open-ends")
def test_a_token_that_expires_ends_its_streams_at_whichever_host(
    two: tuple[HostProcess, HostProcess], boss: dict[str, str]
) -> None:
    here, there = two
    assert boss
    ends = time.time() + 6
    headers = {"Authorization": f"Bearer {signed({'sub': 'bob', 'exp': ends - LEEWAY_SECONDS})}"}
    with holding(here, there, headers) as held:
        since = time.monotonic() + max(0.0, ends - time.time())
        all_end(held, since, b"the token that opened this has expired")


@pytest.mark.spec("http/open-ends")
@pytest.mark.anyio
async def test_a_key_that_is_revoked_at_one_host_ends_the_runner_that_attached_at_another(
    two: tuple[HostProcess, HostProcess], boss: dict[str, str]
) -> None:
    here, there = two
    with here.client(headers=boss) as client:
        made = client.post("/api/v1/api-keys", json={"user": "carol", "role": "admin"}).json()
    with there.client(headers={"Authorization": f"Bearer {made['key']}"}) as client:
        body = {"author": "test", "name": "one"}
        token = client.post("/api/v1/runners/attach-tokens", json=body).json()["token"]
    address = f"{there.url.replace('http', 'ws', 1)}{PATH}?token={token}"
    async with connect(address) as socket:
        serving = asyncio.create_task(serve_by_hand(socket))
        await asyncio.to_thread(_until_attached, there, boss)
        with here.client(headers=boss) as client:
            assert client.delete(f"/api/v1/api-keys/{made['keyId']}").status_code == 204
        async with asyncio.timeout(SOON):
            with pytest.raises(ConnectionClosed) as closed:
                await serving
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4401


def _until_attached(host: HostProcess, headers: dict[str, str]) -> None:
    def attached() -> bool:
        with host.client(headers=headers) as client:
            return "attached" in client.get("/api/v1/runners").text

    wait_until(attached, 30, "the runner being attached")
