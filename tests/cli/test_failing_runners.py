"""A runner that cannot be started any more: the host works on, and says so where somebody looks."""

from pathlib import Path

import pytest

from walk.hosts import HostProcess, text_of
from warm import Command

PLUGIN = """[plugin]
author = "test"
name = "fragile"
version = "1"
command = ["python", "runner.py"]
"""
RUNNER = """
import os
import sys
from pathlib import Path
from paddock_sdk import AgentRunner, message, serve

if Path(__file__).with_name("broken").exists():
    sys.exit("its library is gone")


class Fragile(AgentRunner):
    async def run(self, ctx, api):
        if ctx.text == "die":
            os._exit(7)
        yield message(ctx.text)


serve(Fragile())
"""
AGENTS = (
    "agents:\n  echo: {runner: 'plugin:paddock/echo/default'}\n  fragile: {runner: 'plugin:test/fragile/default'}\n"
)


@pytest.mark.spec("http/probes", "http/agents", "http/runners")
def test_a_runner_that_does_not_start_any_more_is_told_of_and_the_host_stays_in_service(
    paddock: Command, tmp_path: Path
) -> None:
    plugin = tmp_path / "plugins" / "fragile"
    plugin.mkdir(parents=True)
    (plugin / "paddock-plugin.toml").write_text(PLUGIN)
    (plugin / "runner.py").write_text(RUNNER)
    host = HostProcess(tmp_path / "data", agents=AGENTS, plugins=(plugin.parent,)).start()
    try:
        while_it_works(host)
        (plugin / "broken").touch()
        while_it_does_not(host)
        seen = paddock("doctor", "--data", host.data)
        assert seen.returncode == 1
        assert "FAIL  agents         fragile: " in seen.stdout
        assert "FAIL  runners        test/fragile: " in seen.stdout
        assert "last it said: its library is gone" in seen.stdout
        (plugin / "broken").unlink()
        assert said(host, "again") == "again"
        assert health(host) == {"echo": ("ok", None), "fragile": ("ok", None)}
        assert "ok    runners " in paddock("doctor", "--data", host.data).stdout
    finally:
        host.stop()


def while_it_works(host: HostProcess) -> None:
    assert said(host, "hello") == "hello"
    assert health(host) == {"echo": ("ok", None), "fragile": ("ok", None)}
    [*_, end] = host.events(host.post("die", agent="fragile").json()["taskId"])
    assert end.data["code"] == "runner.crashed"


def while_it_does_not(host: HostProcess) -> None:
    [*_, end] = host.events(host.post("hello", agent="fragile").json()["taskId"])
    assert end.data["code"] == "runner.start_failed"
    state, problem = health(host)["fragile"]
    assert state == "problem"
    assert "test/fragile did not start" in str(problem) or "its library is gone" in str(problem)
    assert health(host)["echo"] == ("ok", None)
    with host.client() as client:
        ready = client.get("/readyz")
    assert (ready.status_code, ready.json()["status"]) == (200, "ready")
    assert "1 of the agents cannot answer" in ready.json()["reason"]
    assert "1 of the runners keep failing" in ready.json()["reason"]
    assert "fragile" not in ready.text


def said(host: HostProcess, text: str) -> str:
    return text_of(host.events(host.post(text, agent="fragile").json()["taskId"]))


def health(host: HostProcess) -> dict[str, tuple[str, str | None]]:
    with host.client() as client:
        agents = client.get("/api/v1/agents").json()["agents"]
    return {agent["agentId"]: (agent["health"], agent.get("problem")) for agent in agents}


OFFERS = """
import sys
from pathlib import Path
from paddock_sdk import AgentRunner, message, serve

SAID = Path(__file__).with_name("label").read_text()
if not SAID:
    sys.exit("it has no label")


class Named(AgentRunner):
    label = {"en": SAID}

    async def run(self, ctx, api):
        yield message(SAID)


serve(Named())
"""


@pytest.mark.spec("wire/manifests-again", "http/runners-refresh")
def test_manifests_are_read_again_when_somebody_asks(paddock: Command, tmp_path: Path) -> None:
    plugin = tmp_path / "plugins" / "fragile"
    plugin.mkdir(parents=True)
    (plugin / "paddock-plugin.toml").write_text(PLUGIN)
    (plugin / "runner.py").write_text(OFFERS)
    (plugin / "label").write_text("before")
    host = HostProcess(tmp_path / "data", agents=AGENTS, plugins=(plugin.parent,)).start()
    try:
        assert (said(host, "x"), label(host)) == ("before", "before")
        (plugin / "label").write_text("after")
        assert (said(host, "x"), label(host)) == ("before", "before")
        seen = paddock("runner", "refresh", "test/fragile", "--data", host.data)
        assert (seen.returncode, seen.stdout) == (0, "plugin:test/fragile/default\n"), seen.stderr
        assert (said(host, "x"), label(host)) == ("after", "after")
        (plugin / "label").write_text("")
        seen = paddock("runner", "refresh", "test/fragile", "--data", host.data)
        assert (seen.returncode, seen.stdout) == (1, "")
        assert "it has no label" in seen.stderr
        assert "there is no plugin" in paddock("runner", "refresh", "test/none", "--data", host.data).stderr
        assert "author/name" in paddock("runner", "refresh", "fragile", "--data", host.data).stderr
        made = paddock("keys", "create", "--user", "ann", "--role", "admin", "--data", host.data).stdout
        key = next(word for word in made.split() if word.startswith("pdk_"))
        with host.client(headers={"Authorization": f"Bearer {key}"}) as client:
            assert client.post("/api/v1/runners/test/fragile/refresh").status_code == 403
    finally:
        host.stop()


def label(host: HostProcess) -> str:
    with host.client() as client:
        agents = client.get("/api/v1/agents").json()["agents"]
    return next(agent["runnerLabel"]["en"] for agent in agents if agent["agentId"] == "fragile")
