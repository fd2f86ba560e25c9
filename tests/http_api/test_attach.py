"""A runner attaches over a WebSocket: by a token good once, for the plugin it names, until it goes away."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from host.scripted import SmallHouse, manifest_of, small_house
from http_api import doors as helpers
from http_api.frames import split
from loopback import NO_TLS
from paddock.host.people.users import Users
from paddock.host.streams.open_streams import OpenStreams
from paddock.http_api.admin import runners as attach
from paddock.http_api.admin.runners import SocketTransport, close_reason
from paddock.knowledge.bases import Bases
from paddock.knowledge.ingest import Ingest
from paddock.ports import ApiKeyRow
from paddock.ports.attachments import Attachments
from paddock.runners.gateway import Gateway
from paddock.runners.installed.catalog import Catalog
from paddock.runners.processes.isolation import Confinement
from paddock.runners.processes.shared import RunnerGate
from paddock.storage.chosen import knowledge_in

pytestmark = pytest.mark.anyio
ONE = "plugin:test/one/default"


async def no_calls(*_: Any, **__: Any) -> Any:
    raise AssertionError("this runner makes no host calls")


@asynccontextmanager
async def an_open_house(home: Path) -> AsyncGenerator[tuple[SmallHouse, Gateway, httpx.AsyncClient, str]]:
    gateway = Gateway(Catalog(), Confinement(home, "test-attach"), RunnerGate(no_calls), host_version="test")
    async with small_house(gateway=gateway) as house:  # pyright: ignore[reportArgumentType]
        kept = knowledge_in(house.store)
        users, knowledge = Users(house.store, clock=time.time), Bases(kept, Ingest(kept))
        streams = OpenStreams(house.store)
        app = helpers.app_of(
            house,
            gateway,
            users=users,
            knowledge=knowledge,
            open_streams=streams,
            attachments=cast("Attachments", None),  # nobody attaches a file here
        )
        looking = asyncio.create_task(streams.keep_looking())
        async with helpers.serving(app) as url, httpx.AsyncClient(base_url=url, timeout=30, verify=NO_TLS) as client:
            yield house, gateway, client, f"ws{url.removeprefix('http')}/api/v1/runners/attach"
        looking.cancel()
        await gateway.stop()


async def a_token(client: httpx.AsyncClient, **headers: str) -> str:
    body = {"author": "test", "name": "one"}
    return (await client.post("/api/v1/runners/attach-tokens", json=body, headers=headers)).json()["token"]


async def listed(gateway: Gateway) -> list[str]:
    return [status.runner_id for status in await gateway.list_runners() if status.state == "attached"]


async def serve_by_hand(socket: ClientConnection, asks_for: Any = None) -> None:
    """A runner in a few lines: shakes hands, offers one runner, echoes once per run."""
    async for line in socket:
        frame = json.loads(line)
        run = frame["params"].get("context", {}).get("run_id")
        result: Any = {
            "initialize": {"protocol_version": "1", "sdk": {"name": "by hand", "version": "0"}},
            "list_agent_runners": {"runners": [manifest_of(ONE, asks_for or {}).model_dump(mode="json")]},
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
    async with asyncio.timeout(30):
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
            assert json.loads(await asyncio.wait_for(socket.recv(), 30))["method"] == "run_agent"
        stream = await client.get(f"/api/v1/agent/runs/{accepted['taskId']}/events")
        assert b"RUN_ERROR" in split(stream.content)[-1]
        assert b"disconnected" in split(stream.content)[-1]


@pytest.mark.spec("http/attach")
async def test_a_token_is_good_once_and_without_one_nobody_comes_in(tmp_path: Path) -> None:
    async with an_open_house(tmp_path) as (_, gateway, client, address):
        token = await a_token(client)
        async with connect(f"{address}?token={token}"):
            for bad in (f"?token={token}", "?token=guess", ""):
                async with connect(f"{address}{bad}") as stranger:
                    with pytest.raises(ConnectionClosed):
                        await asyncio.wait_for(stranger.recv(), 30)
                assert stranger.close_code == 4401
                assert stranger.close_reason == "this attach token is not valid (any more); ask for a new one"
        assert await listed(gateway) == []


GREETING = {"protocol_version": "1", "sdk": {"name": "by hand", "version": "0"}}
A_TYPO = manifest_of(ONE, {}).model_dump(mode="json") | {"permissions": {"history": ["rewrite"]}}
REFUSED = [
    ([{"protocol_version": "99"}], "it speaks protocol version '99'; this host speaks '1'"),
    ([{}], "it names no protocol version; this host speaks '1'"),
    ([GREETING, {"runners": []}], "it offers no runners"),
    ([GREETING, {"runners": [A_TYPO]}], "runner 'default': permissions.history.0: 'rewrite' is not known; known are"),
    ([GREETING, {"runners": [{"id": ONE, "name": "词" * 60}]}], "runner '词词"),
]


@pytest.mark.spec("http/attach-refused")
@pytest.mark.parametrize(("answers", "reason"), REFUSED)
async def test_who_is_shown_out_hears_why(tmp_path: Path, answers: list[Any], reason: str) -> None:
    async with (
        an_open_house(tmp_path) as (_, gateway, client, address),
        connect(f"{address}?token={await a_token(client)}") as socket,
    ):
        for answer in answers:
            frame = json.loads(await socket.recv())
            await socket.send(json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": answer}))
        with pytest.raises(ConnectionClosed):
            await asyncio.wait_for(socket.recv(), 30)
        assert (socket.close_code, await listed(gateway)) == (4400, [])
        assert socket.close_reason is not None
        assert socket.close_reason.startswith(reason)


@pytest.mark.parametrize("text", ["", "short", "x" * 123, "x" * 124, "词" * 41, "词" * 42, "ab\ud800", "🐎" * 40])
def test_a_reason_fits_a_close_frame_and_no_character_is_cut(text: str) -> None:
    reason = close_reason(text)
    assert len(reason.encode()) <= 123
    assert "\ufffd" not in reason
    assert reason == text.replace("\ud800", "?") if len(text.encode(errors="replace")) <= 123 else reason[-1] == "…"


@pytest.mark.spec("http/runners")
async def test_an_attached_runner_is_listed_for_its_own_workspace_only(tmp_path: Path) -> None:
    async with an_open_house(tmp_path) as (house, gateway, client, address):
        token = await a_token(client)
        async with connect(f"{address}?token={token}") as socket:
            serving = asyncio.create_task(serve_by_hand(socket))
            await until_listed(gateway, [ONE])
            seen = []
            for workspace in ("default", "acme"):
                row = ApiKeyRow(workspace, sha256(workspace.encode()).digest(), workspace, "ann", "admin", 0.0)
                await house.store.add_key(row)
                answer = await client.get("/api/v1/runners", headers={"Authorization": f"Bearer {workspace}"})
                seen.append([runner["runnerId"] for runner in answer.json()["runners"]])
            assert seen == [[ONE], []]
            serving.cancel()


@pytest.mark.spec("http/attach-tokens")
async def test_permissions_of_a_token_cut_what_its_runner_asks_for(tmp_path: Path) -> None:
    async with an_open_house(tmp_path) as (_, gateway, client, address):
        body = {"author": "test", "name": "one", "permissions": {"history": ["page"]}}
        token = (await client.post("/api/v1/runners/attach-tokens", json=body)).json()["token"]
        async with connect(f"{address}?token={token}") as socket:
            serving = asyncio.create_task(serve_by_hand(socket, {"history": ["page", "search"], "storage": ["plugin"]}))
            await until_listed(gateway, [ONE])
            permissions = (await gateway.manifest(ONE)).permissions
            assert (permissions.history, permissions.storage) == (["page"], [])
            serving.cancel()


@pytest.mark.spec("http/attach-tokens")
async def test_permissions_that_cannot_be_are_a_problem_that_names_the_field(tmp_path: Path) -> None:
    async with an_open_house(tmp_path) as (_, _gateway, client, _address):
        for permissions, detail in (
            ({"history": ["rewrite"]}, "permissions.history.0: 'rewrite' is not known; known are 'page', 'search'"),
            ({"histroy": ["page"]}, "permissions knows no 'histroy' (did you mean history?)"),
            ("all", "permissions must be an object"),
        ):
            body = {"author": "test", "name": "one", "permissions": permissions}
            answer = await client.post("/api/v1/runners/attach-tokens", json=body)
            helpers.assert_problem(answer, 422, "invalid_argument", detail)


class SlowSocket:
    """A socket that takes one line and then no more."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.closed: tuple[int, str] | None = None
        self.may_go_on = asyncio.Event()

    async def send_text(self, line: str) -> None:
        self.lines.append(line)
        await self.may_go_on.wait()

    async def close(self, code: int, reason: str) -> None:
        self.closed = (code, reason)


@pytest.mark.spec("http/attach")
async def test_a_runner_that_does_not_read_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attach, "MAX_WAITING_BYTES", 1000)
    socket, transport = SlowSocket(), SocketTransport()
    pump = asyncio.create_task(transport.pump(socket))  # pyright: ignore[reportArgumentType]
    for _ in range(30):
        transport.send(b'{"x":"' + b"x" * 100 + b'"}\n')
        await asyncio.sleep(0)
    socket.may_go_on.set()
    await asyncio.wait_for(pump, 30)
    assert socket.closed == (1013, "the runner does not read what the host sends")
    assert len(socket.lines) == 1
    assert not socket.lines[0].endswith("\n")


@pytest.mark.spec("http/attach-carried")
async def test_nobody_is_carried_on_to_an_address_that_is_no_host_of_ours(tmp_path: Path) -> None:
    met = asyncio.Event()

    async def meet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        met.set()
        writer.close()

    stranger = await asyncio.start_server(meet, "127.0.0.1", 0)
    port = stranger.sockets[0].getsockname()[1]
    async with stranger, an_open_house(tmp_path) as (_, _, client, door):
        token = await a_token(client)
        with pytest.raises(InvalidStatus):
            await connect(f"{door}?token={token}&host=ws://127.0.0.1:{port}/api/v1/runners/attach")
        async with connect(f"{door}?token={token}") as socket:  # it is still good
            assert json.loads(await socket.recv())["method"] == "initialize"
        assert not met.is_set()
