"""Runners that attach from elsewhere, with a fixture program behind a bridge in place of a WebSocket."""

import json
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from paddock.ports import Placement
from paddock.rules.errors import ErrorCode, HostError
from paddock.runners.attached_runners import MAX_OF_ONE, MAX_TOKENS_OF_ONE, TOKEN_SECONDS, AttachTokens
from paddock.runners.gateway import Gateway
from paddock_sdk.protocol.manifest import AgentRunnerPermissions, DynamicFormItemSchema
from runners.house import FIXTURES, PYTHON, House, News, eventually, house, plugin

pytestmark = pytest.mark.anyio


class Bridge:
    """Carries lines between an attached runner and a child process, as the WebSocket door and `runner dev` do."""

    def __init__(self, child: "subprocess.Popen[bytes]") -> None:
        self.child = child
        self.closed = False
        self.reason, self.refused = "", False

    def send(self, line: bytes) -> None:
        if not self.closed:
            assert self.child.stdin is not None
            self.child.stdin.write(line + b"\n")
            self.child.stdin.flush()

    def close(self, reason: str = "", *, refused: bool = False) -> None:
        if not self.closed:
            self.closed, self.reason, self.refused = True, reason, refused

    async def attach(self, gateway: Gateway, token: str) -> Any:
        peer = await gateway.attach(token, self)
        threading.Thread(target=self._read, args=(peer, anyio.lowlevel.current_token())).start()
        return peer

    def _read(self, peer: Any, token: Any) -> None:
        assert self.child.stdout is not None
        with suppress(anyio.RunFinishedError):  # its last words may come after the test
            for line in self.child.stdout:
                anyio.from_thread.run_sync(peer.feed_line, line.strip(), token=token)


class Nobody:
    """A line at whose other end nobody says anything."""

    reason, refused = "", False

    def send(self, line: bytes) -> None:
        """Nobody hears it."""

    def close(self, reason: str = "", *, refused: bool = False) -> None:
        self.reason, self.refused = reason, refused


@contextmanager
def program(plugin_id: str = "test/nasty", name: str = "nasty.py", *arguments: str) -> Generator[Bridge]:
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


async def attached(here: House, bridge: Bridge, workspace: str = "w1", permissions: Any = None) -> Any:
    peer = await bridge.attach(here.gateway, here.gateway.attach_tokens.mint(workspace, "test", "nasty", permissions))
    with anyio.fail_after(30):
        await peer.introduced()
    return peer


async def test_settings_go_to_the_runner_whose_form_they_were_checked_against(tmp_path: Path) -> None:
    """Else a runner that is attached under the name of an installed one vouches for settings that the other gets."""
    runner = "plugin:test/nasty/default"
    async with house(tmp_path) as here:
        installed = await here.gateway.manifest(runner)
        field = DynamicFormItemSchema(type="string", name="command")
        other = installed.model_copy(update={"config_schema": [field]})
        context = {"run_id": "r", "input": {"text": "pid"}, "conversation": {"workspace_id": "w1"}}
        for changed in (other, installed.model_copy(update={"host_only": True})):
            news, place = News(), Placement(checked_for=changed)
            assert here.gateway.start_at_once(runner, "r", context, news, place) is None
            await here.gateway.start_run(runner, "r", context, news, place)
            assert news.code == "runner.replaced"
        news, place = News(), Placement(checked_for=installed.model_copy())
        await here.gateway.start_run(runner, "r", context, news, place)
        assert (await news.over()).ended


async def test_an_attached_runner_takes_the_new_runs_of_its_workspace_and_no_others(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        with program() as bridge:
            await attached(here, bridge)
            pids = [(await (await run(here, "pid", space))[0].over()).results[-1].data["pid"] for space in ("w1", "w2")]
            assert pids[0] == bridge.child.pid != pids[1]
            states = sorted(status.state for status in await here.gateway.list_runners())
            assert states == ["attached", "ready"]


async def test_it_is_told_of_other_hosts_in_the_handshake_and_when_they_change(tmp_path: Path) -> None:
    there = ["ws://other/attach"]
    async with house(tmp_path, elsewhere=lambda: list(there)) as here:
        with program() as bridge:
            sent: list[dict[str, Any]] = []
            carry, bridge.send = bridge.send, lambda line: (sent.append(json.loads(line)), carry(line))[1]
            await attached(here, bridge)
            there.clear()
            here.gateway.attached.tell_peers()
            told = [frame["params"]["peers"] for frame in sent if "peers" in frame.get("params", {})]
            assert told == [["ws://other/attach"], []]
            assert await here.gateway.manifest("plugin:test/nasty/default", "w1")  # it is still there


async def test_a_token_that_another_host_made_is_good_once(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        tokens = here.gateway.attach_tokens
        tokens.admit(tokens.digest_of("pda_made-there"), "w1", "test", "nasty")
        assert tokens.redeem("pda_made-there").workspace == "w1"
        with pytest.raises(HostError):
            tokens.redeem("pda_made-there")


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
            assert (bridge.closed, bridge.refused) == (True, True)
            assert bridge.reason == "it speaks protocol version '2'; this host speaks '1'"


NOTHING_TO_OFFER = [
    ("[]", "it offers no runners"),
    ('[{"id": "plugin:test/nasty/a", "name": "a"}]', "runner 'a': label is missing"),
    ("oops", "the answer to list_agent_runners has no list of runners"),
]


@pytest.mark.parametrize(("offer", "reason"), NOTHING_TO_OFFER)
async def test_a_runner_with_nothing_to_offer_hears_why_it_is_let_go(tmp_path: Path, offer: str, reason: str) -> None:
    async with house(tmp_path) as here:
        with program("test/nasty", "offers.py", offer) as bridge:
            await attached(here, bridge)
            assert (bridge.closed, bridge.refused, bridge.reason) == (True, True, reason)


async def test_one_that_never_introduces_itself_hears_so(tmp_path: Path) -> None:
    async with house(tmp_path, start_seconds=0.2) as here:
        silent = Nobody()
        peer = await here.gateway.attach(here.gateway.attach_tokens.mint("w1", "test", "nasty"), silent)
        await peer.introduced()
        assert (silent.refused, silent.reason) == (True, "it did not introduce itself within 0.2 seconds")


async def test_one_that_breaks_the_rules_later_hears_which_and_may_come_back(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        with program() as bridge:
            peer = await attached(here, bridge)
            peer.feed_line(b"x" * 5_000_000)
            await eventually(lambda: bridge.closed)
            assert (bridge.refused, "more than 4194304 bytes" in bridge.reason) == (False, True)


# --- what it may ask for ----------------------------------------------------------------------------------------------

OFFER = json.dumps(
    [
        {
            "id": "plugin:test/nasty/default",
            "name": "default",
            "label": "x",
            "capabilities": {},
            "permissions": {"history": ["page", "search"], "storage": ["plugin"]},
            "context": {},
        }
    ]
)
ALL = {"history": ["page", "search"], "storage": ["plugin"]}
CEILINGS = [
    (None, None, ALL),
    ({"history": ["page"]}, None, {"history": ["page"]}),
    (None, {"storage": ["plugin"]}, {"storage": ["plugin"]}),
    ({"history": ["page"], "storage": ["plugin"]}, {"history": ["page", "search"]}, {"history": ["page"]}),
    ({}, ALL, {}),
]


@pytest.mark.parametrize(("of_token", "of_plugin", "given"), CEILINGS)
async def test_its_runners_are_cut_by_the_token_and_by_the_installed_plugin(
    tmp_path: Path, of_token: Any, of_plugin: Any, given: Any
) -> None:
    installed = plugin("other") if of_plugin is None else plugin(ceiling=AgentRunnerPermissions(**of_plugin))
    async with house(tmp_path, [installed]) as here:
        with program("test/nasty", "offers.py", OFFER) as bridge:
            peer = await attached(here, bridge, permissions=of_token)
            [manifest] = peer.manifests.values()
            assert manifest.permissions == AgentRunnerPermissions(**given)


BAD_PERMISSIONS = [
    ([], "permissions must be an object"),
    ({"histori": ["page"]}, "permissions knows no 'histori' (did you mean history?)"),
    ({"history": ["rewrite"]}, "permissions.history.0: 'rewrite' is not known; known are 'page', 'search'"),
    ({"storage": "all"}, "permissions.storage: Input should be a valid list"),
]


@pytest.mark.parametrize(("permissions", "sentence"), BAD_PERMISSIONS)
async def test_permissions_that_cannot_be_are_refused_with_the_field(permissions: Any, sentence: str) -> None:
    with pytest.raises(HostError) as refused:
        AttachTokens().mint("w", "a", "n", permissions)
    assert (refused.value.code, refused.value.message) == (ErrorCode.INVALID_ARGUMENT, sentence)


# --- whose it is ------------------------------------------------------------------------------------------------------


async def test_only_its_own_workspace_sees_it_and_names_stay_the_same_object_until_they_change(tmp_path: Path) -> None:
    async with house(tmp_path, [plugin("other")]) as here:
        names, mine = here.gateway.names, {"nasty": "plugin:test/nasty/default"}
        installed = {"other": "plugin:test/other/default"}
        before = [names(space, installed=flag) for space in ("w1", "w2") for flag in (False, True)]
        assert before == [{}, installed, {}, installed]
        with program() as bridge:
            peer = await attached(here, bridge)
            assert (names("w1", installed=False), names("w1", installed=True)) == (mine, installed | mine)
            assert names("w1", installed=True) is names("w1", installed=True)
            assert names("w2", installed=True) is before[3]
            seen = [[each.runner_id for each in await here.gateway.list_runners(w)] for w in ("w1", "w2", None)]
            assert [("plugin:test/nasty/default" in each) for each in seen] == [True, False, True]
            peer.end()
        assert names("w1", installed=True) == installed


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


@pytest.mark.spec("http/attach-bounds")
async def test_tokens_that_wait_are_bounded_for_a_workspace_and_leave_room_for_another() -> None:
    now = 0.0
    tokens = AttachTokens(clock=lambda: now)
    for _ in range(MAX_TOKENS_OF_ONE):
        tokens.mint("greedy", "a", "n")
    with pytest.raises(HostError) as refused:
        tokens.mint("greedy", "a", "n")
    assert (refused.value.code, refused.value.retryable) == (ErrorCode.RATE_LIMITED, True)
    tokens.redeem(tokens.mint("other", "a", "n"))
    now = TOKEN_SECONDS
    tokens.mint("greedy", "a", "n")


class Silent:
    """A program that connects and says nothing."""

    closed = False

    def send(self, line: bytes) -> None: ...

    def close(self, reason: str = "", *, refused: bool = False) -> None:
        self.closed = True


@pytest.mark.spec("http/attach-bounds")
async def test_runners_that_attach_are_bounded_for_a_workspace_and_leave_room_for_another(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        gateway, tokens = here.gateway, here.gateway.attach_tokens
        peers = [await gateway.attach(tokens.mint("greedy", "a", f"n{n}"), Silent()) for n in range(MAX_OF_ONE)]
        with pytest.raises(HostError) as refused:
            await gateway.attach(tokens.mint("greedy", "a", "n"), Silent())
        assert refused.value.code is ErrorCode.RATE_LIMITED
        await gateway.attach(tokens.mint("other", "a", "n"), Silent())
        peers[0].end()
        await gateway.attach(tokens.mint("greedy", "a", "n"), Silent())


async def test_the_gateway_lets_attached_runners_go_when_it_stops(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        with program() as bridge:
            await attached(here, bridge)
            news, _ = await run(here, "hang")
            await here.gateway.stop()
            assert (news.code, bridge.closed) == ("host_shutdown", True)
