"""claude-agent-acp and codex-acp, as `make harnesses-acp` installs them: what people set and what they are told."""

import json
import uuid
from collections.abc import Iterator

import pytest

from harness.clis import REAL, Real
from harness.stages import INSTRUCTIONS, Stage, a_house, results
from model_server import ModelServer, Says
from patience import at_most
from walk.hosts import HostProcess, text_of

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("real-harnesses"), pytest.mark.timeout(900)]
STORY = "once upon a time " * 40


@pytest.fixture(scope="module", params=["claude-acp", "codex-acp"])
def house(request: pytest.FixtureRequest) -> Iterator[tuple[Real, HostProcess, ModelServer]]:
    with a_house(REAL[request.param]) as made:
        yield made


@pytest.fixture
def stage(house: tuple[Real, HostProcess, ModelServer]) -> Stage:
    real, host, model = house
    return Stage(real, host, model.afresh(), str(uuid.uuid4()))


def test_its_model_is_asked_once_for_an_answer_with_the_instructions_and_the_model_of_the_agent(stage: Stage) -> None:
    for number in range(2):
        events = stage.said("tell me of the sea, please", Says("It is calm.", prompt_tokens=100 + number))
        assert text_of(events) == "It is calm.", "once, and nothing of the adapter's own"
        assert events[-1].data["usage"] == [
            {"inputTokens": 100 + number, "outputTokens": 7, "totalTokens": 107 + number}
        ]
    assert len(stage.model.asked) == 2, "no model names the conversation, or guesses what comes next"
    assert INSTRUCTIONS in stage.asked()
    assert stage.model.last["model"] == stage.real.config["model"]


def test_a_tool_of_the_host_that_changes_something_is_the_hosts_to_decide(stage: Stage) -> None:
    call = stage.real.host_tool("state_set", {"scope": "conversation", "key": "tide", "value": "high"})
    events = stage.said("note the tide", Says("", calls=(call,)), Says("Noted."), agent="strict")
    assert text_of(events) == "Noted."
    assert json.loads(results(events)[0])["ok"] is True
    assert stage.kept("tide") == "high"


def test_the_session_is_kept_while_the_first_words_are_said(stage: Stage) -> None:
    task = stage.start("tell a long story", Says(STORY, pause=0.05))
    stage.host.events(task, stop_when=lambda event: "upon" in str(event.data.get("delta")))
    session, directory = stage.kept("external.session_id"), stage.kept("external.working_directory")
    assert stage.cancelled(task) < at_most(5)
    assert session
    assert str(directory).startswith(str(stage.host.data))
    assert text_of(stage.said("and?", Says("And they lived."))) == "And they lived."
    assert stage.kept("external.session_id") == session
    assert "tell a long story" in stage.asked(), "the session went on"


def test_a_provider_that_fails_or_refuses_the_key_is_no_answer(stage: Stage) -> None:
    stage.model.otherwise = Says(status=401, error="no such key")
    refused = stage.said("hello")[-1]
    stage.model.otherwise = Says(status=500, error="out of order")
    failed = stage.said("hello")[-1]
    assert (refused.type, refused.data["code"]) == ("RUN_ERROR", "harness.unauthorized")
    assert (failed.type, failed.data["code"]) == ("RUN_ERROR", "harness.failed")
    stage.model.afresh()
    assert text_of(stage.said("hello", Says("Well again."))).endswith("Well again.")


def test_ten_cancels_leave_nothing_behind(stage: Stage) -> None:
    for _ in range(10):
        stage.thread = str(uuid.uuid4())
        stage.model.afresh()
        task = stage.start("tell a long story", Says(STORY, pause=0.05))
        stage.host.events(task, stop_when=lambda event: "upon" in str(event.data.get("delta")))
        assert stage.cancelled(task) < at_most(5)
        assert stage.model.left.wait(30), "the model's stream was closed"
