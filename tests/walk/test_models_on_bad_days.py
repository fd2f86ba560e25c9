"""Models on bad days, through the whole host: each run ends in time, with one clear sentence; nothing said is lost."""

import json
import time
import uuid
from collections.abc import Callable, Iterator

import pytest

from loopback import free_port
from model_server import ModelServer, Says, model_server
from patience import at_most
from walk.conftest import alone
from walk.hosts import HostProcess, text_of

DEADLINE = 5
"""Of the run that meets a model which never answers; the others have all the time they need."""


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


def a_host(new_host: Callable[..., HostProcess], server: ModelServer) -> HostProcess:
    def agent(model: str) -> dict[str, object]:
        return {"runner": "plugin:paddock/local-agent/default", "config": {"model": model, "title": "off"}}

    def spec(url: str, **more: object) -> dict[str, object]:
        return {"provider": "openai", "base_url": url, "retries": 0, **more}

    late = {**agent("real"), "deadline_seconds": DEADLINE}
    agents = {
        "default_agent": "real",
        "agents": {"real": agent("real"), "away": agent("away"), "hasty": agent("hasty"), "late": late},
        "models": {
            "real": spec(server.url),
            "away": spec(f"http://127.0.0.1:{free_port()}/v1"),
            "hasty": spec(server.url, timeout_seconds=1),
        },
    }
    return new_host(agents=json.dumps(agents), env={"PADDOCK_DISCOVER_MODELS": "false"}).start()


@alone
@pytest.mark.timeout(300)
def test_each_bad_day_is_one_clear_end_and_the_next_turn_is_answered(
    new_host: Callable[..., HostProcess], server: ModelServer
) -> None:
    host = a_host(new_host, server)
    thread = str(uuid.uuid4())

    def failure(*says: Says, agent: str = "real") -> tuple[str, str]:
        """What was said before it went wrong, and the sentence at the end."""
        server.script.clear()
        server.says(*says)
        task = host.post("hello", agent=agent, thread=thread).json()["taskId"]
        events = host.events(task)
        assert events[-1].type == "RUN_ERROR"
        assert host.finished(task)["status"] == "failed"
        return text_of(events), events[-1].data["message"]

    assert "cannot be reached" in failure(agent="away")[1]
    assert "wants fewer questions" in failure(Says(status=429, error="slow down"))[1]
    assert "failed with status 500" in failure(Says(status=500, error="oops"))[1]
    assert "not its API" in failure(Says(rubbish=b"<html>hello</html>"))[1]
    said, why = failure(Says("one two three four five", cut_after=4))
    assert (said.strip(), "broke off" in why) == ("one two three", True), (said, why)
    assert failure(Says("one two three", fail_after=3, error="overloaded"))[0].strip() == "one two"
    assert "1 second" in failure(Says(silent=True), agent="hasty")[1]
    began = time.monotonic()
    _, late = failure(Says(silent=True), agent="late")
    assert time.monotonic() - began < at_most(DEADLINE + 15)
    assert "deadline" in late or "time" in late, late
    with host.client() as client:
        kept = client.get("/api/v1/agent/history", params={"threadId": thread}).text
    assert "one two three" in kept

    server.script.clear()
    server.says(Says("Here again."))
    assert text_of(host.events(host.post("hello?", thread=thread).json()["taskId"])) == "Here again."
    assert "one two three" in json.dumps(server.last)  # what was said before it broke off is known
