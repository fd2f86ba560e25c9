"""opencode and Gemini CLI, as `make harnesses-acp` installs them: the host's tools, and an end that is one."""

import uuid

import pytest

from harness.clis import REAL, runs
from harness.stages import Stage, a_further_server, a_house, results, titles
from model_server import Says
from patience import at_most
from walk.hosts import text_of, wait_until

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("real-harnesses"), pytest.mark.timeout(900)]


@pytest.mark.parametrize("name", ["opencode", "gemini"])
def test_it_uses_the_hosts_tools_and_is_stopped_for_real(name: str) -> None:
    with a_house(REAL[name]) as (real, host, model):
        model.rule = titles
        stage = Stage(real, host, model, str(uuid.uuid4()))
        call = real.host_tool("calculate", {"expression": "2 + 3"})
        task = stage.start("add", Says("I will ask. ", calls=(call,)), Says("Five."), agent="strict")
        events = host.events(task)
        assert text_of(events) == "I will ask. Five."
        assert results(events) == ["5"]
        assert stage.instructed() == 1
        assert stage.audited("tools.call") == [task]
        slow = stage.start("tell a long story", Says("once upon a time " * 40, pause=0.05), agent="strict")
        host.events(slow, stop_when=lambda event: "upon" in str(event.data.get("delta")))
        stage.cancelled(slow)
        again = text_of(stage.said("and?", Says("And they lived."), agent="strict"))
        assert again == "And they lived."
        assert "Five." in stage.asked(), "the session went on, though it may be the same minute"


@pytest.mark.parametrize("name", ["opencode", "gemini"])
def test_its_own_tools_are_judged_heard_and_stopped(name: str) -> None:
    with a_further_server() as moody, a_house(REAL[name], mcp=[moody]) as (real, host, model):
        model.rule = titles
        strict = Stage(real, host, model, str(uuid.uuid4()))
        foreign = real.server_tool("moody", "add", {"a": 1, "b": 2})
        events = strict.said("add", Says("", calls=(foreign,)), Says("I may not."), agent="strict")
        assert "do not allow it" in results(events)[0]
        model.script.clear()  # opencode ends the turn when it is refused something

        strict = Stage(real, host, model, str(uuid.uuid4()))
        forbidden = real.shell("touch forbidden.txt")
        events = strict.said("make a file", Says("", calls=(forbidden,)), Says("I may not."), agent="strict")
        assert "do not allow it" in results(events)[0]
        assert not list(host.data.rglob("forbidden.txt"))

        model.script.clear()
        free = Stage(real, host, model, str(uuid.uuid4()))
        long = real.shell("seq 1 600 | sed 's/.*/line & of a long output, long enough to matter/'")
        events = free.said("look", Says("", calls=(long,)), Says("Long."))
        assert text_of(events) == "Long."
        heard = free.asked() if name == "gemini" else results(events)[0]  # Gemini CLI shows it to its model only
        assert "line 1 of" in heard
        assert "line 600 of" in heard
        assert "How we brew oolong here." in free.asked(), "the granted skill is known to the model"

        alone = Stage(real, host, model, str(uuid.uuid4()))
        task = alone.start("wait", Says("Waiting. ", calls=(real.shell("sleep 97; sleep 98"),)), Says("Done."))
        wait_until(lambda: runs(host.data, "sleep"), 120, "the command")
        assert alone.cancelled(task) < at_most(5)
