"""MCP servers as tools, with real servers over stdio and HTTP: listed, called, refreshed, started again."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from loopback import free_port
from paddock.ports.tools import ToolAnswer, ToolFile, ToolUse
from paddock.rules.agents.specs import McpServerSpec, tool_name
from paddock.tools import mcp_server
from paddock.tools.functions import ToolDefinitionError
from paddock.tools.mcp import McpTools

pytestmark = pytest.mark.anyio

HERE = Path(__file__).parent
MOODY = str(HERE / "servers" / "moody.py")
PAINTER = {"command": sys.executable, "args": [str(HERE / "servers" / "painter.py")]}
STDIO = {"command": sys.executable, "args": [MOODY]}


@asynccontextmanager
async def running(**servers: Any) -> AsyncGenerator[McpTools]:
    specs = {name: McpServerSpec.model_validate(spec) for name, spec in servers.items()}
    reveal: Callable[[str], str] = lambda text: "revealed" if text.startswith("env:") else text  # noqa: E731
    tools = McpTools(specs, reveal=reveal, mark={"PADDOCK_MARK": "test"}, clock=time.time)
    tasks: list[asyncio.Task[None]] = []

    def spawn(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        tasks.append(asyncio.ensure_future(work))
        return tasks[-1]

    tools.start(spawn)
    try:
        for server in tools.servers:
            await server.settled(60)
        yield tools
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def calling(tools: McpTools, name: str, /, by: str = "w", within: float = 60, **parameters: Any) -> ToolAnswer:
    return await tools.call(ToolUse("c", name, parameters, by, "u", "a", "s", "r", time.time() + within))


async def said(tools: McpTools, name: str, /, **parameters: Any) -> Any:
    answer = await calling(tools, name, **parameters)
    assert not answer.is_error, answer.content
    return json.loads(answer.content)


async def eventually(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():
            await asyncio.sleep(0.02)


async def test_a_server_over_stdio_is_listed_and_called_and_sees_only_its_own_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOST_SECRET", "hidden")
    async with running(moody=STDIO | {"env": {"TOKEN": "env:NAME"}, "tools": ["add", "secret", "refuse"]}) as tools:
        assert [info.name for info in tools.list("w")] == ["moody__add", "moody__refuse", "moody__secret"]
        assert await said(tools, "moody__add", a=2, b=3) == {"result": 5}
        assert "revealed None" in str(await said(tools, "moody__secret"))
        refused = await calling(tools, "moody__refuse")
        assert refused.is_error
        assert b"not today" in refused.content
        wrong = await calling(tools, "moody__add", a="x")
        assert wrong.is_error


async def test_a_server_that_dies_in_a_call_gives_an_unknown_outcome_and_is_started_again() -> None:
    async with running(moody=STDIO) as tools:
        answer = await calling(tools, "moody__die")
        assert (answer.is_error, answer.unknown) == (True, True)
        assert b"not known" in answer.content
        (server,) = tools.servers
        down = await calling(tools, "moody__add", a=1, b=1)
        assert down.is_error or json.loads(down.content) == {"result": 2}
        await eventually(lambda: server.problem is None)
        assert await said(tools, "moody__add", a=1, b=1) == {"result": 2}


async def test_a_workspace_that_brings_a_server_down_again_and_again_makes_it_rest_for_itself_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(mcp_server, "time", SimpleNamespace(monotonic=lambda: now[0]))
    async with running(moody=STDIO) as tools:
        (server,) = tools.servers
        for rest in (0.0, 1.0, 2.0):
            now[0] += rest
            lost = await calling(tools, "moody__die", by="bad")
            assert lost.unknown, lost.content
            await eventually(lambda: server.problem is None)
        now[0] += 1.0
        refused = await calling(tools, "moody__add", by="bad", a=1, b=1)
        assert refused.is_error
        assert not refused.unknown, "it was not called"
        assert b"went down in calls of this workspace" in refused.content
        assert b"in 3 seconds" in refused.content
        assert await said(tools, "moody__add", by="good", a=1, b=1) == {"result": 2}
        now[0] += 3.0
        assert await said(tools, "moody__add", by="bad", a=1, b=1) == {"result": 2}


async def test_a_server_that_says_far_too_much_is_not_listened_to_and_started_again() -> None:
    async with running(moody=STDIO) as tools:
        assert len((await calling(tools, "moody__chatter", megabytes=5)).content) > 5_000_000
        began = time.process_time()
        answer = await calling(tools, "moody__chatter", megabytes=40)
        assert (answer.is_error, answer.unknown) == (True, True)
        assert b"it said more than 16 MiB in one message" in answer.content
        assert (
            time.process_time() - began < 10
        )  # of this process; the official reader takes as long as the square of it
        (server,) = tools.servers
        await eventually(lambda: server.problem is None)
        assert await said(tools, "moody__add", a=1, b=1) == {"result": 2}


async def test_workspaces_take_turns_at_the_tools_of_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_server, "AT_ONCE", 1)
    called = tmp_path / "called"
    async with running(moody=STDIO) as tools:

        async def call(workspace: str) -> None:
            parameters = {"path": str(called), "word": workspace, "seconds": 0.02}
            use = ToolUse("c", "moody__write", parameters, workspace, "u", "a", "s", "r", time.time() + 60)
            assert not (await tools.call(use)).is_error

        async with asyncio.TaskGroup() as group:
            for _ in range(12):
                group.create_task(call("loud"))
            await eventually(called.exists)
            before = len(called.read_text().split())
            group.create_task(call("quiet"))
    order = called.read_text().split()
    assert len(order) == 13
    assert order.index("quiet") <= before + 3  # of 12


async def test_a_workspace_whose_calls_hang_keeps_no_other_from_a_server() -> None:
    async with running(moody=STDIO) as tools:

        def use(name: str, workspace: str, **parameters: Any) -> ToolUse:
            return ToolUse("c", name, parameters, workspace, "u", "a", "s", "r", time.time() + 60)

        hanging = [asyncio.create_task(tools.call(use("moody__hang", "loud"))) for _ in range(mcp_server.AT_ONCE * 2)]
        async with asyncio.timeout(30):
            assert not (await tools.call(use("moody__add", "quiet", a=1, b=1))).is_error
        for task in hanging:
            task.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)


async def test_a_call_whose_turn_does_not_come_was_not_made_and_too_many_do_not_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("AT_ONCE", "WAITING"):
        monkeypatch.setattr(mcp_server, name, 1)
    async with running(moody=STDIO | {"timeout_seconds": 0.5}) as tools:
        hanging = asyncio.create_task(calling(tools, "moody__hang"))
        await asyncio.sleep(0)
        waiting = asyncio.create_task(calling(tools, "moody__add", within=0.1, a=1, b=1))
        await asyncio.sleep(0)
        refused = await calling(tools, "moody__add", a=1, b=1)
        assert (refused.is_error, refused.unknown) == (True, False)
        assert b"too many" in refused.content
        waited = await waiting
        assert (waited.is_error, waited.unknown) == (True, False)
        assert b"its turn did not come" in waited.content
        assert (await hanging).unknown


async def test_a_call_that_hangs_ends_with_its_time_and_others_go_on() -> None:
    async with running(moody=STDIO | {"timeout_seconds": 0.5}) as tools:
        hanging = asyncio.create_task(calling(tools, "moody__hang"))
        await asyncio.sleep(0)
        answer = await hanging
        assert (answer.is_error, answer.unknown) == (True, True)
        assert await said(tools, "moody__add", a=1, b=1) == {"result": 2}


async def test_a_list_that_changes_is_read_again() -> None:
    async with running(moody=STDIO) as tools:
        assert tools.find("w", "moody__greet") is None
        await said(tools, "moody__learn")
        await eventually(lambda: tools.find("w", "moody__greet") is not None)
        assert await said(tools, "moody__greet", name="Ann") == {"result": "Hello, Ann"}


@asynccontextmanager
async def moody_at(port: int, *how: str) -> AsyncGenerator[None]:
    command = [sys.executable, MOODY, str(port), *how]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            await eventually(lambda: is_open(port))  # else it is looked for again later and later
            yield
        finally:
            process.kill()


async def test_a_server_over_http_is_listed_and_called() -> None:
    port = free_port()
    async with moody_at(port), running(moody={"url": f"http://127.0.0.1:{port}/mcp"}) as tools:
        (server,) = tools.servers
        await eventually(lambda: server.problem is None)
        assert await said(tools, "moody__add", a=20, b=22) == {"result": 42}


@pytest.mark.parametrize("how", ["streams", "json"])
async def test_a_server_over_http_that_dies_in_a_call_gives_an_unknown_outcome(how: str) -> None:
    port = free_port()
    async with moody_at(port, how), running(moody={"url": f"http://127.0.0.1:{port}/mcp"}) as tools:
        (server,) = tools.servers
        await eventually(lambda: server.problem is None)
        answer = await calling(tools, "moody__die")
        assert (answer.is_error, answer.unknown) == (True, True), answer.content
        assert b"whether it did its work is not known" in answer.content


async def test_a_call_whose_answer_a_gateway_loses_has_an_unknown_outcome() -> None:
    port = free_port()
    async with moody_at(port, "gateway"), running(moody={"url": f"http://127.0.0.1:{port}/mcp"}) as tools:
        (server,) = tools.servers
        await eventually(lambda: server.problem is None)
        answer = await calling(tools, "moody__add", a=1, b=1)
        assert (answer.is_error, answer.unknown) == (True, True), answer.content


@pytest.mark.parametrize("how", ["streams", "json"])
async def test_a_server_over_http_may_say_as_much_in_one_message_as_one_over_stdio(how: str) -> None:
    port = free_port()
    async with moody_at(port, how), running(moody={"url": f"http://127.0.0.1:{port}/mcp"}) as tools:
        (server,) = tools.servers
        await eventually(lambda: server.problem is None)
        assert len((await calling(tools, "moody__chatter", megabytes=5)).content) > 5_000_000
        answer = await calling(tools, "moody__chatter", megabytes=40)
        assert (answer.is_error, answer.unknown) == (True, True), answer.content
        assert len(answer.content) < 1000
        assert await said(tools, "moody__add", a=1, b=1) == {"result": 2}


async def test_a_server_over_http_that_began_anew_unnoticed_is_asked_again_as_a_new_one() -> None:
    port = free_port()
    async with running(moody={"url": f"http://127.0.0.1:{port}/mcp"}) as tools:
        (server,) = tools.servers
        async with moody_at(port):
            await eventually(lambda: server.problem is None)
        async with moody_at(port):
            await eventually(lambda: is_open(port))
            both = await asyncio.gather(said(tools, "moody__add", a=1, b=2), said(tools, "moody__add", a=3, b=4))
            assert both == [{"result": 3}, {"result": 7}]


async def test_stopping_is_the_end_also_when_the_server_dies_at_that_moment() -> None:
    port = free_port()
    async with asyncio.timeout(60), AsyncExitStack() as there:
        await there.enter_async_context(moody_at(port))
        async with running(moody={"url": f"http://127.0.0.1:{port}/mcp"}) as tools:
            hanging = asyncio.create_task(calling(tools, "moody__hang"))
            await said(tools, "moody__add", a=1, b=2)
            assert not hanging.done()
            await there.aclose()
    assert (await hanging).is_error


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def a_text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


async def test_pictures_and_other_bytes_come_as_files_in_their_place() -> None:
    async with running(painter=PAINTER) as tools:
        painted = await calling(tools, "painter__paint", width=2)
        words, picture = painted.parts
        assert (painted.content, words) == (b"", a_text("here it is"))
        assert isinstance(picture, ToolFile)
        assert (picture.mime_type, picture.content[:4]) == ("image/png", b"\x89PNG")
        embedded, sound, note = (await calling(tools, "painter__embed")).parts
        assert isinstance(embedded, ToolFile)
        assert (embedded.name, embedded.mime_type, embedded.content) == ("map.png", "image/png", picture.content)
        assert isinstance(sound, ToolFile)
        assert (sound.mime_type, sound.content) == ("audio/wav", b"RIFF\xff")
        assert note == {"type": "resource", "resource": {"uri": "a://b/note", "mimeType": "text/plain", "text": "tea"}}


async def test_a_picture_that_is_not_base64_is_said_to_be_and_the_words_beside_it_stay() -> None:
    async with running(painter=PAINTER) as tools:
        words, broken = (await calling(tools, "painter__break_it")).parts
        assert words == a_text("look")
        told = "(a file came along, image/png, that cannot be read: it is not base64)"
        assert broken == a_text(told)


async def test_the_reference_time_server_works() -> None:
    async with running(time={"command": sys.executable, "args": ["-m", "mcp_server_time"]}) as tools:
        assert {info.name for info in tools.list("w")} == {"time__get_current_time", "time__convert_time"}
        now = await said(tools, "time__get_current_time", timezone="Asia/Shanghai")
        assert "+08:00" in json.dumps(now)


async def test_a_server_that_cannot_be_started_breaks_nothing() -> None:
    async with running(none={"command": "/no/such/program"}, moody=STDIO) as tools:
        assert tools.find("w", "moody__add") is not None
        assert tools.servers[0].problem is not None
        assert "/no/such/program cannot be started: No such file or directory" in tools.servers[0].problem


async def test_stopping_leaves_no_process_behind() -> None:
    async with running(moody=STDIO) as tools:
        pid = int(str(await said(tools, "moody__secret")).split()[-1].strip("'}"))
        os.kill(pid, 0)
    await eventually(lambda: not _alive(pid))


async def test_servers_come_and_go_while_one_that_stays_is_left_alone() -> None:
    async with running(stays=STDIO, goes=STDIO) as tools:
        before = await said(tools, "stays__secret")
        going = int(str(await said(tools, "goes__secret")).split()[-1].strip("'}"))
        hanging = asyncio.create_task(calling(tools, "goes__hang"))
        await asyncio.sleep(0)
        tools.take({name: McpServerSpec.model_validate(STDIO) for name in ("stays", "comes")})
        assert [server.name for server in tools.servers] == ["stays", "comes"]
        await eventually(lambda: tools.find("w", "comes__add") is not None)
        assert await said(tools, "comes__add", a=1, b=1) == {"result": 2}
        assert await said(tools, "stays__secret") == before  # the same process
        assert (await hanging).unknown
        await eventually(lambda: not _alive(going))
        assert tools.find("w", "goes__add") is None


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def test_mistakes_are_told() -> None:
    with pytest.raises(ValidationError, match="either command"):
        McpServerSpec.model_validate({"command": "a", "url": "http://b"})
    with pytest.raises(ToolDefinitionError, match="no name for an MCP server"):
        McpTools({"1 x": McpServerSpec(command="a")}, reveal=str, mark={}, clock=time.time)
    assert tool_name("fs", "read_file") == "fs__read_file"
    assert tool_name("fs", "read file") is None


@pytest.mark.timeout(300)
async def test_the_reference_servers_of_npm_work(reference_servers: Path, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("hello from a file")
    everything = {"command": str(reference_servers / "mcp-server-everything")}
    files = {"command": str(reference_servers / "mcp-server-filesystem"), "args": [str(tmp_path)]}
    async with running(everything=everything, files=files) as tools:
        assert await said(tools, "everything__echo", message="hi") == "Echo: hi"
        words, picture, more = (await calling(tools, "everything__get-tiny-image")).parts
        assert isinstance(picture, ToolFile)
        assert (picture.mime_type, picture.content[:4]) == ("image/png", b"\x89PNG")
        assert (words, more) == (a_text("Here's the image you requested:"), a_text("The image above is the MCP logo."))
        assert "hello from a file" in str(await said(tools, "files__read_text_file", path=str(tmp_path / "note.txt")))
        refused = await calling(tools, "files__read_text_file", path="/etc/passwd")
        assert refused.is_error
        assert b"Access denied" in refused.content
        assert {info.name: info.read_only for info in tools.list("w")}["files__write_file"] is False
