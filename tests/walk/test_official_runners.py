"""The official runners through the whole host: HTTP in, their own process, the host's models and tools, the stream."""

import json
import threading
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer

from loopback import QuietHandler
from walk.hosts import HostProcess, text_of

AGENTS = """
default_agent: local
agents:
  local: {runner: "plugin:paddock/local-agent/default", config: {model: demo}}
  two: {runner: "plugin:paddock/router-worker/default", config: {model: demo}}
  away: {runner: "plugin:paddock/http/default", config: {url: "http://127.0.0.1:9/"}}
"""


def said(host: HostProcess, text: str, thread: str, agent: str) -> tuple[str, list[str]]:
    events = host.events(host.post(text, thread=thread, agent=agent).json()["taskId"])
    return text_of(events), [event.type for event in events]


def test_the_local_agent_calls_tools_and_remembers_across_a_crash(new_host: Callable[..., HostProcess]) -> None:
    thread = str(uuid.uuid4())
    host = new_host(agents=AGENTS).start()
    said(host, "my name is Ann", thread, "local")
    text, types = said(host, 'call calculate {"expression": "2 + 3"}', thread, "local")
    assert "5" in text
    assert [one for one in types if one in {"TOOL_CALL_START", "TOOL_CALL_RESULT"}] == ["TOOL_CALL_START", "TOOL_CALL_RESULT"]  # fmt: skip  # noqa: E501
    said(host, 'remember "tea" "oolong"', thread, "local")
    host.kill()
    host.start()
    assert said(host, "what is my name?", thread, "local")[0] == "Your name is Ann."
    assert said(host, "what is my tea?", str(uuid.uuid4()), "local")[0] == "Your tea is oolong."


def test_the_stages_of_the_router_and_worker_are_steps_of_the_stream(new_host: Callable[..., HostProcess]) -> None:
    host = new_host(agents=AGENTS).start()
    text, types = said(host, "hello", str(uuid.uuid4()), "two")
    assert text.startswith("Hello. I am the demo model")
    assert [one for one in types if one.startswith("STEP")] == ["STEP_STARTED", "STEP_FINISHED"] * 2
    assert types[-1] == "RUN_FINISHED"


class Elsewhere(QuietHandler):
    """An agent that somebody runs already: it is told the event and the tail of the conversation, and answers JSON."""

    def do_POST(self) -> None:
        told = json.loads(self.rfile.read(int(self.headers["content-length"])))
        earlier = " / ".join(item["content"] for item in told["history"])
        body = json.dumps({"text": f"heard {told['input']['text']} after: {earlier}"}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def elsewhere() -> Generator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


def test_an_agent_behind_a_url_answers_and_one_that_is_not_there_fails_with_the_reason(
    new_host: Callable[..., HostProcess],
) -> None:
    with elsewhere() as url:
        there = f'  there: {{runner: "plugin:paddock/http/default", config: {{url: "{url}"}}}}\n'
        host = new_host(agents=f"{AGENTS}{there}").start()
        thread = str(uuid.uuid4())
        assert said(host, "hello", thread, "there")[0].startswith("heard hello after:")
        text, types = said(host, "again", thread, "there")
        assert "heard again after: hello / heard hello" in text
        assert types[-1] == "RUN_FINISHED"
        task = host.post("hello", agent="away").json()["taskId"]
        assert host.events(task)[-1].type == "RUN_ERROR"
        assert host.finished(task)["code"] == "http.unreachable"
