"""A run answers any event, not only a message: the right agent gets it, whole, also after a restart."""

import uuid
from typing import Any

import pytest

from host.scripted import ScriptedGateway, small_house
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.payloads import MEMBER_JOINED, SCHEDULE, RunEvent
from paddock_sdk.protocol.run_context import AgentRunContext
from stores import QuickStore

pytestmark = pytest.mark.anyio

AGENTS = """
default_agent: desk
agents:
  desk: {runner: "plugin:test/one/default"}
  greeter: {runner: "plugin:test/one/default", events: [group.*]}
  clock: {runner: "plugin:test/one/default", events: [schedule.triggered]}
  second_clock: {runner: "plugin:test/one/default", events: ["schedule.*"]}
"""
JOINED = RunEvent(
    event_type=MEMBER_JOINED,
    actor={"actor_type": "user", "actor_id": "ben"},
    subject={"subject_type": "group", "subject_id": "g1"},
    data={"invited_by": "ann"},
    subthread_id="topic",
)


async def test_an_event_goes_to_the_one_agent_that_answers_it() -> None:
    async with small_house(agents=AGENTS) as house:
        thread = str(uuid.uuid4())
        accepted = await house.say("", thread=thread, event=JOINED, source="platform")
        run = await house.gateway.next()
        read = AgentRunContext.model_validate(run.context)
        assert (read.event.event_type, read.trigger.source, read.event.data) == (
            MEMBER_JOINED,
            "platform",
            {"invited_by": "ann"},
        )
        assert read.conversation is not None
        assert (read.conversation.bot_id, read.conversation.thread_id) == ("greeter", "topic")
        live = house.runs.live.find(accepted.run_id)
        assert live is not None
        scope = live.grant.scope
        assert (scope.actor_id, scope.subject_type, scope.subject_id, scope.subthread_id) == (
            "ben",
            "group",
            "g1",
            "topic",
        )


async def test_what_happened_is_in_the_conversation_as_nobodys_words() -> None:
    async with small_house(agents=AGENTS) as house:
        thread = str(uuid.uuid4())
        accepted = await house.say("", thread=thread, event=JOINED, source="platform")
        run = await house.gateway.next()
        run.message("Welcome, Ben!")
        run.say("run.completed")
        await house.story(accepted)
        answer, happened = await house.store.transcript(thread)
        assert (happened.role, happened.item_type, happened.content) == ("system", "system", MEMBER_JOINED)
        assert (answer.role, answer.content, answer.agent_id) == ("assistant", "Welcome, Ben!", "greeter")


@pytest.mark.parametrize(
    ("event_type", "agent", "code", "says"),
    [
        (SCHEDULE, None, ErrorCode.CONFLICT, "2 agents answer schedule.triggered (clock, second_clock)"),
        ("friend.request_received", None, ErrorCode.NOT_FOUND, "no agent answers friend.request_received"),
        (SCHEDULE, "desk", ErrorCode.INVALID_ARGUMENT, "agent 'desk' does not answer schedule.triggered"),
        (None, "greeter", ErrorCode.INVALID_ARGUMENT, "agent 'greeter' does not answer message.received"),
    ],
)
async def test_none_or_several_that_answer_are_said_and_on_record(
    event_type: str | None, agent: str | None, code: ErrorCode, says: str
) -> None:
    async with small_house(agents=AGENTS) as house:
        event = None if event_type is None else RunEvent(event_type=event_type)
        with pytest.raises(HostError) as refused:
            await house.say("hi", thread=str(uuid.uuid4()), event=event, agent_id=agent)
        assert refused.value.code is code
        assert refused.value.message.startswith(says)
        [row] = await house.store.audit()
        assert (row.action, row.result) == ("run.accept", str(code))


async def test_an_event_addressed_to_one_of_several_is_that_ones() -> None:
    async with small_house(agents=AGENTS) as house:
        await house.say("", thread=str(uuid.uuid4()), event=RunEvent(event_type=SCHEDULE), agent_id="second_clock")
        context = (await house.gateway.next()).context
        assert context["conversation"]["bot_id"] == "second_clock"
        assert context["actor"] == {"actor_type": "system", "actor_id": "api"}


async def test_an_event_that_waits_in_line_is_whole_after_a_restart() -> None:
    store, thread = QuickStore(), str(uuid.uuid4())
    attachments = ({"artifact_id": "a1", "mime_type": "image/png"},)
    async with small_house(store, agents=AGENTS) as house:
        await house.say("first", thread=thread)
        await house.gateway.next()
        await house.say(
            "", thread=thread, event=JOINED, source="platform", attachments=attachments, locale="zh_Hans", door="ag-ui"
        )
    async with small_house(store, agents=AGENTS, gateway=ScriptedGateway()) as house:
        await house.sessions.recover("host_restarted", "restarted")
        context: Any = (await house.gateway.next()).context
        assert (context["event"]["event_type"], context["actor"]["actor_id"]) == (MEMBER_JOINED, "ben")
        assert context["input"]["attachments"] == list(attachments)
        assert context["runtime"]["locale"] == "zh_Hans"
        assert context["conversation"]["thread_id"] == "topic"
