"""In a group only whoever was asked says yes, however the others put it and whoever else spoke in between."""

from typing import Any

import pytest

from harness.test_every_harness import Desk, desk
from host.platforms import EDITING_AGENTS, EDITOR
from host.scripted import ScriptedGateway, SmallHouse
from host.test_chat_questions import ANN, BEN, DELETE, asked, asked_for_an_edit, chosen, refused, resume_of
from host.test_platforms import CHAT_USER, Receiver, a_house, an_event, come
from official.speaking import ADD, resources
from official.test_local_agent import answers, calls_of
from paddock.host.conversations.client_runs import continued
from paddock.rules.errors import ErrorCode
from paddock_runners.local_agent import LocalAgent
from paddock_runners.local_agent.approvals import NOT_APPROVED
from paddock_sdk.testing import pretend_host

pytestmark = [pytest.mark.anyio, pytest.mark.spec("http/events-answers")]
__all__ = ["desk"]

WORDS = ["yes", "yes please", "yeah", "ok thanks", "i agree", "好的谢谢", "hm?", "what would that do?"]
CANCELLED = [{"interruptId": "q1", "status": "cancelled"}]


LISTENING = """
default_agent: one
agents:
  one: {runner: "plugin:test/one/default", events: [message.received, group.*], platform_actions: [message.edit]}
  two: {runner: "plugin:test/two/default"}
"""


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


@pytest.mark.parametrize("word", WORDS)
async def test_naming_the_agent_makes_it_no_answer_either(word: str) -> None:
    async with a_house(Receiver()) as house:
        await asked(house, DELETE)
        await come(house, an_event("e2", word, actor=BEN, bot_id="one"))
        run = await house.gateway.next()
        assert resume_of(run) == CANCELLED
        run.say("run.completed")


async def test_whoever_was_asked_answers_also_where_the_platform_names_the_agent() -> None:
    async with a_house(
        Receiver(), agents=EDITING_AGENTS, gateway=ScriptedGateway(EDITOR), actions=["message.edit"]
    ) as house:
        approval_id = await asked_for_an_edit(house)
        await come(house, an_event("e2", "yes", actor=ANN, bot_id="one"))
        run = await house.gateway.next()
        assert resume_of(run)[0]["payload"] == {"approved": True}
        assert await outcome_of(house, approval_id) == "done"
        run.say("run.completed")


async def test_what_is_said_to_another_agent_is_no_answer() -> None:
    async with a_house(
        Receiver(), agents=EDITING_AGENTS, gateway=ScriptedGateway(EDITOR), actions=["message.edit"]
    ) as house:
        approval_id = await asked_for_an_edit(house)
        await come(house, an_event("e2", "yes", actor=ANN, bot_id="two"))
        run = await house.gateway.next()
        assert (run.context["conversation"]["bot_id"], resume_of(run)) == ("two", None)
        assert await outcome_of(house, approval_id) == "pending"
        run.say("run.completed")


@pytest.mark.parametrize("bot_id", ["one", None])
async def test_an_event_that_is_no_message_is_no_answer_of_somebody_else(bot_id: str | None) -> None:
    async with a_house(Receiver(), agents=LISTENING) as house:
        await asked(house, DELETE)
        await come(house, an_event("e2", "yes", event_type="group.note", actor=BEN, bot_id=bot_id))
        run = await house.gateway.next()
        assert resume_of(run) == CANCELLED
        run.say("run.completed")


NAMELESS: list[dict[str, Any]] = [{"actor": None}, {"event_type": "group.member_joined", "actor": None}]


@pytest.mark.parametrize("event", NAMELESS)
@pytest.mark.parametrize("who", [BEN, {"actor_id": "chat"}, {"actor_type": "system", "actor_id": "platform"}, None])
async def test_where_nobody_is_known_to_have_been_asked_nobody_in_the_chat_answers(event: Any, who: Any) -> None:
    async with a_house(
        Receiver(), agents=LISTENING, gateway=ScriptedGateway(EDITOR), actions=["message.edit"]
    ) as house:
        approval_id = await asked_for_an_edit(house, **event)
        code, says = await refused(house, chosen(who=who, interaction_id=approval_id, action_id="approve"))
        assert (code, says.split(",")[0]) == (ErrorCode.UNAUTHORIZED, "it is not known who was asked this")
        await come(house, an_event("e3", "yes", actor=who))
        run = await house.gateway.next()
        assert resume_of(run) is None
        assert await outcome_of(house, approval_id) == "pending"
        await house.approvals.decide(CHAT_USER, approval_id, "granted")
        assert await outcome_of(house, approval_id) == "done"
        run.say("run.completed")


async def test_what_the_owner_was_asked_elsewhere_nobody_in_the_chat_answers() -> None:
    async with a_house(Receiver(), interactions=True) as house:
        accepted = await asked(house, DELETE)
        on = continued([], CANCELLED)
        await house.say("", thread=accepted.session_id, who=CHAT_USER, event=on, agent_id="one")
        run = await house.gateway.next()
        run.say("run.completed", interrupts=[DELETE])
        row = await house.store.run(run.run_id)
        assert row is not None
        await house.story(row)
        for event_id, who in enumerate([ANN, BEN, {"actor_id": "chat"}, None]):
            code, _ = await refused(house, chosen(f"a{event_id}", who=who, interaction_id="q1", action_id="approve"))
            assert code is ErrorCode.UNAUTHORIZED


async def outcome_of(house: SmallHouse, approval_id: str) -> str:
    return (await house.approvals.get(CHAT_USER, approval_id)).outcome(house.approvals.clock())


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


NOBODY = {"actor_type": "user", "actor_id": "chat", "metadata": {"named": False}}
OWNER = {"actor_type": "user", "actor_id": "chat"}


@pytest.mark.parametrize(("asked", "source"), [(NOBODY, "platform"), (OWNER, "webui")])
@pytest.mark.parametrize("who", [NOBODY, OWNER])
async def test_on_a_platform_a_runner_takes_no_yes_for_the_owners_or_for_one_of_nobody_it_knows(
    asked: dict[str, Any], source: str, who: dict[str, Any]
) -> None:
    settings: dict[str, Any] = {"resources": resources(ADD), "config": {"approve": ["add"]}}
    async with pretend_host(LocalAgent(), calls=calls_of([])) as host:
        at = {"trigger": {"type": "message.received", "source": source}, "actor": asked}
        await host.run('call add {"a": 2, "b": 3}', **settings, **at)
        told = await host.run("yes", **settings, **in_a_group("x") | {"actor": who})
        made = [call for call in host.calls if call.method == "tools.call"]
    assert (answers(told), made) == ([NOT_APPROVED], [])


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
