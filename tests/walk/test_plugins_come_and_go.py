"""Plugins of a running host: installed, replaced and removed without a restart, and no run is hurt by it."""

import os
import sqlite3
import subprocess
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import psutil
import pytest

import warm
from paddock.compose.parts import mark_of
from walk.conftest import alone
from walk.hosts import HostProcess, text_of, wait_until

RUNNER = """\
import asyncio
from pathlib import Path
from paddock_sdk import AgentRunner, completed, delta, serve

class Versioned(AgentRunner):
    async def run(self, ctx, api):
        yield delta("{version} begins")
        gate = Path(ctx.input.text)
        while gate.is_absolute() and not gate.exists():
            await asyncio.sleep(0.01)
        yield delta(", {version} ends")
        yield completed()

serve(Versioned())
"""
PLUGIN = '[plugin]\nauthor = "me"\nname = "versioned"\nversion = "{version}"\ncommand = ["python", "runner.py"]\n'
PATIENT = 30.0


@pytest.fixture
def host(new_host: Callable[..., HostProcess]) -> HostProcess:
    return new_host().start()


def a_plugin(place: Path, version: str) -> Path:
    place.mkdir()
    (place / "runner.py").write_text(RUNNER.format(version=version))
    (place / "paddock-plugin.toml").write_text(PLUGIN.format(version=version))
    return place


def paddock(
    host: HostProcess, *arguments: object, env: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PADDOCK_")}
    return warm.run([*arguments, "--data", host.data], env={**clean, **(env or {})})


def names(host: HostProcess) -> list[str]:
    with host.client() as client:
        return [agent["agentId"] for agent in client.get("/api/v1/agents").json()["agents"]]


def said(host: HostProcess, text: str) -> str:
    return text_of(host.events(host.post(text, agent="versioned").json()["taskId"]))


def reloads(host: HostProcess) -> list[str]:
    """What the audit has of them, in order."""
    sql = "select resource || ': ' || reason from audit where action = 'plugins.reload' order by audit_no"
    with closing(sqlite3.connect(f"file:{host.data}/paddock.db?mode=ro", uri=True)) as database:
        return [reason for (reason,) in database.execute(sql)]


def processes(host: HostProcess) -> int:
    """Runner processes of this host that work from the installed plugin."""
    mark = f"PADDOCK_MARK={mark_of(host.data)}".encode()
    return sum(mark in environ(one.pid) and "runner.py" in " ".join(command(one)) for one in psutil.process_iter())


def environ(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@alone  # on two hosts: tests/cluster/test_plugins_everywhere.py
def test_a_plugin_is_installed_replaced_and_removed_while_the_host_runs(host: HostProcess, tmp_path: Path) -> None:
    installed = paddock(host, "runner", "install", a_plugin(tmp_path / "one", "1.0"), "--yes")
    assert "takes it up within seconds" in installed.stdout, installed.stderr
    wait_until(lambda: "versioned" in names(host), PATIENT, "the plugin being there")
    chat = paddock(host, "chat", "--agent", "versioned", "hi")
    assert chat.stdout == "1.0 begins, 1.0 ends\n", chat.stderr

    gate = tmp_path / "gate"
    under_way = host.post(str(gate), agent="versioned").json()["taskId"]
    host.events(under_way, stop_when=lambda event: event.type == "TEXT_MESSAGE_CONTENT")
    assert paddock(host, "runner", "install", a_plugin(tmp_path / "two", "2.0"), "--yes", "--replace").returncode == 0
    wait_until(lambda: said(host, "hi") == "2.0 begins, 2.0 ends", PATIENT, "the new version answering")
    assert host.run(under_way)["status"] == "running"
    assert processes(host) > 0
    gate.touch()
    assert text_of(host.events(under_way)) == "1.0 begins, 1.0 ends"

    removed = paddock(host, "runner", "remove", "me/versioned")
    assert "no new runs from now on" in removed.stdout, removed.stderr
    wait_until(lambda: "versioned" not in names(host), PATIENT, "the plugin being gone")
    wait_until(lambda: processes(host) == 0, PATIENT, "its processes being gone")
    refused = paddock(host, "chat", "--agent", "versioned", "hi")
    assert refused.returncode != 0
    assert "versioned" in refused.stderr
    expected = ["installed 1.0", "replaced 1.0 by 2.0", "removed 2.0"]
    wait_until(lambda: reloads(host) == [f"me/versioned: {one}" for one in expected], PATIENT, "its rows")
