"""opencode and Gemini CLI, as `make harnesses-acp` installs them: the host's tools, and an end that is one."""

import uuid

import pytest

from harness.clis import REAL
from harness.stages import Stage, a_house, results, titles
from model_server import Says
from walk.hosts import text_of

LOST = "no longer knows our earlier session"
pytestmark = [pytest.mark.long, pytest.mark.xdist_group("real-harnesses"), pytest.mark.timeout(900)]


@pytest.mark.parametrize("name", ["opencode", "gemini"])
def test_it_uses_the_hosts_tools_and_is_stopped_for_real(name: str) -> None:
    with a_house(REAL[name]) as (real, host, model):
        model.rule = titles
        stage = Stage(real, host, model, str(uuid.uuid4()))
        call = real.host_tool("calculate", {"expression": "2 + 3"})
        task = stage.start("add", Says("I will ask. ", calls=(call,)), Says("Five."))
        events = host.events(task)
        assert text_of(events) == "I will ask. Five."
        assert results(events) == ["5"]
        assert stage.audited("tools.call") == [task]
        slow = stage.start("tell a long story", Says("once upon a time " * 40, pause=0.05))
        host.events(slow, stop_when=lambda event: "upon" in str(event.data.get("delta")))
        stage.cancelled(slow)
        again = text_of(stage.said("and?", Says("And they lived.")))
        assert again.endswith("And they lived.")
        if LOST in again:  # what Gemini CLI does with two turns that begin in the same minute: said, and begun anew
            assert name == "gemini"
        else:
            assert again == "And they lived."
            assert "Five." in stage.asked(), "the session went on"
