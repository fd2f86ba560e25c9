"""Input in the middle of a run: offered, taken in once, on the audit trail; else it waits its turn."""

import uuid
from typing import Any

import pytest

from host.scripted import AtRunner, ScriptedGateway, SmallHouse, small_house
from paddock.host.calls import steering
from paddock.ports import Caller
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.session.messages import SteeringTaken

pytestmark = pytest.mark.anyio

AGENTS = """
default_agent: one
agents:
  one: {runner: "plugin:test/one/default", while_busy: steer}
  two: {runner: "plugin:test/two/default"}
"""


def a_thread() -> str:
    return str(uuid.uuid4())


async def pull(house: SmallHouse, run: AtRunner) -> list[str]:
    params = {"run_id": run.run_id}
    answer = await house.calls(Caller("test/one", run.connection_id), "steering.pull", params, 100)
    return [item["input"]["text"] for item in answer["items"]]


async def decisions(house: SmallHouse, run_id: str) -> list[str]:
    rows = await house.store.audit(run_id=run_id)
    return [row.action for row in reversed(rows) if row.action.startswith("steering")]


async def test_input_is_offered_to_the_running_turn_and_taken_in_once() -> None:
    thread = a_thread()
    async with small_house(agents=AGENTS, gateway=ScriptedGateway(steering=True)) as house:
        await house.say("write a poem", thread=thread)
        run = await house.gateway.next()
        steered = await house.say("in French", thread=thread)
        assert await run.offered.get() == 1
        assert (await house.run(steered)).status == "queued"
        assert await pull(house, run) == ["in French"]
        assert await pull(house, run) == []
        row = await house.run(steered)
        assert (row.status, row.code, row.message) == ("completed", "steered_into", run.run_id)
        assert await decisions(house, steered.run_id) == ["steering.queued", "steering.injected"]
        run.say("run.completed")
        await house.until(thread, "AGENT_OUTPUT:FINAL")
        assert house.gateway.started.empty()


async def test_what_was_not_taken_in_gets_a_turn_of_its_own() -> None:
    thread = a_thread()
    async with small_house(agents=AGENTS, gateway=ScriptedGateway(steering=True)) as house:
        await house.say("one", thread=thread)
        run = await house.gateway.next()
        late = await house.say("two", thread=thread)
        run.say("run.completed")
        own = await house.gateway.next()
        assert (own.run_id, own.context["input"]["text"]) == (late.run_id, "two")
        assert await decisions(house, late.run_id) == ["steering.queued", "steering.dropped"]


async def test_a_runner_that_does_not_declare_it_has_a_queue() -> None:
    thread = a_thread()
    async with small_house(agents=AGENTS) as house:
        await house.say("one", thread=thread)
        run = await house.gateway.next()
        await house.say("two", thread=thread)
        queued = await house.until(thread, "EVENT:TURN_QUEUED")
        assert queued.read_payload()["while_busy"] == "queue"
        assert run.offered.empty()


async def test_input_for_another_agent_is_not_offered() -> None:
    thread = a_thread()
    async with small_house(agents=AGENTS, gateway=ScriptedGateway(steering=True)) as house:
        await house.say("one", thread=thread)
        run = await house.gateway.next()
        await house.say("@two and you?", thread=thread)
        assert await pull(house, run) == []


async def test_more_input_than_fits_an_answer_is_taken_in_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steering, "PULL_BYTES", 5000)
    thread = a_thread()
    async with small_house(agents=AGENTS, gateway=ScriptedGateway(steering=True)) as house:
        await house.say("write a poem", thread=thread)
        run = await house.gateway.next()
        for number in range(4):
            await house.say(str(number) * 2000, thread=thread)
        pulled = [[text[0] for text in await pull(house, run)] for _ in range(5)]
        assert [text for answer in pulled for text in answer] == ["0", "1", "2", "3"]
        assert max(len(answer) for answer in pulled) == 2 or pulled[0] == ["0"]


async def test_input_that_was_taken_in_is_handed_over_though_the_next_cannot_be_taken_in() -> None:
    thread = a_thread()
    async with small_house(agents=AGENTS, gateway=ScriptedGateway(steering=True)) as house:
        await house.say("write a poem", thread=thread)
        run = await house.gateway.next()
        first, second = [await house.say(text, thread=thread) for text in ("in French", "and short")]
        session = await house.sessions.open(thread)
        record = session.record

        async def refuse_the_second(message: Any, **more: Any) -> Any:
            if isinstance(message, SteeringTaken) and message.turn_id == second.run_id:
                raise HostError(ErrorCode.UNAVAILABLE, "the store cannot write now", retryable=True)
            return await record(message, **more)

        session.record = refuse_the_second  # type: ignore[method-assign]
        assert await pull(house, run) == ["in French"]
        session.record = record  # type: ignore[method-assign]
        assert await pull(house, run) == ["and short"]
        assert (await house.run(first)).code == "steered_into"
