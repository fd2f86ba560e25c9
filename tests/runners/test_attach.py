"""Runners that attach from elsewhere, with a fixture program behind a bridge in place of a WebSocket."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from paddock.rules.errors import ErrorCode, HostError
from paddock.runners.attach import TOKEN_SECONDS, AttachTokens
from paddock.runners.gateway import Gateway
from runners.house import FIXTURES, PYTHON, House, News, house, plugin

pytestmark = pytest.mark.anyio


class Bridge:
    """Carries lines between an attached runner and a child process, as the WebSocket door and `runner dev` do."""

    def __init__(self, child: "subprocess.Popen[bytes]") -> None:
        self.child = child
        self.closed = False

    def send(self, line: bytes) -> None:
        if not self.closed:
            self.child.stdin.write(line + b"\n")
            self.child.stdin.flush()

    def close(self) -> None:
        self.closed = True

    async def attach(self, gateway: Gateway, token: str) -> Any:
        peer = await gateway.attach(token, self)
        threading.Thread(target=self._read, args=(peer, anyio.lowlevel.current_token())).start()
        return peer

    def _read(self, peer: Any, token: Any) -> None:
        for line in self.child.stdout:
            anyio.from_thread.run_sync(peer.feed_line, line.strip(), token=token)


@contextmanager
def program(plugin_id: str = "test/nasty", name: str = "nasty.py", *arguments: str) -> Iterator[Bridge]:
    argv = [PYTHON, str(FIXTURES / name), *arguments]
    env = {"PADDOCK_PLUGIN": plugin_id}
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, bufsize=0)
    try:
        yield Bridge(child)
    finally:
        child.kill()
        child.wait()


async def run(here: House, text: str, workspace: str = "w1") -> tuple[News, Any]:
    news = News()
    context = {"run_id": "r", "input": {"text": text}, "conversation": {"workspace_id": workspace}}
    return news, await here.gateway.start_run("plugin:test/nasty/default", "r", context, news)


async def attached(here: House, bridge: Bridge, workspace: str = "w1", name: str = "nasty") -> Any:
    peer = await bridge.attach(here.gateway, here.gateway.attach_tokens.mint(workspace, "test", name))
    with anyio.fail_after(10):
        await peer.introduced()
    return peer


async def test_an_attached_runner_takes_the_new_runs_of_its_workspace_and_no_others(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        with program() as bridge:
            await attached(here, bridge)
            pids = [(await (await run(here, "pid", space))[0].over()).results[-1].data["pid"] for space in ("w1", "w2")]
            assert pids[0] == bridge.child.pid != pids[1]
            states = sorted(status.state for status in await here.gateway.list_runners())
            assert states == ["attached", "ready"]


async def test_runs_that_were_there_before_stay_where_they_are(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        before, handle = await run(here, "hang")
        with program() as bridge:
            peer = await attached(here, bridge)
            assert await handle.cancel("done")
            assert before.losses == []
            peer.end()


async def test_its_disconnect_ends_its_runs_and_the_installed_plugin_serves_again(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        with program() as bridge:
            peer = await attached(here, bridge)
            news, _ = await run(here, "hang")
            await news.until(lambda news: bool(news.text))
            peer.end()
            assert (news.code, bridge.closed) == ("runner.crashed", True)
        again, _ = await run(here, "echo back")
        assert (await again.over()).text == ["back"]


async def test_a_plugin_nobody_installed_can_be_attached(tmp_path: Path) -> None:
    async with house(tmp_path, [plugin("other")]) as here:
        with program() as bridge:
            await attached(here, bridge)
            assert (await here.gateway.manifest("plugin:test/nasty/default")).name == "default"
            news, _ = await run(here, "echo hello")
            assert (await news.over()).text == ["hello"]
            stranger, _ = await run(here, "echo hello", "w2")
            assert stranger.code == "runner.not_found"


async def test_it_can_only_be_what_its_token_says(tmp_path: Path) -> None:
    async with house(tmp_path, [plugin("other")]) as here:
        with program("somebody/else") as bridge:
            peer = await attached(here, bridge)
            with pytest.raises(HostError):
                await here.gateway.manifest("plugin:somebody/else/default")
            assert not peer.manifests


async def test_a_runner_of_another_protocol_is_let_go(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        with program("test/nasty", "versions.py", "2") as bridge:
            await attached(here, bridge)
            assert bridge.closed


async def test_a_token_is_good_once_and_for_a_minute() -> None:
    now = 0.0
    tokens = AttachTokens(clock=lambda: now)
    token, late = tokens.mint("w", "a", "n"), tokens.mint("w", "a", "n")
    ticket = tokens.redeem(token)
    assert (ticket.workspace, str(ticket.plugin)) == ("w", "a/n")
    now = TOKEN_SECONDS
    for used in (token, late, "", "pda_" + "x" * 43, "\ud800"):
        with pytest.raises(HostError) as refused:
            tokens.redeem(used)
        assert refused.value.code is ErrorCode.UNAUTHENTICATED


async def test_tokens_are_only_made_for_names_that_can_be_names() -> None:
    with pytest.raises(HostError) as refused:
        AttachTokens().mint("w", "../etc", "passwd")
    assert refused.value.code is ErrorCode.INVALID_ARGUMENT


async def test_the_gateway_lets_attached_runners_go_when_it_stops(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        with program() as bridge:
            await attached(here, bridge)
            news, _ = await run(here, "hang")
            await here.gateway.stop()
            assert (news.code, bridge.closed) == ("host_shutdown", True)
