"""Claude Code, Codex and (long) Kimi Code themselves, through the whole host, against a scripted model: no network."""

import json
import threading
import uuid
from collections.abc import Iterator

import pytest

from harness.clis import REAL, Real, processes_of, token_of
from harness.stages import Stage, a_house, results
from images.pictures import picture
from model_server import ModelServer, Says
from patience import at_most
from walk.hosts import HostProcess, text_of, wait_until

pytestmark = pytest.mark.xdist_group("real-harnesses")


PICTURES = {
    "claude-code": '"type": "image", "source"',
    "codex": '"type": "input_image"',
    "kimi-code": '"type": "image_url"',
}
LONG = (pytest.mark.long, pytest.mark.timeout(900))
NAMES = ("claude-code", "codex", pytest.param("kimi-code", marks=LONG))


@pytest.fixture(scope="module", params=NAMES)
def house(request: pytest.FixtureRequest) -> Iterator[tuple[Real, HostProcess, ModelServer]]:
    with a_house(REAL[request.param]) as made:
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
    assert stage.audited("tools.call") == [task]

    slow = stage.start("tell a long story", Says("once upon a time " * 40, pause=0.05))
    pieces = iter(range(3))
    stage.host.events(slow, stop_when=lambda event: event.type == "TEXT_MESSAGE_CONTENT" and next(pieces) == 2)
    first = token_of(stage.host.data)
    assert stage.reach(first) == 200
    assert stage.cancelled(slow) < at_most(5)
    assert stage.model.left.wait(30), "the model's stream was closed"
    assert stage.reach(first) == 401

    again = stage.start("and two and four?", Says("", calls=(call,)), Says("Six."))
    assert text_of(stage.host.events(again)) == "Six."
    assert "It is five." in stage.asked(), "the session went on"
    assert stage.audited("tools.call") == [task, again]


def test_a_persons_picture_reaches_the_model_and_lies_in_the_working_directory(stage: Stage) -> None:
    drawn = picture(size=(64, 64))
    events = stage.shown("what is this?", drawn, Says("Red and blue."))
    assert text_of(events) == "Red and blue."
    [file] = stage.host.data.rglob("attachments/*/1-tea.png")
    assert f"attachments/{file.parent.name}/1-tea.png (image/png" in stage.asked()
    assert PICTURES[stage.real.name] in stage.asked(), "the model is shown it, not only told where it lies"


def test_a_cancel_in_a_tool_leaves_no_process(stage: Stage) -> None:
    call = stage.real.shell("python3 -c 'import time; time.sleep(97)' & python3 -c 'import time; time.sleep(98)'")
    task = stage.start("wait a while", Says("Waiting. ", calls=(call,)), Says("Done."))
    wait_until(lambda: len(processes_of(stage.host.data)) > 2, 30, "the command")
    assert stage.cancelled(task) < at_most(5)


def test_what_is_not_permitted_is_refused_and_said(stage: Stage) -> None:
    call = stage.real.shell("touch forbidden.txt")
    events = stage.said("make a file", Says("", calls=(call,)), Says("I may not."), agent="strict")
    assert text_of(events) == "I may not."
    assert "do not allow it" in results(events)[0]
    assert not list(stage.host.data.rglob("forbidden.txt"))


def test_a_tool_that_says_six_hundred_lines_is_heard_to_the_end(stage: Stage) -> None:
    call = stage.real.shell("seq 1 600 | sed 's/.*/line & of a long output, long enough to matter/'")
    events = stage.said("look", Says("", calls=(call,)), Says("Long."))
    assert text_of(events) == "Long."
    assert "line 1 of" in results(events)[0]
    assert "line 600 of" in results(events)[0]


def test_two_conversations_at_once_cannot_see_each_other(stage: Stage) -> None:
    words = {"papaya": str(uuid.uuid4()), "quince": str(uuid.uuid4())}
    stage.model.rule = lambda body: Says("I heard " + " ".join(word for word in words if word in json.dumps(body)))
    heard: dict[str, str] = {}

    def talk(word: str) -> None:
        heard[word] = text_of(stage.said(f"the word is {word}", thread=words[word]))

    both = [threading.Thread(target=talk, args=(word,)) for word in words]
    for one in both:
        one.start()
    for one in both:
        one.join(60)
    assert heard == {word: f"I heard {word}" for word in words}
    homes = {path.parent for path in stage.host.data.rglob("agent-context.json")}
    assert len(homes) >= 2
