"""In a group only whoever was asked says yes, however the others put it and whoever else spoke in between."""

from typing import Any

import pytest

from harness.test_every_harness import Desk, desk
from host.test_chat_questions import ANN, BEN, DELETE, asked, resume_of
from host.test_platforms import Receiver, a_house, an_event, come
from official.speaking import ADD, resources
from official.test_local_agent import answers, calls_of
from paddock_runners.local_agent import LocalAgent
from paddock_runners.local_agent.approvals import NOT_APPROVED
from paddock_sdk.testing import pretend_host

pytestmark = [pytest.mark.anyio, pytest.mark.spec("http/events-answers")]
__all__ = ["desk"]

WORDS = ["yes", "yes please", "yeah", "ok thanks", "i agree", "好的谢谢", "hm?", "what would that do?"]
CANCELLED = [{"interruptId": "q1", "status": "cancelled"}]


def in_a_group(actor: str, source: str = "platform") -> dict[str, Any]:
    return {
        "trigger": {"type": "message.received", "source": source},
        "actor": {"actor_type": "user", "actor_id": actor},
    }


@pytest.mark.parametrize("word", WORDS)
async def test_whatever_somebody_else_says_is_no_answer_to_the_runner(word: str) -> None:
    async with a_house(Receiver()) as house:
        await asked(house, DELETE)
        await come(house, an_event("e2", word, actor=BEN))
        run = await house.gateway.next()
        assert resume_of(run) == CANCELLED
        run.say("run.completed")


async def test_whoever_was_asked_still_answers_in_their_own_words() -> None:
    async with a_house(Receiver()) as house:
        await asked(house, DELETE)
        await come(house, an_event("e2", "yes please", actor=ANN))
        run = await house.gateway.next()
        assert resume_of(run) is None
        run.say("run.completed")


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize(("who", "source"), [("ben", "platform"), ("ann", "platform"), ("chat", "webui")])
async def test_the_local_agent_takes_the_yes_of_whoever_it_asked_or_of_the_owner(
    word: str, who: str, source: str
) -> None:
    """Also where the host could not see that something is open, because another agent spoke last."""
    settings: dict[str, Any] = {"resources": resources(ADD), "config": {"approve": ["add"]}}
    async with pretend_host(LocalAgent(), calls=calls_of([])) as host:
        await host.run('call add {"a": 2, "b": 3}', **settings, **in_a_group("ann"))
        told = await host.run(word, **settings, **in_a_group(who, source))
        again = await host.run("yes", **settings, **in_a_group("ben"))
        made = [call for call in host.calls if call.method == "tools.call"]
    if who == "ben":
        assert (answers(told), made) == ([NOT_APPROVED], [])
    else:
        assert len(made) == ("?" not in word)
    assert answers(again) == ([NOT_APPROVED] if who != "ben" and "?" in word else [])


@pytest.mark.parametrize(
    ("who", "source", "done"), [("ben", "platform", False), ("ann", "platform", True), ("c", "api", True)]
)
async def test_a_harness_takes_the_yes_of_whoever_it_asked_or_of_the_owner(
    desk: Desk, who: str, source: str, done: bool
) -> None:
    desk.more = in_a_group("ann")
    await desk.run("ask")
    desk.more = in_a_group(who, source)
    told = await desk.run("yes please")
    assert ("Removed." in told.text) == done
