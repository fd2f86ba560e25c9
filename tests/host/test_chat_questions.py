"""What a run asks in the chat of a platform reaches the person there, and only their answer counts."""

from collections.abc import Mapping
from typing import Any

import pytest

from host.calling import ask
from host.platforms import EDITING_AGENTS, EDITOR
from host.scripted import AtRunner, ScriptedGateway, SmallHouse
from host.test_platforms import CHAT_USER, Receiver, a_house, an_event, answer, come, deliver
from paddock.host.session.arrivals import Accepted
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.platforms.chat_questions import as_consent

pytestmark = pytest.mark.anyio

DELETE = {
    "id": "q1",
    "reason": "tool_call",
    "message": "delete it?",
    "response_schema": {"type": "object", "properties": {"approved": {"type": "boolean"}}},
}
COLOUR = {"id": "q2", "message": "which?", "response_schema": {"properties": {"colour": {"type": "string"}}}}
EDIT = {"action": "message.edit", "target": {"message_id": "m9"}, "payload": {"text": "better"}}
ANN, BEN = {"actor_id": "ann"}, {"actor_id": "ben"}


async def asked(house: SmallHouse, *questions: Mapping[str, Any], event_id: str = "e1") -> Accepted:
    """Ann says something, and the run ends with these questions."""
    accepted = await come(house, an_event(event_id, actor=ANN))
    run = await house.gateway.next()
    run.message("shall I?")
    run.say("run.completed", interrupts=list(questions))
    await house.story(accepted)
    return accepted


async def asked_for_an_edit(house: SmallHouse, **event: Any) -> str:
    """The same where the run asks for an action of the platform, which the host puts before Ann."""
    given: dict[str, Any] = {"actor": ANN, **event}
    accepted = await come(house, an_event(**given))
    run = await house.gateway.next()
    pending = await ask(house, run, "platform.request_action", **EDIT)
    run.say("run.completed")
    await house.story(accepted)
    return str(pending["approval_id"])


def chosen(event_id: str = "e2", who: Mapping[str, Any] | None = ANN, **choice: Any) -> dict[str, Any]:
    event = {"event_id": event_id, "event_type": "interaction.submitted", "conversation_id": "room", "actor": who}
    return {**event, "input": {"interaction": choice}}


def resume_of(run: AtRunner) -> Any:
    return run.context.get("adapter", {}).get("extra", {}).get("params", {}).get("resume")


async def refused(house: SmallHouse, event: dict[str, Any]) -> tuple[ErrorCode, str]:
    with pytest.raises(HostError) as error:
        await come(house, event)
    assert house.gateway.started.empty()
    return error.value.code, error.value.message


@pytest.mark.spec("http/events-answers")
async def test_a_question_is_delivered_with_its_choices_and_the_one_taken_reaches_the_runner() -> None:
    receiver = Receiver()
    async with a_house(receiver, interactions=True) as house:
        await asked(house, DELETE)
        await deliver(house)
        told = receiver.got[-1]
        assert (told["type"], told["reply_target"]["conversation_id"]) == ("interaction.requested", "room")
        [question] = told["interactions"]
        assert (question["interaction_id"], question["kind"], question["title"]) == ("q1", "confirmation", "delete it?")
        assert [action["id"] for action in question["actions"]] == ["approve", "deny"]
        accepted = await come(house, chosen(interaction_id="q1", action_id="approve"))
        run = await house.gateway.next()
        assert resume_of(run) == [{"interruptId": "q1", "status": "resolved", "payload": {"approved": True}}]
        assert run.context["event"]["event_type"] == "conversation.continued"
        assert run.context["actor"]["actor_id"] == "ann"
        run.message("deleted")
        run.say("run.completed")
        await house.story(accepted)
        await deliver(house)
        assert receiver.got[-1]["text"] == "deleted"
        assert (await come(house, chosen(interaction_id="q1", action_id="approve"))).run_id == accepted.run_id
        code, says = await refused(house, chosen("e3", interaction_id="q1", action_id="approve"))
        assert (code, says.split(";")[0]) == (
            ErrorCode.CONFLICT,
            "no question is open in this conversation",
        )


@pytest.mark.spec("http/events-answers")
async def test_only_whoever_was_asked_can_answer() -> None:
    async with a_house(Receiver(), interactions=True) as house:
        await asked(house, DELETE)
        code, _ = await refused(house, chosen(who=BEN, interaction_id="q1", action_id="approve"))
        assert code is ErrorCode.UNAUTHORIZED
        [row, *_] = await house.store.audit(limit=1)
        assert (row.action, row.result) == ("run.accept", "unauthorized")
        await come(house, an_event("e3", "yes", actor=BEN))
        run = await house.gateway.next()
        assert resume_of(run) == [{"interruptId": "q1", "status": "cancelled"}]
        run.say("run.completed")


@pytest.mark.spec("http/events-answers")
@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ({"interaction_id": "q1"}, "interaction 'q1' wants action_id approve or deny, or action_id cancel"),
        ({"interaction_id": "q1", "action_id": "maybe"}, "interaction 'q1' wants action_id approve or deny"),
        ({"interaction_id": "q2", "action_id": "approve"}, "interaction 'q2' wants values as its response_schema"),
        ({"interaction_id": "q9", "action_id": "approve"}, "interaction 'q9' is not open in this conversation"),
        ({"interaction_id": "q1", "action_id": "deny"}, "resume must answer every open interrupt of the last run"),
    ],
)
async def test_an_answer_that_fits_no_question_is_refused_in_words_and_the_right_one_still_counts(
    choice: dict[str, Any], says: str
) -> None:
    async with a_house(Receiver(), interactions=True) as house:
        await asked(house, DELETE, COLOUR)
        assert (await refused(house, chosen(**choice)))[1].startswith(says)
        both = [{"interaction_id": "q1", "action_id": "deny"}, {"interaction_id": "q2", "values": {"colour": "red"}}]
        await come(house, {**chosen("e4"), "input": {"interaction": both}})
        run = await house.gateway.next()
        assert [entry["payload"] for entry in resume_of(run)] == [{"approved": False}, {"colour": "red"}]
        run.say("run.completed")


@pytest.mark.spec("http/events-answers")
async def test_where_nothing_was_asked_there_is_nothing_to_answer() -> None:
    async with a_house(Receiver()) as house:
        assert (await refused(house, chosen(action_id="approve")))[0] is ErrorCode.CONFLICT
        assert await house.store.platform_event("chat", "e2") is None


@pytest.mark.spec("http/events-answers")
@pytest.mark.parametrize(("word", "done"), [("Yes!", True), ("同意", True), ("no", False)])
async def test_what_the_host_asks_is_put_in_words_where_a_platform_shows_only_text_and_a_plain_word_decides(
    word: str, done: bool
) -> None:
    receiver = Receiver()
    async with a_house(
        receiver, agents=EDITING_AGENTS, gateway=ScriptedGateway(EDITOR), actions=["message.edit"]
    ) as house:
        approval_id = await asked_for_an_edit(house)
        await deliver(house)
        [question] = receiver.got
        assert question["type"] == "message.completed"
        assert question["text"].startswith('message.edit needs your approval: {"message_id":"m9"} {"text":"better"}')
        await come(house, an_event("e2", word, actor=ANN))
        run = await house.gateway.next()
        assert resume_of(run)[0]["payload"] == {"approved": done}
        assert run.context["input"]["text"] == word
        assert ("platform.action" in [one["type"] for one in receiver.got]) is done
        outcome = (await house.approvals.get(CHAT_USER, approval_id)).outcome(house.approvals.clock())
        assert outcome == ("done" if done else "denied")
        run.say("run.completed")


@pytest.mark.spec("http/events-answers")
async def test_what_others_say_decides_nothing_and_the_question_stays_for_its_owner() -> None:
    async with a_house(
        Receiver(), agents=EDITING_AGENTS, gateway=ScriptedGateway(EDITOR), actions=["message.edit"]
    ) as house:
        approval_id = await asked_for_an_edit(house)
        await come(house, an_event("e2", "yes", actor=BEN))
        run = await house.gateway.next()
        assert resume_of(run) is None
        assert (await house.approvals.get(CHAT_USER, approval_id)).status(house.approvals.clock()) == "pending"
        run.say("run.completed")


async def test_what_a_runner_asks_is_not_said_twice_where_a_platform_shows_only_text() -> None:
    receiver = Receiver()
    async with a_house(receiver) as house:
        await asked(house, DELETE)
        await deliver(house)
        assert receiver.texts() == ["shall I?"]
        await come(house, an_event("e2", "please do not hurry", actor=ANN))
        run = await house.gateway.next()
        assert resume_of(run) is None
        run.say("run.completed")


async def test_who_takes_over_asks_whoever_was_there_before() -> None:
    async with a_house(Receiver(), interactions=True) as house:
        first = await come(house, an_event(actor=ANN))
        run = await house.gateway.next()
        run.say("action.requested", action="session.handover", payload={"target_agent_id": "two", "reason": "x"})
        run.say("run.completed")
        prompt = await house.until(first.session_id, "CONTROL:HANDOVER_UI_PROMPT")
        await house.control("HANDOVER_CONFIRM", thread=first.session_id, who=CHAT_USER, tx_id=prompt.tx_id)
        second = await house.gateway.next()
        second.say("run.completed", interrupts=[DELETE])
        row = await house.store.run(second.run_id)
        assert row is not None
        await house.story(row)
        assert (await refused(house, chosen("e7", who=BEN, action_id="approve")))[0] is ErrorCode.UNAUTHORIZED
        await come(house, chosen("e8", action_id="approve"))
        third = await house.gateway.next()
        assert third.context["conversation"]["bot_id"] == "two"
        third.say("run.completed")


@pytest.mark.parametrize(
    ("text", "yes"),
    [
        ("yes", True),
        (" OK. ", True),
        ("好的", True),
        ("No!", False),
        ("不行", False),
        ("yes, but later", None),
        ("", None),
    ],
)
def test_only_a_message_that_is_nothing_else_is_a_yes_or_a_no(text: str, yes: bool | None) -> None:
    assert as_consent(text) is yes


async def test_a_message_that_says_yes_where_nothing_is_open_is_a_message() -> None:
    async with a_house(Receiver()) as house:
        await come(house, an_event(actor=ANN))
        await answer(house, "hello")
        await come(house, an_event("e2", "yes", actor=ANN))
        run = await house.gateway.next()
        assert (run.context["input"]["text"], resume_of(run)) == ("yes", None)
        run.say("run.completed")
