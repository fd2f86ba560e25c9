"""More of the real harnesses, also of those that speak ACP: what takes too long for every day."""

import uuid
from collections.abc import Iterator

import pytest

from harness.clis import REAL, Real
from harness.stages import Stage, a_house, results
from model_server import ModelServer, Says
from patience import at_most
from walk.hosts import HostProcess, text_of, wait_until

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("real-harnesses"), pytest.mark.timeout(900)]


@pytest.fixture(scope="module", params=["claude-code", "codex", "kimi-code", "claude-acp", "codex-acp"])
def house(request: pytest.FixtureRequest) -> Iterator[tuple[Real, HostProcess, ModelServer]]:
    with a_house(REAL[request.param], while_busy="steer") as made:
        yield made


@pytest.fixture
def stage(house: tuple[Real, HostProcess, ModelServer]) -> Stage:
    real, host, model = house
    return Stage(real, host, model.afresh(), str(uuid.uuid4()))


def test_it_uses_the_hosts_tools_and_goes_on_after_a_cancel(stage: Stage) -> None:
    call = stage.real.host_tool("calculate", {"expression": "2 + 3"})
    task = stage.start("add", Says("I will ask. ", calls=(call,)), Says("Five."), agent="strict")
    events = stage.host.events(task)
    assert text_of(events) == "I will ask. Five."
    assert "5" in results(events)[0]
    assert stage.audited("tools.call")[-1] == task

    slow = stage.start("tell a long story", Says("once upon a time " * 40, pause=0.05), agent="strict")
    stage.host.events(slow, stop_when=lambda event: event.type == "TEXT_MESSAGE_CONTENT")
    assert stage.cancelled(slow) < at_most(5)
    again = stage.said("and?", Says("And they lived."), agent="strict")
    assert text_of(again) == "And they lived."
    assert "Five." in stage.asked(), "the session went on"


def test_a_person_says_yes_and_the_very_call_is_made(stage: Stage) -> None:
    call = stage.real.shell("echo agreed > agreed.txt")
    asked = stage.said("write it down", Says("", calls=(call,)), agent="asking")
    assert "I need your approval for:" in text_of(asked)
    assert "agreed.txt" in text_of(asked)
    assert not list(stage.host.data.rglob("agreed.txt"))
    stage.model.afresh()
    done = stage.said("yes", Says("", calls=(call,)), Says("It is written."), agent="asking")
    assert text_of(done) == "It is written."
    assert [path.read_text() for path in stage.host.data.rglob("agreed.txt")] == ["agreed\n"]


def test_words_in_the_middle_of_a_turn_reach_the_model_in_that_turn(stage: Stage) -> None:
    if stage.real.runner == "acp":
        return  # ACP has no word for it: the input waits for a turn of its own, as the other agents' does by default
    call = stage.real.shell("until [ -e go.txt ]; do sleep 0.1; done")
    task = stage.start("wait for it", Says("Waiting. ", calls=(call,)), Says("I heard you."))
    stage.host.events(task, stop_when=lambda event: event.type == "TOOL_CALL_START")
    more = stage.start("also bring an umbrella")
    wait_until(lambda: stage.host.run(more)["status"] == "completed", 20, "the words being taken in")
    next(stage.host.data.glob(f"workspaces/*/{stage.thread}/*")).joinpath("go.txt").touch()
    assert text_of(stage.host.events(task)).endswith("I heard you.")
    assert any("umbrella" in str(asked[2]) for asked in stage.model.asked)


def test_a_lost_session_is_said_and_begun_anew(stage: Stage) -> None:
    stage.said("hello", Says("Hello."))
    for home in stage.host.data.rglob("home"):
        for file in home.rglob("*"):
            if file.is_file() and file.suffix in {".jsonl", ".json", ".sqlite", ".db"}:
                file.unlink()
    events = stage.said("hello again", Says("Who are you?"))
    assert "no longer knows our earlier session" in text_of(events)
    assert text_of(events).endswith("Who are you?")
