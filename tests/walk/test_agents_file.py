"""The agents file of a running host: changes are taken up, and mistakes are said and change nothing."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import warm
from walk.hosts import HostProcess, text_of, wait_until

ECHO = "plugin:paddock/echo/default"
ONE = f"agents:\n  one: {{runner: '{ECHO}'}}\n"
TWO = f"{ONE}  two: {{runner: '{ECHO}', label: Zwei}}\n"


@pytest.fixture
def host(new_host: Callable[..., HostProcess]) -> HostProcess:
    return new_host(agents=ONE).start()


def listed(host: HostProcess) -> dict[str, Any]:
    with host.client() as client:
        return client.get("/api/v1/agents").json()


def ready(host: HostProcess) -> tuple[int, str]:
    with host.client() as client:
        answer = client.get("/readyz")
        return answer.status_code, answer.json()["reason"]


def names(host: HostProcess) -> list[str]:
    return [agent["agentId"] for agent in listed(host)["agents"]]


def write(host: HostProcess, text: str) -> None:
    """As editors save: a new file in the place of the old one."""
    fresh = host.agents_file.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(host.agents_file)


def test_a_change_is_in_force_without_a_restart_and_a_mistake_changes_nothing(host: HostProcess) -> None:
    assert names(host) == ["one"]
    write(host, TWO)
    wait_until(lambda: names(host) == ["one", "two"], what="the new agent")
    accepted = host.post("hello", agent="two").json()
    assert text_of(host.events(accepted["taskId"])) == "hello"
    wait_until(lambda: names(host) == ["one", "two"], what="the new agent wherever it is asked for")

    write(host, "agents:\n  one: {runner: nonsense}\n")
    wait_until(lambda: "problem" in listed(host), what="the mistake being said")
    assert "line 2: agents.one.runner is wrong" in listed(host)["problem"]
    assert names(host) == ["one", "two"]
    assert ready(host)[0] == 200
    assert "the agents file cannot be used" in ready(host)[1]
    assert host.says("the agents stay as they were")

    write(host, f"agents:\n  three: {{runner: '{ECHO}'}}\n  lost: {{runner: 'plugin:no/such/default'}}\n")
    wait_until(lambda: names(host) == ["three", "lost"], what="the third file")
    assert host.post("hello", agent="two").status_code == 404
    wait_until(lambda: "1 of the agents cannot answer" in ready(host)[1], what="the missing runner being said")
    assert ready(host)[0] == 200
    [_, lost] = listed(host)["agents"]
    assert (lost["health"], lost["problem"]) == ("problem", "there is no runner 'plugin:no/such/default'")


def test_the_command_line_lists_and_checks_agents(host: HostProcess, tmp_path: Path) -> None:
    def paddock(*command: str) -> subprocess.CompletedProcess[str]:
        env = {key: value for key, value in os.environ.items() if not key.startswith("PADDOCK_")}
        return warm.run(command, env=env)

    seen = paddock("agents", "list", "--data", str(host.data))
    assert (seen.returncode, seen.stdout) == (0, f"* one  ok       L0         file      {ECHO}\n")
    file = tmp_path / "other.yaml"
    file.write_text(f"{TWO}  lost: {{runner: 'plugin:no/such/default'}}\n")
    seen = paddock("agents", "check", str(file), "--data", str(tmp_path / "empty"))
    assert seen.returncode == 1
    assert "lost: the plugin no/such is not installed; paddock runner install puts it in." in seen.stdout
    assert f"{file}: 3 agents, default one." in seen.stdout
    assert "config" not in seen.stdout
    file.write_text(f"agents: {{a: {{runner: '{ECHO}', config: {{bdoy: x}}}}, b: {{runner: '{ECHO}'}}}}")
    seen = paddock("agents", "check", str(file))
    assert seen.returncode == 0
    assert "The config of a was not checked" in seen.stdout
    file.write_text("agents: {a: {runner: x}}")
    seen = paddock("agents", "check", str(file))
    assert (seen.returncode, "line 1: agents.a.runner is wrong" in seen.stderr) == (1, True)
    file.write_text(f"agents: {{a: {{runner: '{ECHO}', toolz: []}}}}")
    assert paddock("agents", "check", str(file)).stderr.endswith("is no key here; did you mean tools?\n")
