"""A workspace's administrator, with nothing but a key, tries to make the host run a program, open a path, call an inner
address, and hand over secrets and files of others. All against a real host over real HTTP."""

import asyncio
import json
import uuid
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest

from paddock.host.agents.stored import ELSEWHERE
from paddock.rules.rows.rows import AgentRow
from paddock.storage.chosen import store_at
from safety.tenants import DOT, ENDED, got, key_of
from walk.hosts import HostProcess, wait_until

HTTP, ACP = "plugin:paddock/http/default", "plugin:paddock/acp/default"
CLAUDE, CODEX = "plugin:paddock/claude-code/default", "plugin:paddock/codex/default"
FILE = "in the agents file"
AGENTS = """\
default_agent: echo
agents:
  echo: {{runner: "plugin:paddock/echo/default"}}
  promised: {{runner: "plugin:mallory/named-in-the-file/default"}}
  inside: {{runner: "plugin:paddock/http/default", config: {{url: "{inner}"}}}}
"""
CONFIG = """\
[api_agents]
urls = ["http://*:*"]
"""


@dataclass
class Inner:
    """A service inside the network of the host, that nobody but the host should reach."""

    url: str
    heard: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def inner() -> Iterator[Inner]:
    heard = list[str]()

    class Service(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(self.path)
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps({"text": "inner secret"}).encode())

        do_GET = do_CONNECT = do_POST  # noqa: N815 - the library calls them so

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield Inner(f"http://127.0.0.1:{server.server_port}", heard)
        server.shutdown()


@dataclass
class Attacker:
    host: HostProcess
    client: httpx.Client

    def put(self, name: str, **agent: Any) -> httpx.Response:
        return self.client.put(f"/api/v1/agents/{name}", json=agent)

    def refused(self, name: str, **agent: Any) -> str:
        answer = self.put(name, **agent)
        assert answer.status_code == 422, answer.text
        assert self.client.get(f"/api/v1/agents/{name}").status_code == 404
        return answer.json()["detail"]

    def run(self, agent: str) -> dict[str, Any]:
        """Ask an agent and wait for what becomes of it."""
        body = {
            "threadId": str(uuid.uuid4()),
            "runId": uuid.uuid4().hex,
            "messages": [{"id": "m1", "role": "user", "content": "hello"}],
            "forwardedProps": {"runtime_mode": "chat"},
        }
        run = got(self.client.post("/api/v1/agent/runs", params={"agent": agent}, json=body))["taskId"]

        def ended() -> bool:
            return got(self.client.get(f"/api/v1/agent/runs/{run}"))["status"] in ENDED

        wait_until(ended, 60, "the run's end")
        return got(self.client.get(f"/api/v1/agent/runs/{run}"))

    def uploaded(self) -> str:
        inline = {"file": ("dot.png", b64decode(DOT), "image/png")}
        return got(self.client.post("/api/v1/agent/attachments", files=inline))["attachmentId"]


def an_attacker(host: HostProcess) -> Attacker:
    key = key_of(host, "acme")
    return Attacker(host, host.client(headers={"Authorization": f"Bearer {key}"}))


@pytest.fixture(scope="module")
def mallory(tmp_path_factory: pytest.TempPathFactory, inner: Inner) -> Iterator[Attacker]:
    """An administrator of a workspace, on a host that opened nothing."""
    place = tmp_path_factory.mktemp("closed")
    host = HostProcess(place / "data", agents=AGENTS.format(inner=inner.url)).start()
    yield an_attacker(host)
    host.stop()


@pytest.fixture(scope="module")
def outsider(tmp_path_factory: pytest.TempPathFactory, inner: Inner) -> Iterator[Attacker]:
    """The same where whoever runs the host opened every address there is, and a proxy is in the environment."""
    place = tmp_path_factory.mktemp("opened")
    (place / "paddock.toml").write_text(CONFIG)
    proxies = dict.fromkeys(("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"), inner.url)
    env = {"PADDOCK_CONFIG": str(place / "paddock.toml"), "PADDOCK_ENV_ALLOW": ",".join(proxies), **proxies}
    host = HostProcess(place / "data", agents=AGENTS.format(inner=inner.url), env=env).start()
    yield an_attacker(host)
    host.stop()


@pytest.mark.parametrize(
    ("runner", "config"),
    [
        (ACP, {"preset": "custom", "command": ["sh", "-c", "touch {made}"]}),
        (ACP, {"preset": "custom"}),
        (ACP, {"preset": "claude-code", "on_permission": "allow"}),
        (ACP, {}),
        (CLAUDE, {"command": "/bin/sh"}),
        (CLAUDE, {"args": ["--mcp-config", "{made}"]}),
        (CLAUDE, {"home": "/root"}),
        (CLAUDE, {"env": ["PATH"]}),
        (CLAUDE, {"base_url": "http://127.0.0.1:1", "api_key": "k"}),
        (CLAUDE, {"permission_mode": "default", "on_permission": "allow", "allow": ["Bash"], "api_key": "k"}),
        (CODEX, {"command": "sh", "args": ["-c", "touch {made}"]}),
        (CODEX, {"sandbox": "danger-full-access", "api_key": "k"}),
    ],
)
def test_no_program_is_named_over_the_api(
    mallory: Attacker, tmp_path: Path, runner: str, config: dict[str, Any]
) -> None:
    made = tmp_path / "made"
    told = json.loads(json.dumps(config).replace("{made}", str(made)))
    assert FILE in mallory.refused("shell", runner=runner, config=told)
    assert not made.exists()


@pytest.mark.parametrize(
    "url", ["{inner}", "http://localhost:1/", "https://example.com/", "http://169.254.169.254/latest", "http://[::1]/"]
)
def test_no_address_is_named_over_the_api(mallory: Attacker, inner: Inner, url: str) -> None:
    told = url.format(inner=inner.url)
    assert FILE in mallory.refused("spy", runner=HTTP, config={"url": told})
    assert FILE in mallory.refused(
        "spy", runner="plugin:paddock/echo/default", mcp=[{"name": "tools", "url": told, "headers": {"a": "b"}}]
    )
    assert FILE in mallory.refused("spy", runner="plugin:paddock/echo/default", config={"anything": {"deep": [told]}})


@pytest.mark.parametrize(
    "said",
    [
        {"working_directory": "/"},
        {"readable": ["/etc"]},
        {"skills": [{"name": "s", "path": "/etc"}]},
        {"history_scope": "workspace"},
        {"config": {"key": "secret:file:/etc/passwd"}},
    ],
)
def test_no_path_and_nobody_elses_words_are_named_over_the_api(mallory: Attacker, said: dict[str, Any]) -> None:
    assert "agents file only" in mallory.refused("reader", runner="plugin:paddock/echo/default", **said)


def test_what_was_refused_when_an_agent_is_made_is_refused_when_it_is_changed(mallory: Attacker) -> None:
    assert mallory.put("plain", runner="plugin:paddock/echo/default").status_code == 201
    for changed in (
        {"runner": ACP, "config": {"preset": "custom", "command": ["sh"]}},
        {"runner": HTTP, "config": {"url": "http://127.0.0.1:1"}},
        {"runner": "plugin:paddock/echo/default", "config": {"command": "sh"}},
    ):
        assert mallory.put("plain", **changed).status_code == 422
    assert got(mallory.client.get("/api/v1/agents/plain"))["runnerId"] == "plugin:paddock/echo/default"


def test_an_agent_of_the_file_may_call_an_inner_address(mallory: Attacker, inner: Inner) -> None:
    before = len(inner.heard)
    assert mallory.run("inside")["status"] == "completed"
    assert len(inner.heard) == before + 1


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "10.0.0.1", "0.0.0.0", "169.254.169.254"])
def test_an_inner_address_is_refused_where_addresses_are_open(outsider: Attacker, host: str) -> None:
    assert FILE in outsider.refused("spy", runner=HTTP, config={"url": f"http://{host}:8080/"})


@pytest.mark.parametrize(
    "host", ["localhost", "127.1", "0x7f000001", "2130706433", "localhost.", "no-such-name.invalid"]
)
def test_a_name_that_leads_inside_is_refused_when_it_is_called_and_no_proxy_helps(
    outsider: Attacker, inner: Inner, host: str
) -> None:
    port = inner.url.rpartition(":")[2]
    before = list(inner.heard)
    made = outsider.put("spy", runner=HTTP, config={"url": f"http://{host}:{port}/"})
    if made.is_success:
        run = outsider.run("spy")
        assert (run["status"], run["code"]) == ("failed", "http.address_refused"), run
        assert "does not lead to a public address" in run["message"]
    else:
        assert FILE in made.json()["detail"]
    assert inner.heard == before
    outsider.client.delete("/api/v1/agents/spy")


def test_agents_that_an_older_host_let_in_are_not_run_and_everybody_who_looks_sees_why(tmp_path: Path) -> None:
    made = tmp_path / "made"
    old = {
        "shell": {"runner": ACP, "config": {"preset": "custom", "command": ["sh", "-c", f"touch {made}"]}},
        "spy": {"runner": HTTP, "config": {"url": "http://127.0.0.1:1/", "authorization": "hush"}},
        "reader": {"runner": "plugin:paddock/echo/default", "history_scope": "workspace"},
    }
    data = tmp_path / "data"
    HostProcess(data).start().stop()
    asyncio.run(_write(data, old))
    host = HostProcess(data).start()
    try:
        mallory = an_attacker(host)
        listed = {one["agentId"]: one for one in got(mallory.client.get("/api/v1/agents"))["agents"]}
        for name in old:
            run = mallory.run(name)
            assert (run["status"], run["code"]) == ("failed", "agent.config_invalid")
            assert FILE in run["message"]
            assert listed[name]["health"] == "problem"
            assert FILE in listed[name]["problem"]
        assert not made.exists()
        seen = got(mallory.client.get("/api/v1/agents/spy"))["definition"]
        assert mallory.put("spy", **seen | {"label": "Spy"}).status_code == 422
    finally:
        host.stop()


async def _write(data: Path, agents: dict[str, Any]) -> None:
    store = store_at("embedded", data, serving=True, url="")
    await store.open()
    try:
        await store.write(
            [AgentRow("acme", name, json.dumps(body).encode(), 1.0, "ann") for name, body in agents.items()]
        )
    finally:
        await store.close()


def test_a_secret_does_not_follow_its_agent_to_another_address(outsider: Attacker) -> None:
    config = {"url": "http://one.example/x", "authorization": "hush"}
    assert outsider.put("keyed", runner=HTTP, config=config).status_code == 201
    seen = got(outsider.client.get("/api/v1/agents/keyed"))["definition"]
    assert seen["config"] == {"url": "http://one.example/x", "authorization": "***"}
    assert outsider.put("keyed", **seen | {"label": "Keyed"}).status_code == 200
    for changed in (
        {"config": {**seen["config"], "url": "http://two.example/x"}},
        {"config": {"authorization": "***"}},
        {"runner": "plugin:paddock/echo/default"},
    ):
        refused = outsider.put("keyed", **seen | changed)
        assert (refused.status_code, refused.json()["detail"]) == (
            422,
            f"config.authorization is masked, and {ELSEWHERE}",
        )
    moved = {"url": "http://two.example/x", "authorization": "another"}
    assert outsider.put("keyed", runner=HTTP, config=moved).status_code == 200


def test_headers_of_an_mcp_server_do_not_follow_it_to_another_address(outsider: Attacker) -> None:
    server = {"name": "tools", "url": "http://one.example/mcp", "headers": {"Authorization": "hush"}}
    echo = "plugin:paddock/echo/default"
    assert outsider.put("tooled", runner=echo, mcp=[server]).status_code == 201
    shown = got(outsider.client.get("/api/v1/agents/tooled"))["definition"]["mcp"][0]
    assert shown["headers"] == {"Authorization": "***"}
    assert outsider.put("tooled", runner=echo, mcp=[shown]).status_code == 200
    moved = outsider.put("tooled", runner=echo, mcp=[shown | {"url": "http://two.example/mcp"}])
    assert (moved.status_code, "mcp.0.headers.Authorization is masked" in moved.json()["detail"]) == (422, True)


@pytest.mark.spec("http/agent-files")
def test_an_administrator_gives_an_agent_no_file_of_somebody_else(mallory: Attacker) -> None:
    key = got(mallory.client.post("/api/v1/api-keys", json={"user": "bob"}))["key"]
    bob = Attacker(mallory.host, mallory.host.client(headers={"Authorization": f"Bearer {key}"}))
    bobs, own = bob.uploaded(), mallory.uploaded()
    echo = "plugin:paddock/echo/default"
    for foreign in (bobs, uuid.uuid4().hex):
        said = mallory.refused("reader", runner=echo, files=[foreign])
        assert said == f"files: there is no artifact {foreign!r} of yours; upload it first"
    assert mallory.put("reader", runner=echo, files=[own]).status_code == 201


@pytest.mark.spec("http/attach-claimed")
def test_an_administrator_attaches_no_runner_in_the_place_of_one_that_others_rely_on(mallory: Attacker) -> None:
    """Its runs would bring the settings and secrets of the agents file to a program of theirs."""
    token = "/api/v1/runners/attach-tokens"
    for plugin in ("http", "echo", "acp", "local-agent"):
        answer = mallory.client.post(token, json={"author": "paddock", "name": plugin})
        assert (answer.status_code, "only whoever runs the host" in answer.json()["detail"]) == (403, True)
    answer = mallory.client.post(token, json={"author": "mallory", "name": "named-in-the-file"})
    assert answer.status_code == 403
    assert mallory.client.post(token, json={"author": "mallory", "name": "own"}).status_code == 201
