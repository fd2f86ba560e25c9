"""Platforms: events come in signed and once; what runs say there goes out signed, in order, and is never lost."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from host.calling import ask
from host.platforms import EDITING_AGENTS, EDITOR
from host.scripted import ScriptedGateway, SmallHouse, small_house
from http_api.doors import serving
from paddock.host.people.principals import Principal
from paddock.host.session.arrivals import Accepted
from paddock.ports import Store
from paddock.ports.platforms import Posted
from paddock.rules.access.signatures import is_signed_webhook
from paddock.rules.agents.specs import PlatformSpec
from paddock.rules.errors import ErrorCode, HostError
from stores import QuickStore

pytestmark = pytest.mark.anyio

SECRET = "a secret of the chat platform"
ADMIN = Principal("default", "root", "admin")
CHAT_USER = Principal("default", "chat")
CHAT = {"secret": SECRET, "webhook": "http://127.0.0.1:9/hook"}


@dataclass
class Receiver:
    """The platform's side: remembers what it got, answers as it is told."""

    got: list[dict[str, Any]] = field(default_factory=list)
    answers: list[Posted] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], *, seconds: float) -> Posted:
        assert is_signed_webhook(SECRET.encode(), headers, body)
        self.got.append({**json.loads(body), "webhook-id": headers["webhook-id"]})
        self.news.set()
        return self.answers.pop(0) if self.answers else Posted(200)

    async def close(self) -> None:
        pass

    def texts(self) -> list[str]:
        return [one["text"] for one in self.got]


@asynccontextmanager
async def a_house(
    receiver: Receiver, store: Store | None = None, *, gateway: ScriptedGateway | None = None, **spec: Any
) -> AsyncGenerator[SmallHouse]:
    more = {name: spec.pop(name) for name in ("clock", "agents") if name in spec}
    chat = PlatformSpec.model_validate(CHAT | spec)
    async with small_house(store, platforms={"chat": chat}, webhooks=receiver, gateway=gateway, **more) as house:
        yield house


def an_event(event_id: str = "e1", text: str = "hello", **changes: Any) -> dict[str, Any]:
    event = {"event_id": event_id, "event_type": "message.received", "conversation_id": "room"}
    return event | {"actor": {"actor_id": "u1"}, "input": {"text": text}} | changes


async def come(house: SmallHouse, event: dict[str, Any]) -> Accepted:
    platform = house.platforms.find("chat")
    assert platform is not None
    return await house.ingress.accept(platform, event)


async def answer(house: SmallHouse, *texts: str) -> str:
    run = await house.gateway.next()
    for text in texts:
        run.message(text)
    run.say("run.completed")
    async with asyncio.timeout(30):
        while (row := await house.store.run(run.run_id)) is None or row.status != "completed":
            await asyncio.sleep(0.005)
    return run.run_id


async def deliver(house: SmallHouse) -> None:
    while await house.deliveries.send_due():
        pass


async def test_a_message_of_a_platform_is_answered_there() -> None:
    receiver = Receiver()
    async with a_house(receiver) as house:
        accepted = await come(house, an_event())
        run = await house.gateway.next()
        assert run.context["trigger"]["source"] == "platform"
        assert run.context["actor"] == {"actor_type": "user", "actor_id": "u1"}
        assert run.context["delivery"]["surface"] == "chat"
        assert run.context["delivery"]["supports_streaming"] is False
        run.message("hi there")
        run.say("run.completed")
        await house.story(accepted)
        await deliver(house)
        [told] = receiver.got
        assert (told["type"], told["text"], told["part"], told["parts"]) == ("message.completed", "hi there", 1, 1)
        assert told["reply_target"] == {"conversation_id": "room", "event_id": "e1"}
        assert told["run_id"] == accepted.run_id
        assert told["webhook-id"] == told["delivery_id"]
        [row] = await house.store.deliveries("default")
        assert (row.status, row.attempts) == ("delivered", 1)


async def test_an_event_is_accepted_once_also_when_it_comes_twice_at_once() -> None:
    async with a_house(Receiver()) as house:
        both = await asyncio.gather(come(house, an_event()), come(house, an_event()))
        again = await come(house, an_event())
        assert len({one.run_id for one in (*both, again)}) == 1
        await answer(house, "x")
        assert house.gateway.started.empty()
        with pytest.raises(HostError) as refused:
            await come(house, an_event(text="something else"))
        assert refused.value.code is ErrorCode.CONFLICT
        elsewhere = an_event(conversation_id="another room")
        with pytest.raises(HostError):
            await come(house, elsewhere)


AGENTS = """
default_agent: desk
agents:
  desk: {runner: "plugin:test/one/default"}
  greeter: {runner: "plugin:test/one/default", events: [group.member_joined]}
  clock: {runner: "plugin:test/one/default", events: [schedule.triggered]}
  second_clock: {runner: "plugin:test/one/default", events: ["schedule.*"]}
"""


async def test_other_events_go_to_the_one_agent_that_answers_them() -> None:
    async with a_house(Receiver(), agents=AGENTS) as house:
        joined: dict[str, Any] = {
            "event_type": "group.member_joined",
            "subject": {"subject_type": "group", "subject_id": "g"},
        }
        await come(house, an_event(text="", **joined))
        run = await house.gateway.next()
        assert run.context["conversation"]["bot_id"] == "greeter"
        assert run.context["subject"]["subject_id"] == "g"
        for event_type, code in (("schedule.triggered", ErrorCode.CONFLICT), ("friend.gone", ErrorCode.NOT_FOUND)):
            with pytest.raises(HostError) as refused:
                await come(house, an_event(event_type, event_type=event_type))
            assert refused.value.code is code
            assert event_type in refused.value.message
        run.say("run.completed")
        await house.story(await come(house, an_event(text="", **joined)))


@pytest.mark.parametrize(
    "event_type",
    [
        "message.recalled",
        "group.member_joined",
        "friend.request_received",
        "interaction.submitted",
        "schedule.triggered",
        "api.invoked",
    ],
)
async def test_each_kind_of_event_reaches_its_one_agent_whole_and_zero_or_two_are_said(event_type: str) -> None:
    nobody = 'agents:\n  desk: {runner: "plugin:test/one/default"}\n'
    one = nobody + f'  a: {{runner: "plugin:test/one/default", events: [{event_type}]}}\n'
    told: dict[str, Any] = {
        "source_event_type": "Raw",
        "thread_id": "topic",
        "data": {"card": 7},
        "event_time": "2026-03-15T10:00:00Z",
    }
    event = an_event(text="", event_type=event_type, subject={"subject_type": "message", "subject_id": "m9"}, **told)
    async with a_house(Receiver(), agents=one) as house:
        await come(house, event)
        run = await house.gateway.next()
        about = run.context["event"]
        assert (about["event_type"], about["source_event_type"], about["data"]) == (event_type, "Raw", {"card": 7})
        assert (about["event_time"], run.context["subject"]["subject_id"]) == (1773568800, "m9")
        assert (run.context["actor"]["actor_id"], run.context["conversation"]["thread_id"]) == ("u1", "topic")
    other = '  b: {runner: "plugin:test/one/default", events: ["*"]}\n'
    for agents, code in ((one + other, ErrorCode.CONFLICT), (nobody, ErrorCode.NOT_FOUND)):
        async with a_house(Receiver(), agents=agents) as house:
            with pytest.raises(HostError, match=event_type) as refused:
                await come(house, event)
            assert refused.value.code is code
            assert [row.result for row in await house.store.audit()] == [str(code)]


async def hands_over(house: SmallHouse) -> str:
    """A platform asks, and its agent would like another one to answer; the id of that question to the user."""
    accepted = await come(house, an_event())
    run = await house.gateway.next()
    payload = {"target_agent_id": "two", "reason": "", "summary": ""}
    run.say("action.requested", action="session.handover", target={}, payload=payload)
    run.message("That is for two.")
    run.say("run.completed")
    await house.story(accepted)
    return str((await house.until(accepted.session_id, "CONTROL:HANDOVER_UI_PROMPT")).tx_id)


@pytest.mark.parametrize("between", ["a restart", "words from elsewhere"])
async def test_who_takes_over_answers_where_was_asked_whatever_happened_in_between(between: str) -> None:
    receiver, store = Receiver(), QuickStore()
    async with a_house(receiver, store) as house:
        asked = await hands_over(house)
        thread = (await house.store.deliveries("default"))[0].session_id
        if between == "words from elsewhere":
            await house.say("and at the console", thread=thread, who=CHAT_USER)
            await answer(house, "seen at the console")
            await agreed(house, thread, asked)
    if between == "a restart":
        async with a_house(receiver, store, gateway=ScriptedGateway()) as house:
            await house.sessions.recover("host_restarted", "restarted")
            await agreed(house, thread, asked)
    told = [(one["text"], one["reply_target"]["event_id"]) for one in receiver.got]
    assert told == [("That is for two.", "e1"), ("two here", "e1")]


async def agreed(house: SmallHouse, thread: str, asked: str) -> None:
    await house.control("HANDOVER_CONFIRM", thread=thread, who=CHAT_USER, tx_id=asked)
    await answer(house, "two here")
    await deliver(house)


async def test_a_host_that_ends_in_the_turn_of_who_took_over_says_so_where_was_asked() -> None:
    receiver, store = Receiver(), QuickStore()
    async with a_house(receiver, store) as house:
        asked = await hands_over(house)
        thread = (await house.store.deliveries("default"))[0].session_id
        await house.control("HANDOVER_CONFIRM", thread=thread, who=CHAT_USER, tx_id=asked)
        await house.gateway.next()
        await house.until(thread, "CONTROL:HANDOVER_ACCEPTED")
    async with a_house(receiver, store, gateway=ScriptedGateway()) as house:
        await house.sessions.recover("host_restarted", "restarted")
        await deliver(house)
    assert [one["type"] for one in receiver.got] == ["message.completed", "run.failed"]


async def test_long_answers_are_split_and_delivered_in_order() -> None:
    receiver = Receiver()
    async with a_house(receiver, max_message_size=100) as house:
        await come(house, an_event())
        words = " ".join(f"word{number}" for number in range(60))
        await answer(house, words, "short")
        await deliver(house)
        assert all(len(text) <= 100 for text in receiver.texts())
        assert " ".join(receiver.texts()) == f"{words} short"
        assert [one["part"] for one in receiver.got] == [1, 2, 3, 4, 5, 1]


async def test_a_failed_delivery_holds_up_what_follows_is_tried_again_and_then_given_up() -> None:
    now = [1000.0]
    receiver = Receiver(answers=[Posted(500), Posted(None, "no route"), *[Posted(503)] * 6])
    async with a_house(receiver, clock=lambda: now[0]) as house:
        await come(house, an_event())
        await answer(house, "first", "second")
        assert await house.deliveries.send_due() == 1
        assert await house.deliveries.send_due() == 0
        [second, first] = await house.store.deliveries("default")
        assert (first.status, first.attempts, first.due_at, first.detail) == ("pending", 1, 1005.0, "answered 500")
        for _ in range(7):
            now[0] += 11_000
            await house.deliveries.send_due()
        first = await house.store.delivery(first.delivery_id)
        assert first is not None
        assert (first.status, first.attempts, first.detail) == ("dead", 8, "answered 503")
        await deliver(house)
        assert receiver.texts() == ["first"] * 8 + ["second"]
        assert {one["webhook-id"] for one in receiver.got[:8]} == {first.delivery_id}
        again = await house.deliveries.again(ADMIN, first.delivery_id)
        assert (again.status, again.attempts) == ("pending", 0)
        await deliver(house)
        assert receiver.texts()[-1] == "first"
        with pytest.raises(HostError):
            await house.deliveries.again(ADMIN, second.delivery_id)
        with pytest.raises(HostError):
            await house.deliveries.again(Principal("other", "root", "admin"), first.delivery_id)


async def test_what_another_host_tried_meanwhile_waits_for_its_time_and_its_attempt_counts() -> None:
    now, store = [1000.0], QuickStore()
    here, there = Receiver(answers=[Posted(500)]), Receiver(answers=[Posted(503)])
    async with a_house(here, store, clock=lambda: now[0]) as one, a_house(there, store, clock=lambda: now[0]) as two:
        await come(one, an_event())
        await answer(one, "hello")
        look = store.due_deliveries

        async def tried_here_after_the_look(now: float, *, limit: int = 100) -> Any:
            found = await look(now, limit=limit)
            store.due_deliveries = look
            await one.deliveries.send_due()
            return found

        store.due_deliveries = tried_here_after_the_look
        assert await two.deliveries.send_due() == 0
        assert (here.texts(), there.texts()) == (["hello"], [])
        [row] = await store.deliveries("default")
        assert (row.attempts, row.due_at) == (1, 1005.0)
        now[0] = 1006.0
        await two.deliveries.send_due()
        [row] = await store.deliveries("default")
        assert (row.attempts, row.detail) == (2, "answered 503")


async def test_a_run_that_failed_is_said() -> None:
    receiver = Receiver()
    async with a_house(receiver) as house:
        accepted = await come(house, an_event())
        (await house.gateway.next()).say("run.failed", code="runner.broken", message="no luck")
        await house.story(accepted)
        await deliver(house)
        [told] = receiver.got
        assert (told["type"], told["code"], told["message"]) == ("run.failed", "runner.broken", "no luck")


async def test_a_run_that_was_stopped_is_said_after_what_it_had_said() -> None:
    receiver = Receiver()
    async with a_house(receiver) as house:
        accepted = await come(house, an_event())
        run = await house.gateway.next()
        run.message("first of all")
        await house.until(accepted.session_id, "AGENT_OUTPUT:MESSAGE")
        await house.control("CANCEL", thread=accepted.session_id, who=CHAT_USER)
        await house.story(accepted)
        await deliver(house)
        assert [(one["type"], one["run_id"]) for one in receiver.got] == [
            ("message.completed", accepted.run_id),
            ("run.cancelled", accepted.run_id),
        ]


async def test_what_was_not_delivered_when_the_host_ended_is_delivered_by_the_next() -> None:

    store, receiver = QuickStore(), Receiver()
    async with a_house(Receiver(), store) as house:
        await come(house, an_event())
        await answer(house, "late")
    async with a_house(receiver, store) as house:
        loop = asyncio.create_task(house.deliveries.run())
        async with asyncio.timeout(30):
            await receiver.news.wait()
        assert receiver.texts() == ["late"]
        loop.cancel()


async def test_a_streaming_platform_gets_pieces_and_then_the_whole() -> None:
    receiver = Receiver()
    async with a_house(receiver, streaming=True) as house:
        accepted = await come(house, an_event())
        run = await house.gateway.next()
        assert run.context["delivery"]["supports_streaming"] is True
        for piece in ("one ", "two "):
            receiver.news.clear()
            run.delta(piece)
            async with asyncio.timeout(30):
                await receiver.news.wait()
        assert "".join(one["text"] for one in receiver.got) == "one two "
        assert [one["sequence"] for one in receiver.got] == [1, 2]
        run.message("one two three")
        run.say("run.completed")
        await house.story(accepted)
        await deliver(house)
        assert receiver.got[-1]["text"] == "one two three"
        assert receiver.got[-1]["message_id"] == receiver.got[0]["message_id"]


async def test_an_approved_action_is_handed_to_the_platform_once() -> None:
    receiver = Receiver()
    gateway = ScriptedGateway(EDITOR)
    async with a_house(receiver, agents=EDITING_AGENTS, gateway=gateway, actions=["message.edit"]) as house:
        await come(house, an_event())
        run = await house.gateway.next()
        assert run.context["delivery"]["platform_capabilities"]["actions"] == ["message.edit"]
        asked = {"action": "message.edit", "target": {"message_id": "m9"}, "payload": {"text": "better"}}
        pending = await ask(house, run, "platform.request_action", **asked)
        assert pending["status"] == "pending"
        owner = Principal("default", "chat")
        decided = await house.approvals.decide(owner, pending["approval_id"], "granted")
        assert decided.outcome(house.approvals.clock()) == "done"
        [told] = receiver.got
        assert (told["type"], told["action"], told["target"]) == (
            "platform.action",
            "message.edit",
            {"message_id": "m9"},
        )
        assert told["reply_target"]["conversation_id"] == "room"
        run.say("run.completed")


async def test_what_the_platform_does_not_offer_is_recorded_and_not_done() -> None:
    receiver = Receiver()
    async with a_house(receiver, agents=EDITING_AGENTS, gateway=ScriptedGateway(EDITOR)) as house:
        await come(house, an_event())
        run = await house.gateway.next()
        asked = {"action": "message.edit", "target": {}, "payload": {}}
        assert (await ask(house, run, "platform.request_action", **asked))["status"] == "recorded"
        run.say("run.completed")
        assert receiver.got == []


async def test_over_real_http_answers_time_and_redirects_are_what_they_are() -> None:
    from paddock.platforms.webhooks import HttpWebhooks

    async def hook(request: Request) -> Response:
        await request.body()
        match request.url.path:
            case "/slow":
                await asyncio.sleep(5)
            case "/busy":
                return Response("later", 429, {"retry-after": "7"})
            case "/moved":
                return Response(status_code=307, headers={"location": "/ok"})
            case _:
                pass
        return Response("fine")

    webhooks = HttpWebhooks()
    async with serving(Starlette(routes=[Route("/{path}", hook, methods=["POST"])])) as url:
        assert await webhooks.post(f"{url}/ok", b"{}", {}, seconds=5) == Posted(200, "", b"fine")
        assert await webhooks.post(f"{url}/busy", b"{}", {}, seconds=5) == Posted(429, "", b"later", 7.0)
        assert (await webhooks.post(f"{url}/moved", b"{}", {}, seconds=5)).status == 307
        slow = await webhooks.post(f"{url}/slow", b"{}", {}, seconds=0.2)
        assert (slow.status, slow.problem) == (None, "no answer within 0.2 seconds")
    gone = await webhooks.post(f"{url}/ok", b"{}", {}, seconds=2)
    assert gone.status is None
    assert gone.problem
    await webhooks.close()
