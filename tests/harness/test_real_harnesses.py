"""The real harnesses, through the whole host, against a scripted model: no network. Those that speak ACP are long,
Kimi Code in CI only where its Node is too old for it.
"""

import json
import os
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from harness.clis import REAL, Real, node_is_new, runs, token_of
from harness.stages import Stage, a_further_server, a_house, results
from images.pictures import picture
from model_server import ModelServer, Says
from patience import at_most
from walk.hosts import HostProcess, text_of, wait_until

pytestmark = pytest.mark.xdist_group("real-harnesses")


LONG = (pytest.mark.long, pytest.mark.timeout(900))
KIMI = pytest.param("kimi-code", marks=LONG[1:] if os.environ.get("CI") and node_is_new() else LONG)
ADAPTERS = (pytest.param(name, marks=LONG) for name in ("claude-acp", "codex-acp"))
NAMES = ("claude-code", "codex", KIMI, *ADAPTERS)


@pytest.fixture(scope="module", params=NAMES)
def house(request: pytest.FixtureRequest) -> Iterator[tuple[Real, HostProcess, ModelServer]]:
    with a_further_server() as moody, a_house(REAL[request.param], mcp=[moody]) as made:
        yield made


@pytest.fixture
def stage(house: tuple[Real, HostProcess, ModelServer]) -> Stage:
    real, host, model = house
    return Stage(real, host, model.afresh(), str(uuid.uuid4()))


def test_it_answers_in_pieces_with_the_hosts_tools_and_goes_on_with_another_token(stage: Stage) -> None:
    call = stage.real.host_tool("calculate", {"expression": "2 + 3"})
    task = stage.start("add two and three", Says("I will ask. ", calls=(call,)), Says("It is five."))
    events = stage.host.events(task)
    assert text_of(events) == "I will ask. It is five."
    assert "5" in results(events)[0]
    assert "5" in stage.asked()
    assert "How we brew oolong here." in stage.asked(), "the granted skill is known to the model"
    assert stage.instructed() == 1, "the agent's instructions are, too, and once"
    assert stage.audited("tools.call") == [task]

    slow = stage.start("tell a long story", Says("once upon a time " * 40, pause=0.05))
    pieces = iter(range(3))
    stage.host.events(slow, stop_when=lambda event: event.type == "TEXT_MESSAGE_CONTENT" and next(pieces) == 2)
    first = token_of(stage.host.data)
    assert stage.reach(first) == 200
    assert stage.cancelled(slow) < at_most(5)
    assert stage.model.left.wait(30), "the model's stream was closed"
    assert stage.reach(first) == 401
    assert holding(stage.host.data, first) == [], "not even the harness has written it down"

    again = stage.start("and two and four?", Says("", calls=(call,)), Says("Six."))
    assert text_of(stage.host.events(again)) == "Six."
    assert "It is five." in stage.asked(), "the session went on"
    assert stage.audited("tools.call") == [task, again]


def holding(folder: Path, secret: str) -> list[Path]:
    """Files with a secret in them."""
    found: list[Path] = []
    for path in folder.rglob("*"):
        with suppress(OSError):  # gone by now, or no file
            if secret.encode() in path.read_bytes():
                found.append(path)
    return found


def test_a_persons_picture_reaches_the_model_and_lies_in_the_working_directory(stage: Stage) -> None:
    drawn = picture(size=(64, 64))
    events = stage.shown("what is this?", drawn, Says("Red and blue."))
    assert text_of(events) == "Red and blue."
    [file] = stage.host.data.rglob("attachments/*/1-tea.png")
    assert f"attachments/{file.parent.name}/1-tea.png (image/png" in stage.asked()
    assert stage.real.picture in stage.asked(), "the model is shown it, not only told where it lies"


def test_a_cancel_in_a_tool_leaves_no_process(stage: Stage) -> None:
    call = stage.real.shell("python3 -c 'import time; time.sleep(97)' & python3 -c 'import time; time.sleep(98)'")
    task = stage.start("wait a while", Says("Waiting. ", calls=(call,)), Says("Done."))
    wait_until(lambda: runs(stage.host.data, "python3"), 60, "the command")
    assert stage.cancelled(task) < at_most(5)


def test_what_is_not_permitted_is_refused_and_said(stage: Stage) -> None:
    call = stage.real.shell("touch forbidden.txt")
    events = stage.said("make a file", Says("", calls=(call,)), Says("I may not."), agent="strict")
    assert "do not allow it" in results(events)[0]
    if stage.real.goes_on_refused:
        assert text_of(events) == "I may not."
    else:
        assert "not allowed to do what it asked for" in str(events[-1].data["message"])
    assert not list(stage.host.data.rglob("forbidden.txt"))


def test_a_picture_of_a_granted_tool_reaches_the_model(stage: Stage) -> None:
    call = stage.real.host_tool("draw", {})
    task = stage.start("draw something", Says("I draw. ", calls=(call,)), Says("Red and blue."))
    assert text_of(stage.host.events(task)) == "I draw. Red and blue."
    assert stage.real.picture in stage.asked()


def test_a_tool_of_another_server_is_asked_for_and_a_yes_is_for_what_was_shown(stage: Stage) -> None:
    twelve, other = (stage.real.server_tool("moody", "add", {"a": 10, "b": number}) for number in (2, 3))
    refused = stage.said("add", Says("", calls=(twelve,)), Says("I may not."), agent="strict")
    assert "do not allow it" in results(refused)[0]

    stage.thread = str(uuid.uuid4())
    stage.model.afresh()
    asked = text_of(stage.said("add", Says("", calls=(twelve,)), agent="asking"))
    assert "I need your approval for:" in asked
    assert '"b":2' in asked
    stage.model.afresh()
    again = text_of(stage.said("yes", Says("", calls=(other,)), agent="asking"))
    assert '"b":3' in again, "another call is another question"
    stage.model.afresh()
    done = stage.said("yes", Says("", calls=(other,)), Says("Thirteen."), agent="asking")
    assert text_of(done) == "Thirteen."
    assert "13" in results(done)[0]


def test_a_tool_that_says_six_hundred_lines_is_heard_to_the_end(stage: Stage) -> None:
    call = stage.real.shell("seq 1 600 | sed 's/.*/line & of a long output, long enough to matter/'")
    events = stage.said("look", Says("", calls=(call,)), Says("Long."))
    assert text_of(events) == "Long."
    assert "line 1 of" in results(events)[0]
    assert "line 600 of" in results(events)[0]


def test_two_conversations_at_once_cannot_see_each_other(stage: Stage) -> None:
    words = {word: Stage(stage.real, stage.host, stage.model, str(uuid.uuid4())) for word in ("papaya", "quince")}
    asked: Counter[str] = Counter()

    def answer(body: object) -> Says:
        heard = [word for word in words if word in json.dumps(body)]
        asked.update(heard)
        if asked[heard[0]] > 1:
            return Says("I heard " + " ".join(heard))
        keeping = {"scope": "conversation", "key": "word", "value": heard[0]}
        return Says("Wait. " * 20, calls=(stage.real.host_tool("state_set", keeping),), pause=0.05)

    stage.model.rule = answer
    tasks = {word: one.start(f"the word is {word}") for word, one in words.items()}
    said = {word: text_of(stage.host.events(task)) for word, task in tasks.items()}
    assert said == {word: "Wait. " * 20 + f"I heard {word}" for word in words}
    assert {word: one.kept("word") for word, one in words.items()} == {word: word for word in words}
    assert set(stage.audited("state.set")) >= set(tasks.values()), "each under its own run"
    directories = {one.kept("external.working_directory") for one in words.values()}
    assert len(directories) == 2
