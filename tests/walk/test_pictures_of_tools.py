"""Pictures that tools give back, through the whole host: a real MCP server, a runner's process, each provider's API."""

import json
import sys
import uuid
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from images.pictures import opened, picture
from model_server import ModelServer, Says, model_server
from walk.conftest import alone
from walk.hosts import HostProcess, text_of, wait_until
from walk.two_hosts import TwoHosts

PAINTER = Path(__file__).parents[1] / "tools/servers/painter.py"
APIS = ("openai", "openai_responses", "anthropic")
TINY = "everything__get-tiny-image"
FUNCTIONS = '''
from pathlib import Path

def chart() -> list:
    """Draw a chart."""
    return ["three bars", Path(__file__).with_name("chart.png").read_bytes()]
'''


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


def agents_of(server: ModelServer, **servers: Any) -> str:
    """An agent for each API, and one whose model cannot look at pictures."""
    runner = "plugin:paddock/local-agent/default"
    models = {
        api: {
            "provider": api,
            "base_url": server.url.removesuffix("/v1") if api == "anthropic" else server.url,
            "retries": 0,
            "context_window": 200_000,
        }
        for api in APIS
    }
    named = {**models, "blind": {**models["openai"], "images": False}}
    agents = {
        name: {"runner": runner, "tools": "all", "config": {"model": name, "title": "off", "own_tools": []}}
        for name in named
    }
    about = {"default_agent": "openai", "agents": agents, "models": named, "tools": ["charts.py"]}
    return json.dumps({**about, "mcp_servers": servers})


@pytest.fixture
def painting(new_host: Callable[..., HostProcess], server: ModelServer, tmp_path: Path) -> Callable[..., HostProcess]:
    (tmp_path / "charts.py").write_text(FUNCTIONS)
    (tmp_path / "chart.png").write_bytes(picture())

    def start(**servers: Any) -> HostProcess:
        agents = agents_of(server, **servers)
        host = new_host(agents=agents, env={"PADDOCK_DISCOVER_MODELS": "false"}).start()
        hosts = host.pair if isinstance(host, TwoHosts) else [host]

        def all_up() -> bool:
            up = [line for line in host.output if "an MCP server is up" in line]
            return len(up) >= len(hosts) * len(servers)

        wait_until(all_up, 120, "the MCP servers of every host")
        return host

    return start


def said(host: HostProcess, text: str, agent: str, thread: str | None = None) -> str:
    return text_of(host.events(host.post(text, agent=agent, thread=thread or str(uuid.uuid4())).json()["taskId"]))


def pictures_in(asked: Any) -> list[bytes]:
    """Wherever in a question they are, in order."""
    if isinstance(asked, list):
        return [found for one in asked for found in pictures_in(one)]
    if not isinstance(asked, dict):
        return []
    match asked:
        case {"type": "image_url", "image_url": {"url": url}} | {"type": "input_image", "image_url": url}:
            return [b64decode(url.removeprefix("data:image/png;base64,"))]
        case {"type": "image", "source": {"type": "base64", "data": data}}:
            return [b64decode(data)]
        case _:
            return [found for one in asked.values() for found in pictures_in(one)]


def conversation(body: Any) -> list[Any]:
    return body.get("messages") or body["input"]


def results_in(body: Any) -> str:
    """What the tools said, as the provider gets it."""
    told = [one for one in conversation(body) if one.get("role") == "tool" or "output" in one]
    return json.dumps(told or conversation(body)[-1], ensure_ascii=False)


@pytest.mark.timeout(300)
def test_a_model_of_each_api_looks_at_the_picture_of_the_reference_server(
    painting: Callable[..., HostProcess], server: ModelServer, reference_servers: Path
) -> None:
    host = painting(everything={"command": str(reference_servers / "mcp-server-everything")})
    shown_to_them: list[bytes] = []
    for api in APIS:
        thread = str(uuid.uuid4())
        server.says(Says(calls=((TINY, "{}"),)), Says("I see it."), Says("Still there."))
        assert said(host, "what is in the picture?", api, thread) == "I see it."
        shown = server.last
        [seen] = pictures_in(shown)
        shown_to_them.append(seen)
        assert opened(seen).format == "PNG"
        where = conversation(shown)[-1]
        if api == "openai":
            assert (where["role"], conversation(shown)[-2]["role"]) == ("user", "tool")
        else:
            assert "tool_result" in str(where) or where["type"] == "function_call_output"
        assert "The image above is the MCP logo." in results_in(shown) + json.dumps(where)
        said(host, "and what colour is it?", api, thread)
        before, after = conversation(shown), conversation(server.last)
        assert after[: len(before)] == before  # the beginning of the prompt stays as it was, pictures too
    assert host.stop() == 0
    kept = [path.read_bytes() for path in host.data.rglob("*.db*") if path.is_file()]
    assert not any(b64encode(seen)[:200] in content for content in kept for seen in shown_to_them)


@alone
@pytest.mark.timeout(300)
def test_what_cannot_be_shown_is_told_in_words_and_the_run_goes_on(
    painting: Callable[..., HostProcess], server: ModelServer
) -> None:
    host = painting(painter={"command": sys.executable, "args": [str(PAINTER)]})

    def asked_after(tool: str, arguments: str = "{}", agent: str = "openai") -> Any:
        server.says(Says(calls=((tool, arguments),)), Says("Well."))
        assert said(host, "go on", agent) == "Well."
        return server.last

    blind = asked_after("painter__paint", '{"width": 8}', "blind")
    assert pictures_in(blind) == []
    assert "cannot be shown: this model cannot look at pictures" in results_in(blind)

    large = asked_after("painter__paint", '{"width": 1000, "noisy": true}')
    assert pictures_in(large) == []
    assert "it is too large: together at most 2097152 bytes are shown" in results_in(large)

    middling = asked_after("painter__paint", '{"width": 500, "noisy": true}')
    assert [opened(one).size for one in pictures_in(middling)] == [(500, 500)]

    tall = asked_after("painter__paint", '{"width": 8001}')
    assert pictures_in(tall) == []
    assert "8001 x 8001 pixels" in results_in(tall)

    broken = asked_after("painter__break_it")
    assert pictures_in(broken) == []
    assert "image/png, that cannot be read: it is not base64" in results_in(broken)

    lies = asked_after("painter__lie")
    assert "it was said to be image/png and is no picture" in results_in(lies)
    assert "text/html" in results_in(lies)
    assert "it cannot be read as image/png" in results_in(lies)
    assert "data:image/jpeg" in json.dumps(lies)  # by its content, whatever it is said to be

    chart = asked_after("chart")
    assert [opened(one).size for one in pictures_in(chart)] == [(6, 4)]
    assert "three bars" in results_in(chart)


@alone
def test_a_picture_that_a_user_sent_is_there_in_the_next_turn(
    new_host: Callable[..., HostProcess], server: ModelServer
) -> None:
    host = new_host(agents=agents_of(server).replace(', "tools": ["charts.py"]', "")).start()
    thread = str(uuid.uuid4())
    with host.client() as client:
        sent = client.post("/api/v1/agent/attachments", files={"file": ("cat.png", picture(), "image/png")}).json()
        block = {"type": "binary", "mimeType": "image/png", "url": sent["url"]}
        content = [{"type": "text", "text": "what is it?"}, block]
        message = {"id": "m1", "role": "user", "content": content}
        body = {"threadId": thread, "runId": uuid.uuid4().hex, "messages": [message]}
        answer = client.post("/api/v1/agent/runs", json={**body, "forwardedProps": {"runtime_mode": "chat"}})
        assert answer.status_code == 202, answer.text
        task = answer.json()["taskId"]
    host.events(task)
    first = conversation(server.last)
    assert len(pictures_in(first)) == 1
    said(host, "and its colour?", "openai", thread)
    assert conversation(server.last)[: len(first)] == first
