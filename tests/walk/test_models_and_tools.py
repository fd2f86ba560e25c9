"""Models and tools with real parts: the host, a runner process, a model server over HTTP, own functions."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from model_server import Says, model_server
from walk.conftest import alone
from walk.hosts import HostProcess, text_of, wait_until

AGENTS = """
default_agent: demo
agents:
  demo: {runner: "plugin:test/toolsmith/default", tools: all, config: {model: demo}}
  real: {runner: "plugin:test/toolsmith/default", tools: all, config: {model: real}}
"""
TOOLS = '''
import os, time
from pathlib import Path

def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b

def linger(mark: str) -> str:
    """Take long, and leave a mark."""
    with Path(mark).open("a") as file:
        file.write("called ")
    time.sleep(30)
    return "done"
'''
PLUGINS = Path(__file__).parent / "agents"


@pytest.fixture
def toolsmith(new_host: Callable[..., HostProcess], tmp_path: Path) -> Callable[..., HostProcess]:
    (tmp_path / "my_tools.py").write_text(TOOLS)

    def make(**env: str) -> HostProcess:
        places = {"PADDOCK_TOOLS": str(tmp_path / "my_tools.py")}
        return new_host(agents=AGENTS, plugins=(PLUGINS,), env={**places, **env})

    return make


def test_a_first_start_has_a_model_that_calls_an_operators_tool(toolsmith: Callable[..., HostProcess]) -> None:
    host = toolsmith(PADDOCK_DISCOVER_MODELS="false").start()
    task = host.post("add 20 and 22").json()["taskId"]
    assert text_of(host.events(task)) == "add: 42"
    usage = host.run(task)["usage"]
    assert (usage["modelCalls"], usage["totalTokens"] > 0) == (2, True)
    assert host.says("models", "demo")


def test_a_provider_is_spoken_to_with_its_key_and_the_key_is_nowhere_else(
    toolsmith: Callable[..., HostProcess], tmp_path: Path
) -> None:
    with model_server() as server:
        config = tmp_path / "paddock.toml"
        config.write_text(
            f'[models.real]\nprovider = "openai"\nbase_url = "{server.url}"\nkey = "env:REAL_KEY"\nretries = 0\n'
        )
        host = toolsmith(PADDOCK_CONFIG=str(config), REAL_KEY="sk-walk-0123456789").start()
        server.says(Says(calls=(("add", '{"a": 2, "b": 3}'),)), Says("It is five."))
        task = host.post("2 and 3?", agent="real").json()["taskId"]
        assert text_of(host.events(task)) == "It is five."
        assert server.asked[0][1]["authorization"] == "Bearer sk-walk-0123456789"
        assert server.last["messages"][-1] == {"role": "tool", "tool_call_id": "call_0", "content": "5"}
        server.says(Says(status=401, error="wrong key sk-walk-0123456789"))
        failed = host.post("again", agent="real").json()["taskId"]
        assert "refused its key" in str(host.events(failed)[-1].data)
    assert host.stop() == 0
    kept = b"".join(path.read_bytes() for path in host.data.rglob("*") if path.is_file())
    assert b"sk-walk" not in kept
    assert "sk-walk" not in "".join(host.output)


UNNAMED = """
agents:
  plain: {runner: "plugin:paddock/local-agent/default"}
  paid: {runner: "plugin:paddock/local-agent/default", models: [a-dear, b-cheap, c-unpriced]}
"""


@pytest.mark.spec("models/default")
@alone
def test_an_agent_that_names_no_model_gets_the_default_one_and_never_the_dearest(
    new_host: Callable[..., HostProcess], tmp_path: Path
) -> None:
    with model_server() as server:
        config = tmp_path / "paddock.toml"
        models = "".join(
            f'[models.{name}]\nprovider = "openai"\nbase_url = "{server.url}"\nretries = 0\n{prices}\n'
            for name, prices in (
                ("a-dear", "prompt_price = 50\ncompletion_price = 200"),
                ("b-cheap", "prompt_price = 0.1\ncompletion_price = 0.4"),
                ("c-unpriced", ""),
            )
        )
        config.write_text(models)
        env = {"PADDOCK_DISCOVER_MODELS": "false", "PADDOCK_CONFIG": str(config)}

        def asked_by(host: HostProcess, agent: str) -> str:
            server.says(Says("Here I am."))
            task = host.post("hello", agent=agent).json()["taskId"]
            host.events(task)
            with host.client() as client:
                entries = client.get(f"/api/v1/agent/runs/{task}/story").json()["entries"]
            return next(one["name"] for one in entries if one["kind"] == "model")

        host = new_host("first", agents=UNNAMED, env=env).start()
        assert (asked_by(host, "plain"), asked_by(host, "paid")) == ("demo", "b-cheap")
        host.stop()
        named = new_host("named", agents=UNNAMED, env={**env, "PADDOCK_DEFAULT_MODEL": "c-unpriced"}).start()
        assert (asked_by(named, "plain"), asked_by(named, "paid")) == ("c-unpriced", "c-unpriced")


def test_one_agents_file_names_its_models_its_tools_and_its_servers(
    new_host: Callable[..., HostProcess], tmp_path: Path
) -> None:
    (tmp_path / "my_tools.py").write_text(TOOLS)
    (tmp_path / "key").write_text("sk-of-the-file-0123456789")
    moody = Path(__file__).parents[1] / "tools/servers/moody.py"
    with model_server() as server:
        agents = f"""{AGENTS}
models:
  real: {{provider: openai, base_url: "{server.url}", key: "file:key", retries: 0}}
tools: [my_tools.py]
mcp_servers:
  moody: {{command: "{sys.executable}", args: ["{moody}"], tools: [add]}}
"""
        host = new_host(agents=agents, plugins=(PLUGINS,), env={"PADDOCK_DISCOVER_MODELS": "false"}).start()
        assert host.says("models", "real")
        server.says(Says(calls=(("add", '{"a": 2, "b": 3}'),)), Says("It is five."))
        task = host.post("2 and 3?", agent="real").json()["taskId"]
        assert text_of(host.events(task)) == "It is five."
        assert server.asked[0][1]["authorization"] == "Bearer sk-of-the-file-0123456789"

        def answer() -> str:
            return text_of(host.events(host.post('call moody__add {"a": 20, "b": 22}').json()["taskId"]))

        wait_until(lambda: "42" in answer(), 30, "the MCP server's tool answering")


def test_models_tools_and_servers_of_the_file_are_taken_up_while_the_host_runs(
    new_host: Callable[..., HostProcess], tmp_path: Path
) -> None:
    moody = Path(__file__).parents[1] / "tools/servers/moody.py"
    servers = f'mcp_servers: {{moody: {{command: "{sys.executable}", args: ["{moody}"], tools: [add]}}}}\n'
    with model_server() as server:
        server.otherwise = Says("Hi from there")
        host = new_host(agents=AGENTS, plugins=(PLUGINS,), env={"PADDOCK_DISCOVER_MODELS": "false"}).start()
        file = host.agents_file

        def says(text: str, agent: str, part: str) -> None:
            def answer() -> str:
                events = host.events(host.post(text, agent=agent).json()["taskId"])
                return text_of(events) or str(events[-1].data)

            wait_until(lambda: part in answer(), 30, part)

        says("hi", "real", "unauthorized")
        models = f'models: {{real: {{provider: openai, base_url: "{server.url}", retries: 0}}}}\n'
        file.write_text(AGENTS + models)
        says("hi", "real", "Hi from there")
        (tmp_path / "own.py").write_text('def twice(a: int) -> int:\n    """Twice."""\n    return a + a\n')
        file.write_text(AGENTS + models + servers + "tools: [own.py]\n")
        says('call twice {"a": 21}', "demo", "42")
        says('call moody__add {"a": 20, "b": 23}', "demo", "43")
        (tmp_path / "own.py").write_text('def twice(a: int) -> int:\n    """Twice."""\n    return a * 2 + 10_000\n')
        says('call twice {"a": 21}', "demo", "10042")

        (tmp_path / "own.py").write_text("def twice(a: int) -> int\n")
        wait_until(lambda: any("own.py cannot be imported" in line for line in host.output), 30, "the mistake said")
        file.write_text(f"{AGENTS}{models.replace('real', 'other')}tools: [own.py]\n")
        with host.client() as client:
            agents: Callable[[], dict[str, Any]] = lambda: client.get("/api/v1/agents").json()  # noqa: E731
            wait_until(lambda: "SyntaxError" in agents().get("problem", ""), 30, "the mistake being told")
            says("hi", "real", "Hi from there")  # nothing of a file with a mistake is in force
            says('call twice {"a": 21}', "demo", "10042")
            file.write_text(AGENTS)
            wait_until(lambda: "problem" not in agents(), 30, "the mistake being gone")
        says("hi", "real", "unauthorized")


def test_a_tool_call_under_way_when_the_host_dies_is_unknown_and_not_made_again(
    toolsmith: Callable[..., HostProcess], tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    host = toolsmith(PADDOCK_DISCOVER_MODELS="false").start()
    task = host.post(f'call linger {{"mark": "{mark}"}}').json()["taskId"]
    end = time.monotonic() + 30
    while not mark.exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    host.kill()
    host.start()
    run = host.run(task)
    assert (run["status"], run["code"]) == ("failed", "host_restarted")
    assert host.says("calls whose run is over have no outcome")
    with host.client() as client:
        audit = client.get("/api/v1/audit", params={"run": task}).json()["decisions"]
    assert [row["result"] for row in audit if row["action"] == "tools.call"].count("unknown") == 1
    assert mark.read_text() == "called "
