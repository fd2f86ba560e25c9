"""Tools that misbehave, through the whole host: whatever they do, the model reads why and the run goes on."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from model_server import ModelServer, Says, model_server
from walk.conftest import alone
from walk.hosts import HostProcess, alive, text_of, wait_until

MOODY = Path(__file__).parents[1] / "tools/servers/moody.py"
FUNCTIONS = '''
def flood(size: int) -> str:
    """Say much."""
    return "tea " * (size // 4)

def explode() -> str:
    """Fail."""
    raise ValueError("the kettle is empty")
'''


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


def a_host(new_host: Callable[..., HostProcess], server: ModelServer, home: Path) -> HostProcess:
    (home / "own.py").write_text(FUNCTIONS)
    config = {"model": "real", "title": "off", "own_tools": []}
    agents = {
        "agents": {"a": {"runner": "plugin:paddock/local-agent/default", "tools": "all", "config": config}},
        "models": {"real": {"provider": "openai", "base_url": server.url, "retries": 0}},
        "tools": ["own.py"],
        "mcp_servers": {
            "moody": {"command": sys.executable, "args": [str(MOODY)]},
            "hasty": {"command": sys.executable, "args": [str(MOODY)], "tools": ["hang"], "timeout_seconds": 2},
            "none": {"command": "/no/such/program"},
        },
    }
    host = new_host(agents=json.dumps(agents)).start()
    up: Callable[[str], bool] = lambda name: any(  # noqa: E731
        "an MCP server is up" in line and name in line for line in host.output
    )
    wait_until(lambda: up("moody") and up("hasty"), 120, "the MCP servers")
    return host


@alone
@pytest.mark.timeout(300)
def test_whatever_a_tool_does_the_model_is_told_and_answers(
    new_host: Callable[..., HostProcess], server: ModelServer, tmp_path: Path
) -> None:
    host = a_host(new_host, server, tmp_path)

    def told(*calls: tuple[str, str]) -> list[str]:
        """What the model reads after it called."""
        server.says(Says(calls=calls), Says("I see."))
        task = host.post("go on").json()["taskId"]
        assert text_of(host.events(task)) == "I see."
        assert host.finished(task)["status"] == "completed"
        return [one["content"] for one in server.last["messages"] if one["role"] == "tool"]

    [large] = told(("flood", '{"size": 100000}'))
    assert large.startswith("tea tea ")
    assert len(large) < 3000
    assert "(the whole result is in the artifact art_" in large
    [huge] = told(("flood", '{"size": 200000000}'))
    assert "its result has 200000002 bytes, which is more than can be kept; ask it for less" in huge
    raised, wrong, unknown, broken = told(
        ("explode", "{}"), ("flood", '{"size": "much"}'), ("none__x", "{}"), ("flood", '{"size": ')
    )
    assert raised == '{"error":"explode failed: the kettle is empty"}'
    assert "wrong arguments for flood: size: Input should be a valid integer" in wrong
    assert "there is no tool 'none__x'; there are: " in unknown
    assert "the arguments of flood are no JSON object" in broken
    [slow] = told(("hasty__hang", "{}"))
    assert "hasty__hang did not answer within 2 seconds; whether it did its work is not known" in slow
    [refused] = told(("moody__refuse", "{}"))
    assert "not today" in refused
    [died] = told(("moody__die", "{}"))
    assert "the MCP server moody was lost in the call (it ended); whether it did its work is not known" in died
    wait_until(lambda: '{"result":2}' in told(("moody__add", '{"a": 1, "b": 1}')), 60, "the server being there again")


@alone
def test_a_host_that_is_killed_takes_its_mcp_servers_with_it(
    new_host: Callable[..., HostProcess], server: ModelServer, tmp_path: Path
) -> None:
    host = a_host(new_host, server, tmp_path)
    server.says(Says(calls=(("moody__secret", "{}"),)), Says("Well."))
    host.events(host.post("who are you?").json()["taskId"])
    said = next(one["content"] for one in server.last["messages"] if one["role"] == "tool")
    pid = int(json.loads(said)["result"].split()[-1])
    assert alive(pid)
    host.kill()
    wait_until(lambda: not alive(pid), 30, "the end of the MCP server")
