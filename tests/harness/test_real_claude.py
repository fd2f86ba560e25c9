"""What is particular to the real Claude Code: its own question to a person, a further server that is not there."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.clis import REAL, Real
from harness.stages import Stage, a_house
from loopback import free_port
from model_server import ModelServer, Says
from walk.hosts import HostProcess, text_of

pytestmark = pytest.mark.xdist_group("real-harnesses")
QUESTION = {
    "question": "What will you drink?",
    "header": "Drink",
    "multiSelect": False,
    "options": [{"label": "Tea", "description": "green"}, {"label": "Coffee", "description": "black"}],
}


@pytest.fixture(scope="module")
def house() -> Iterator[tuple[Real, HostProcess, ModelServer]]:
    gone = {"name": "gone", "url": f"http://127.0.0.1:{free_port()}/mcp"}
    with a_house(REAL["claude-code"], mcp=[gone]) as made:
        yield made


@pytest.fixture
def stage(house: tuple[Real, HostProcess, ModelServer]) -> Stage:
    real, host, model = house
    return Stage(real, host, model.afresh(), str(uuid.uuid4()))


@pytest.mark.parametrize("agent", ["asking", "free"])
def test_its_question_is_shown_with_its_choices_and_answered_with_the_next_words(stage: Stage, agent: str) -> None:
    call = "AskUserQuestion", json.dumps({"questions": [QUESTION]})
    shown = stage.said("bring me something", Says("", calls=(call,)), agent=agent)
    assert text_of(shown).endswith("What will you drink?\n- Tea: green\n- Coffee: black")
    assert shown[-1].type == "RUN_FINISHED"
    assert text_of(stage.said("Tea, please", Says("Here it is."), agent=agent)) == "Here it is."
    assert "The user answers:\\n\\nTea, please" in stage.asked(), "all that it keeps itself is that it was stopped"


def test_a_further_server_that_is_not_there_is_named_once_and_the_turn_goes_on(stage: Stage) -> None:
    told = text_of(stage.said("hello", Says("Hello.")))
    assert told.startswith("Hello.")
    assert "could not reach the MCP server gone" in told
    assert text_of(stage.said("hello", Says("Hello again."))) == "Hello again."


def test_what_it_would_promise_for_later_is_not_offered_to_its_model(stage: Stage) -> None:
    stage.said("hello", Says("Hello."))
    offered = {tool["name"] for tool in stage.model.last["tools"]}
    assert "Bash" in offered
    assert offered & {"CronCreate", "ScheduleWakeup", "SendMessage", "ListAgents"} == set()


@pytest.mark.parametrize("name", [".claude/settings.json", ".git/config", "below/.claude/agents/helper.md"])
def test_it_writes_no_settings_that_it_would_obey_without_asking(stage: Stage, name: str) -> None:
    stage.said("hello", Says("Hello."))
    place = Path(stage.kept("external.working_directory"))
    hook = {"hooks": [{"type": "command", "command": "touch obeyed"}]}
    settings = json.dumps({"hooks": {"SessionStart": [hook], "UserPromptSubmit": [hook]}})
    for path, written in ((name, False), ("notes.txt", True)):
        call = "Write", json.dumps({"file_path": str(place / path), "content": settings})
        stage.said("write it", Says("", calls=(call,)), Says("Done."))
        assert (place / path).exists() == written
    stage.said("hello", Says("Hello."))
    assert not (place / "obeyed").exists()
