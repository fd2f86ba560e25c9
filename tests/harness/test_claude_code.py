"""What is particular to Claude Code: what it is allowed when it is started, and how it says that nobody logged in."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from harness.fixtures import KINDS, Desk, a_desk
from paddock_sdk.protocol.results import RunFailed

pytestmark = pytest.mark.anyio


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with a_desk(KINDS["claude-code"], tmp_path) as made:
        yield made


async def test_only_the_hosts_own_tools_and_those_the_owner_names_need_no_question(desk: Desk) -> None:
    own = {"name": "host", "url": "http://127.0.0.1:9/mcp/run", "token_env": "PADDOCK_RUN_TOKEN"}
    wiki = {"name": "wiki", "url": "http://127.0.0.1:9/mcp"}
    desk.resources, desk.secrets = {"mcp": [own, wiki]}, {"mcp_token": "t0ken"}
    await desk.run("hello", allow=["mcp__wiki__look_up"])
    argv = desk.starts[0]["argv"]
    assert argv[argv.index("--allowedTools") + 1] == "mcp__host,mcp__wiki__look_up"


async def test_without_a_login_it_is_said_what_to_set(desk: Desk) -> None:
    end = (await desk.run("login")).terminal
    assert isinstance(end, RunFailed)
    assert end.data.code == "harness.unauthorized"
    assert "Not logged in" in end.data.message
    assert "config.api_key" in end.data.message
