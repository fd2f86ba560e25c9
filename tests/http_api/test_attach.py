"""A runner attaches over a WebSocket: by a token good once, for the plugin it names, until it goes away."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from host.scripted import AGENTS, SmallHouse, manifest_of, small_house
from http_api import doors as helpers
from http_api.frames import split
from paddock.host.agents_file import parse_agents
from paddock.http_api import attach
from paddock.http_api.app import create_app
from paddock.http_api.attach import SocketTransport
from paddock.runners.catalog import Catalog
from paddock.runners.gateway import Gateway

pytestmark = pytest.mark.anyio
ONE = "plugin:test/one/default"


async def no_calls(*_: Any) -> Any:
    raise AssertionError("this runner makes no host calls")


@asynccontextmanager
async def an_open_house(home: Path) -> AsyncIterator[tuple[SmallHouse, Gateway, httpx.AsyncClient, str]]:
    gateway = Gateway(Catalog(), home=home, mark="test-attach", on_call=no_calls, host_version="test")
    async with small_house(gateway=gateway) as house:  # pyright: ignore[reportArgumentType]
        app = create_app(
            inbox=house.inbox,
            runs=house.view,
            tails=house.tails,
            agents=parse_agents(AGENTS, "test agents"),
            gateway=gateway,
            keys=house.store,
            ready=lambda: (True, ""),
        )
        async with helpers.serving(app) as url, httpx.AsyncClient(base_url=url, timeout=10) as client:
            yield house, gateway, client, f"ws{url.removeprefix('http')}/api/v1/runners/attach"
        await gateway.stop()


async def a_token(client: httpx.AsyncClient) -> str:
    body = {"author": "test", "name": "one"}
    return (await client.post("/api/v1/runners/attach-tokens", json=body)).json()["token"]


async def listed(gateway: Gateway) -> list[str]:
    return [status.runner_id for status in await gateway.list_runners() if status.state == "attached"]


async def serve_by_hand(socket: ClientConnection) -> None:
    """A runner in a few lines: shakes hands, offers one runner, echoes once per run."""
    async for line in socket:
        frame = json.loads(line)
        run = frame["params"].get("context", {}).get("run_id")
        result: Any = {
            "initialize": {"protocol_version": "1", "sdk": {"name": "by hand", "version": "0"}},
            "list_agent_runners": {"runners": [manifest_of(ONE, {}).model_dump(mode="json")]},
            "run_agent": {"run_id": run, "accepted": True},
        }.get(frame["method"])
        if result is not None:
            await socket.send(json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": result}))
        if run:
            text = frame["params"]["context"]["input"]["text"]
            await say(socket, run, 1, "message.completed", {"message": {"role": "assistant", "content": text}})
            await say(socket, run, 2, "run.completed", {})


async def say(socket: ClientConnection, run: str, sequence: int, kind: str, data: Any) -> None:
    params = {"run_id": run, "sequence": sequence, "type": kind, "data": data}
    await socket.send(json.dumps({"jsonrpc": "2.0", "method": "run_result", "params": params}))


async def until_listed(gateway: Gateway, expected: list[str]) -> None:
    async with asyncio.timeout(5):
        while await listed(gateway) != expected:
            await asyncio.sleep(0.005)


@pytest.mark.spec("http/attach")
async def test_an_attached_runner_answers_runs_and_is_gone_when_it_leaves(tmp_path: Path) -> None:
    async with an_open_house(tmp_path) as (_, gateway, client, address):
        async with connect(f"{address}?token={await a_token(client)}") as socket:
            serving = asyncio.create_task(serve_by_hand(socket))
            await until_listed(gateway, [ONE])
            body = {"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "多谢 hello"}]}
            answer = await client.post("/api/v1/agent/ag-ui/one", json=body)
            assert "多谢 hello".encode() in answer.content
            assert b"RUN_FINISHED" in split(answer.content)[-1]
            serving.cancel()
        await until_listed(gateway, [])


@pytest.mark.spec("http/attach")
async def test_a_run_of_a_runner_that_leaves_ends_with_it(tmp_path: Path) -> None:
    async with an_open_house(tmp_path) as (_, gateway, client, address):
        async with connect(f"{address}?token={await a_token(client)}") as socket:
            serving = asyncio.create_task(serve_by_hand(socket))
            await until_listed(gateway, [ONE])
            serving.cancel()
            body = helpers.a_body()
            accepted = (await client.post("/api/v1/agent/runs", json=body)).json()
            assert json.loads(await asyncio.wait_for(socket.recv(), 5))["method"] == "run_agent"
        stream = await client.get(f"/api/v1/agent/runs/{accepted['taskId']}/events")
        assert b"RUN_ERROR" in split(stream.content)[-1]
        assert b"disconnected" in split(stream.content)[-1]


@pytest.mark.spec("http/attach")
async def test_a_token_is_good_once_and_without_one_nobody_comes_in(tmp_path: Path) -> None:
    async with an_open_house(tmp_path) as (_, gateway, client, address):
        token = await a_token(client)
        async with connect(f"{address}?token={token}"):
            for bad in (f"?token={token}", "?token=guess", ""):
                with pytest.raises(InvalidStatus) as refused:
                    await connect(f"{address}{bad}")
                assert refused.value.response.status_code == 403
        assert await listed(gateway) == []


async def test_who_does_not_speak_the_protocol_is_shown_out(tmp_path: Path) -> None:
    async with (
        an_open_house(tmp_path) as (_, gateway, client, address),
        connect(f"{address}?token={await a_token(client)}") as socket,
    ):
        frame = json.loads(await socket.recv())
        assert frame["method"] == "initialize"
        await socket.send(json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": {"protocol_version": "99"}}))
        with pytest.raises(ConnectionClosed):
            await asyncio.wait_for(socket.recv(), 5)
        assert await listed(gateway) == []


class SlowSocket:
    """A socket that takes one line and then no more."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.closed: int | None = None
        self.may_go_on = asyncio.Event()

    async def send_text(self, line: str) -> None:
        self.lines.append(line)
        await self.may_go_on.wait()

    async def close(self, code: int) -> None:
        self.closed = code


@pytest.mark.spec("http/attach")
async def test_a_runner_that_does_not_read_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attach, "MAX_WAITING_BYTES", 1000)
    socket, transport = SlowSocket(), SocketTransport()
    pump = asyncio.create_task(transport.pump(socket))  # pyright: ignore[reportArgumentType]
    for _ in range(30):
        transport.send(b'{"x":"' + b"x" * 100 + b'"}\n')
        await asyncio.sleep(0)
    socket.may_go_on.set()
    await asyncio.wait_for(pump, 2)
    assert socket.closed == 1013
    assert len(socket.lines) == 1
    assert not socket.lines[0].endswith("\n")
