"""A platform action needs three consents; it is decided once, done once, and otherwise only recorded."""

import asyncio
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from host.platforms import EDITING_AGENTS, EDITOR, MemoryPlatform
from host.scripted import ANN, BOB, AtRunner, ScriptedGateway, SmallHouse, small_house
from paddock.host.people import approvals as room
from paddock.host.people.approvals import Approvals
from paddock.host.runs.outcomes import Outcomes
from paddock.ports import Caller
from paddock.ports.platforms import Performed
from paddock.rules.access.approvals import APPROVAL_SECONDS, DECIDED, MAX_PER_RUN
from paddock.rules.access.limits import Rates
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.calls import ApprovalStepRow
from stores import QuickStore

pytestmark = pytest.mark.anyio

HERE = Caller("test/one", "c1")
EDIT = {"action": "message.edit", "target": {"message_id": "m-1"}, "payload": {"text": "better"}}


@asynccontextmanager
async def editing(
    platform: MemoryPlatform, *, agent: str = "one", store: Any = None, **house_of: Any
) -> AsyncGenerator[tuple[SmallHouse, AtRunner]]:
    gateway = ScriptedGateway(EDITOR)
    async with small_house(store, gateway=gateway, agents=EDITING_AGENTS, platform=platform, **house_of) as house:
        await house.say(thread=str(uuid.uuid4()), agent_id=agent)
        yield house, await gateway.next()


async def ask(house: SmallHouse, run: AtRunner, **changes: Any) -> dict[str, Any]:
    params = {"run_id": run.run_id, **EDIT, **changes}
    return dict(await house.calls(HERE, "platform.request_action", params, 100))


async def audited(house: SmallHouse, run: AtRunner) -> list[tuple[str, str]]:
    rows = await house.store.audit(run_id=run.run_id)
    return [(row.action, row.result) for row in reversed(rows) if row.action != "run.start"]


async def test_an_action_waits_for_its_user_and_is_done_once_when_granted() -> None:
    platform = MemoryPlatform()
    async with editing(platform) as (house, run):
        first = await ask(house, run)
        assert first["status"] == "pending"
        assert await ask(house, run) == first
        assert platform.done == []
        approval = await house.approvals.decide(ANN, first["approval_id"], "granted")
        assert approval.outcome(0) == "done"
        again = await house.approvals.decide(ANN, first["approval_id"], "granted")
        assert again == approval
        assert await ask(house, run) == first | {"status": "done"}
        done = platform.done[0]
        assert (len(platform.done), done.action, done.target, done.payload) == (1, *EDIT.values())
        assert await audited(house, run) == [
            ("platform.request_action", "allowed"),
            ("platform.request_action", "allowed"),
            ("approvals.decide", "granted"),
            ("platform.perform", "done"),
            ("platform.request_action", "allowed"),
        ]


async def test_a_denied_action_is_never_done() -> None:
    platform = MemoryPlatform()
    async with editing(platform) as (house, run):
        approval_id = (await ask(house, run))["approval_id"]
        await house.approvals.decide(ANN, approval_id, "denied")
        with pytest.raises(HostError) as refused:
            await house.approvals.decide(ANN, approval_id, "granted")
        assert refused.value.code is ErrorCode.CONFLICT
        assert (await ask(house, run))["status"] == "denied"
        assert platform.done == []


@pytest.mark.parametrize(
    ("agent", "action"),
    [("one", "message.recall"), ("one", "reaction.add"), ("two", "message.edit"), ("one", "session.handover")],
    ids=["the agent did not allow it", "the manifest did not ask", "the agent said nothing", "a handover is none"],
)
async def test_without_the_consent_of_manifest_and_agent_nobody_is_even_asked(agent: str, action: str) -> None:
    platform = MemoryPlatform()
    async with editing(platform, agent=agent) as (house, run):
        with pytest.raises(HostError) as refused:
            await ask(house, run, action=action)
        assert refused.value.code is ErrorCode.UNAUTHORIZED
        assert await audited(house, run) == [("platform.request_action", "unauthorized")]
        assert await house.approvals.list(ANN) == []


async def test_an_action_no_platform_offers_is_recorded_and_says_so() -> None:
    platform = MemoryPlatform(offered=())
    async with editing(platform) as (house, run):
        assert await ask(house, run) == {"status": "recorded"}
        rows = await house.store.audit(run_id=run.run_id)
        assert (rows[0].result, "no platform" in rows[0].reason) == ("recorded", True)
        assert await house.approvals.list(ANN) == []


async def test_other_targets_payloads_and_runs_are_other_approvals() -> None:
    async with editing(MemoryPlatform()) as (house, run):
        ids = {(await ask(house, run, **change))["approval_id"] for change in ({}, {"target": {}}, {"payload": {}})}
        await house.say(thread=str(uuid.uuid4()))
        ids.add((await ask(house, await house.gateway.next()))["approval_id"])
        assert len(ids) == 4


async def test_an_approval_expires_and_then_cannot_be_granted() -> None:
    now = [1000.0]
    platform = MemoryPlatform()
    async with editing(platform, clock=lambda: now[0]) as (house, run):
        approval_id = (await ask(house, run))["approval_id"]
        now[0] += APPROVAL_SECONDS
        assert (await house.approvals.get(ANN, approval_id)).status(now[0]) == "pending"
        now[0] += 0.001
        with pytest.raises(HostError) as refused:
            await house.approvals.decide(ANN, approval_id, "granted")
        assert (refused.value.code, "expired" in refused.value.message) == (ErrorCode.CONFLICT, True)
        assert platform.done == []


async def test_somebody_elses_approval_looks_like_none() -> None:
    platform = MemoryPlatform()
    async with editing(platform) as (house, run):
        approval_id = (await ask(house, run))["approval_id"]
        for wanted in (approval_id, "ap_invented"):
            with pytest.raises(HostError) as refused:
                await house.approvals.decide(BOB, wanted, "granted")
            assert (refused.value.code, refused.value.message) == (ErrorCode.NOT_FOUND, "there is no such approval")
        assert platform.done == []


async def test_of_two_who_grant_at_once_one_has_done_it() -> None:
    platform = MemoryPlatform()
    async with editing(platform) as (house, run):
        approval_id = (await ask(house, run))["approval_id"]
        answers = await asyncio.gather(
            *(house.approvals.decide(ANN, approval_id, "granted") for _ in range(5)), return_exceptions=True
        )
        assert len(platform.done) == 1
        assert {type(answer) for answer in answers} <= {type(answers[0]), HostError}


async def test_of_two_who_decide_at_once_only_the_one_who_did_is_on_the_audit_trail() -> None:
    store, platform = QuickStore(), MemoryPlatform()
    async with editing(platform, store=store) as (house, run):
        approval_id = (await ask(house, run))["approval_id"]
        look, both = store.approval, asyncio.Barrier(2)

        async def looked_at_together(approval_id: str) -> Any:
            found = await look(approval_id)
            if found is not None and found.decided is None:
                await both.wait()
            return found

        store.approval = looked_at_together
        decisions = [house.approvals.decide(ANN, approval_id, decision) for decision in ("denied", "granted")]
        first, second = await asyncio.gather(*decisions, return_exceptions=True)
        [lost] = [one for one in (first, second) if isinstance(one, HostError)]
        assert lost.code is ErrorCode.CONFLICT
        decided = [result for action, result in await audited(house, run) if action == "approvals.decide"]
        assert decided == [(await house.approvals.get(ANN, approval_id)).status(0)]


async def test_what_was_called_unknown_meanwhile_stays_so_and_is_said_once() -> None:
    platform = MemoryPlatform()
    async with editing(platform) as (house, run):
        approval_id = (await ask(house, run))["approval_id"]
        platform.may_go_on.clear()
        granting = asyncio.ensure_future(house.approvals.decide(ANN, approval_id, "granted"))
        async with asyncio.timeout(30):
            while not platform.done:
                await asyncio.sleep(0)
        other = Approvals(
            house.store, platform, outcomes=Outcomes(house.store), clock=lambda: 0.0, spawn=asyncio.ensure_future
        )
        assert await other.recover() == 1
        platform.may_go_on.set()
        assert (await granting).outcome(0) == "unknown"
        assert [one for one in await audited(house, run) if one[0] == "platform.perform"] == [
            ("platform.perform", "unknown")
        ]


async def test_a_caller_that_goes_away_takes_nothing_back() -> None:
    platform = MemoryPlatform()
    async with editing(platform) as (house, run):
        approval_id = (await ask(house, run))["approval_id"]
        platform.may_go_on.clear()
        granting = asyncio.ensure_future(house.approvals.decide(ANN, approval_id, "granted"))
        async with asyncio.timeout(30):
            while not platform.done:
                await asyncio.sleep(0)
        granting.cancel()
        platform.may_go_on.set()
        async with asyncio.timeout(30):
            while (await house.approvals.get(ANN, approval_id)).done is None:
                await asyncio.sleep(0)
        assert (await house.approvals.get(ANN, approval_id)).outcome(0) == "done"


@pytest.mark.parametrize(
    ("answer", "problem", "outcome"),
    [(Performed(ok=False, detail="message is gone"), None, "failed"), (Performed(ok=True), OSError("x"), "failed")],
)
async def test_what_a_platform_could_not_do_is_on_record(
    answer: Performed, problem: Exception | None, outcome: str
) -> None:
    platform = MemoryPlatform()
    platform.answer, platform.problem = answer, problem
    async with editing(platform) as (house, run):
        approval_id = (await ask(house, run))["approval_id"]
        approval = await house.approvals.decide(ANN, approval_id, "granted")
        assert approval.outcome(0) == outcome
        assert approval.done is not None
        assert approval.done.detail
        assert len(platform.done) == 1


async def test_a_platform_that_never_answers_leaves_an_unknown_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "PERFORM_SECONDS", 0.01)
    platform = MemoryPlatform()
    platform.may_go_on.clear()
    async with editing(platform) as (house, run):
        approval_id = (await ask(house, run))["approval_id"]
        assert (await house.approvals.decide(ANN, approval_id, "granted")).outcome(0) == "unknown"


async def test_what_was_being_done_when_the_host_ended_is_unknown_and_not_done_again(store: QuickStore) -> None:
    platform = MemoryPlatform()
    async with editing(platform, store=store) as (house, run):
        approval_id = (await ask(house, run))["approval_id"]
        platform.may_go_on.clear()
        granting = asyncio.ensure_future(house.approvals.decide(ANN, approval_id, "granted"))
        async with asyncio.timeout(30):
            while not platform.done:
                await asyncio.sleep(0)
        granting.cancel()
    later = Approvals(store, platform, outcomes=Outcomes(store), clock=lambda: 0.0, spawn=asyncio.ensure_future)
    assert (await later.recover(), len(platform.done)) == (0, 1)  # the host that was stopped said so itself
    assert (await later.get(ANN, approval_id)).outcome(0) == "unknown"


async def test_what_was_being_done_when_the_host_died_is_unknown_and_not_done_again(store: QuickStore) -> None:
    platform = MemoryPlatform()
    async with editing(platform, store=store) as (house, run):
        approval_id = (await ask(house, run))["approval_id"]
        asked = (await house.approvals.get(ANN, approval_id)).asked
        await store.write([ApprovalStepRow(asked.approval_id, DECIDED, "granted", "user:ann", 0.0, "token")])
    later = Approvals(store, platform, outcomes=Outcomes(store), clock=lambda: 0.0, spawn=asyncio.ensure_future)
    assert await later.recover() == 1
    assert (await later.get(ANN, approval_id)).outcome(0) == "unknown"
    assert (await later.recover(), platform.done) == (0, [])


async def test_a_run_may_not_ask_for_ever_by_calls_or_by_results() -> None:
    async with editing(MemoryPlatform(), rates=Rates.of_a_run(0)) as (house, run):
        for number in range(MAX_PER_RUN):
            await ask(house, run, target={"n": number})
        with pytest.raises(HostError) as refused:
            await ask(house, run, target={"n": "more"})
        assert refused.value.code is ErrorCode.RATE_LIMITED
        for number in range(MAX_PER_RUN + 1):
            run.say("action.requested", **EDIT | {"target": {"by_result": number}})
        assert await ask_by_result(house, run, 0) == ["message.edit"] * MAX_PER_RUN


async def ask_by_result(house: SmallHouse, run: AtRunner, count: int) -> list[str]:
    """Ask by results, end the run, and see what became of it."""
    before = {one.asked.approval_id for one in await house.approvals.list(ANN, limit=1000)}  # those on record by now
    for _ in range(count):
        run.say("action.requested", **EDIT)
    run.say("run.completed")
    await house.story(await house.view.find(ANN, run.run_id))
    return [
        one.asked.action for one in await house.approvals.list(ANN, limit=1000) if one.asked.approval_id not in before
    ]


async def test_an_action_requested_as_a_result_waits_for_its_user_also_after_the_run() -> None:
    platform = MemoryPlatform()
    async with editing(platform) as (house, run):
        assert await ask_by_result(house, run, 2) == ["message.edit"]
        (approval,) = await house.approvals.list(ANN)
        await house.approvals.decide(ANN, approval.asked.approval_id, "granted")
        assert len(platform.done) == 1
        assert ("action.requested", "allowed") in await audited(house, run)


@pytest.mark.parametrize(
    ("agent", "offered", "result"),
    [("two", ["message.edit"], "unauthorized"), ("one", [], "recorded")],
)
async def test_an_action_requested_without_consent_or_platform_is_only_recorded(
    agent: str, offered: list[str], result: str
) -> None:
    platform = MemoryPlatform(offered)
    async with editing(platform, agent=agent) as (house, run):
        assert await ask_by_result(house, run, 1) == []
        assert ("action.requested", result) in await audited(house, run)
        assert platform.done == []


async def test_a_handover_is_the_sessions_business_and_no_approval() -> None:
    async with editing(MemoryPlatform(["session.handover"])) as (house, run):
        run.say("action.requested", action="session.handover", payload={"target_agent_id": "two"})
        run.say("run.completed")
        await house.story(await house.view.find(ANN, run.run_id))
        assert await house.approvals.list(ANN) == []


@pytest.mark.parametrize("decided", [True, False])
async def test_a_run_that_ends_asks_no_more_for_what_was_decided_at_another_host(*, decided: bool) -> None:
    store, platform = QuickStore(), MemoryPlatform()
    async with editing(platform, store=store) as (house, run):
        approval_id = (await ask(house, run))["approval_id"]
        there = Approvals(
            store, platform, outcomes=Outcomes(store), clock=house.approvals.clock, spawn=asyncio.ensure_future
        )
        if decided:
            assert (await there.decide(ANN, approval_id, "granted")).outcome(0) == "done"
        run.say("run.completed")
        thread = run.context["conversation"]["conversation_id"]
        end = await house.until(thread, "AGENT_OUTPUT:FINAL")
        asked = [one["id"] for one in end.read_payload()["data"].get("approvals", [])]
        assert asked == ([] if decided else [approval_id])
        assert len(platform.done) == decided
