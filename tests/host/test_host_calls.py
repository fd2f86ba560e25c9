"""The gate: each situation has one right answer, one audit row, and no effect when it is a refusal."""

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from host.scripted import ANN, AtRunner, ScriptedGateway, SmallHouse, small_house
from paddock.compose.machinery import work_of_calls
from paddock.compose.rooms import rooms_of
from paddock.ports import Caller
from paddock.rules.errors import ErrorCode, HostError
from paddock.settings import Settings
from paddock_sdk.protocol.host_calls import HOST_CALLS

pytestmark = pytest.mark.anyio

HERE = Caller("test/one", "c1")
ELSEWHERE = Caller("test/one", "c2")


async def a_run(house: SmallHouse) -> AtRunner:
    await house.say(thread=str(uuid.uuid4()))
    return await house.gateway.next()


async def refused(
    house: SmallHouse, params: Mapping[str, Any], *, method: str = "state.set", caller: Caller = HERE
) -> HostError:
    before = len(await house.store.audit(limit=100))
    with pytest.raises(HostError) as error:
        await house.calls(caller, method, params, 100)
    rows = await house.store.audit(limit=100)
    assert len(rows) == before + 1, "a refusal leaves exactly one audit row"
    assert rows[0].result == error.value.code
    return error.value


def setting(run_id: str, **more: Any) -> dict[str, Any]:
    return {"run_id": run_id, "scope": "conversation", "key": "k", "value": 1} | more


async def test_a_host_does_the_work_of_every_host_call(tmp_path: Path) -> None:
    rooms = rooms_of(Settings(data=tmp_path))
    assert set(work_of_calls(rooms.ground, rooms.granted)) == set(HOST_CALLS)


async def test_a_granted_call_is_answered_and_audited_once() -> None:
    async with small_house() as house:
        run = await a_run(house)
        written = await house.calls(HERE, "state.set", setting(run.run_id, value={"a": [1]}), 100)
        answer = await house.calls(HERE, "state.get", {"run_id": run.run_id, "scope": "conversation", "key": "k"}, 100)
        assert answer == {"value": {"a": [1]}, "found": True, "version": written["version"]}
        assert await house.calls(
            HERE, "state.delete", {"run_id": run.run_id, "scope": "conversation", "key": "k"}, 100
        ) == {"deleted": True}
        run.say("run.completed")
        await house.story(await house.view.find(ANN, run.run_id))
        actions = [row.action for row in await house.store.audit(run_id=run.run_id) if row.result == "allowed"]
        assert sorted(actions) == ["run.start", "state.delete", "state.get", "state.set"]


@pytest.mark.parametrize("params", [{}, {"run_id": 7}, {"run_id": "r", "scope": "conversation"}])
async def test_a_call_without_a_run_or_with_bad_types_is_an_invalid_argument(params: dict[str, Any]) -> None:
    async with small_house() as house:
        assert (await refused(house, params)).code is ErrorCode.INVALID_ARGUMENT


async def test_unknown_ended_and_foreign_runs_are_refused_with_one_and_the_same_sentence() -> None:
    async with small_house() as house:
        run = await a_run(house)
        foreign = await refused(house, setting(run.run_id), caller=ELSEWHERE)
        unknown = await refused(house, setting("no-such-run"))
        run.say("run.completed")
        await house.story(await house.view.find(ANN, run.run_id))
        ended = await refused(house, setting(run.run_id))
        assert {error.code for error in (foreign, unknown, ended)} == {ErrorCode.UNAUTHORIZED}
        assert len({error.message for error in (foreign, unknown, ended)}) == 1


async def test_a_run_past_its_deadline_gets_nothing_more() -> None:
    now = [1000.0]
    async with small_house(clock=lambda: now[0]) as house:
        run = await a_run(house)
        now[0] += 61
        assert (await refused(house, setting(run.run_id))).code is ErrorCode.DEADLINE_EXCEEDED


@pytest.mark.parametrize("method", sorted(HOST_CALLS))
async def test_what_the_manifest_does_not_ask_for_is_not_granted(method: str) -> None:
    async with small_house(gateway=ScriptedGateway({"files": ["config"]})) as house:
        run = await a_run(house)
        error = await refused(house, _valid(method, run.run_id), method=method)
        assert error.code is ErrorCode.UNAUTHORIZED


async def test_another_conversation_and_another_scope_are_refused() -> None:
    async with small_house() as house:
        run = await a_run(house)
        other = {"run_id": run.run_id, "conversation_id": str(uuid.uuid4())}
        assert (await refused(house, other, method="history.page")).code is ErrorCode.UNAUTHORIZED
        for scope in ("subject", "workspace", "binding", ""):
            assert (await refused(house, setting(run.run_id, scope=scope))).code is ErrorCode.UNAUTHORIZED


async def test_an_oversize_value_is_refused_whole_and_names_the_cap() -> None:
    async with small_house() as house:
        run = await a_run(house)
        fits = "x" * (262_144 - 2)
        await house.calls(HERE, "state.set", setting(run.run_id, value=fits), 100)
        error = await refused(house, setting(run.run_id, value=fits + "x"))
        assert error.code is ErrorCode.PAYLOAD_TOO_LARGE
        assert "262144" in error.message
        got = await house.calls(HERE, "state.get", {"run_id": run.run_id, "scope": "conversation", "key": "k"}, 100)
        assert got["value"] == fits


async def test_a_scope_has_a_total_cap() -> None:
    async with small_house() as house:
        run = await a_run(house)
        big = "x" * 262_000
        for index in range(16):
            await house.calls(HERE, "state.set", setting(run.run_id, key=f"k{index}", value=big), 100)
        assert (
            await refused(house, setting(run.run_id, key="one-more", value=big))
        ).code is ErrorCode.PAYLOAD_TOO_LARGE


async def test_calls_over_the_rate_are_refused_with_the_time_to_wait() -> None:
    now = [1000.0]
    async with small_house(clock=lambda: now[0]) as house:
        run = await a_run(house)
        for _ in range(100):
            await house.calls(HERE, "state.get", {"run_id": run.run_id, "scope": "conversation", "key": "k"}, 100)
        error = await refused(house, setting(run.run_id))
        assert (error.code, error.retryable) == (ErrorCode.RATE_LIMITED, True)
        now[0] += error.details["retry_after"] + 0.001
        await house.calls(HERE, "state.set", setting(run.run_id), 100)


async def test_a_page_of_history_is_the_conversation_before_this_message() -> None:
    thread = str(uuid.uuid4())
    async with small_house() as house:
        for number in range(3):
            accepted = await house.say(f"q{number}", thread=thread)
            run = await house.gateway.next()
            run.message(f"a{number}")
            run.say("run.completed")
            await house.story(accepted)
        await house.say("now", thread=thread)
        run = await house.gateway.next()
        latest = run.context["context"]["latest_cursor"]
        page = await house.calls(HERE, "history.page", {"run_id": run.run_id, "before_cursor": latest, "limit": 4}, 100)
        assert [item["content"] for item in page["items"]] == ["a2", "q2", "a1", "q1"]
        assert page["has_more"]
        rest = await house.calls(
            HERE, "history.page", {"run_id": run.run_id, "before_cursor": page["next_cursor"]}, 100
        )
        assert [item["content"] for item in rest["items"]] == ["a0", "q0"]
        assert not rest["has_more"]
        onward = {"run_id": run.run_id, "direction": "forward", "after_cursor": rest["items"][-1]["cursor"], "limit": 2}
        assert [item["content"] for item in (await house.calls(HERE, "history.page", onward, 100))["items"]] == [
            "a0",
            "q1",
        ]
        bad = await refused(house, {"run_id": run.run_id, "before_cursor": "zzz"}, method="history.page")
        assert bad.code is ErrorCode.NOT_FOUND


async def test_page_limits_are_capped_and_never_negative() -> None:
    thread = str(uuid.uuid4())
    async with small_house() as house:
        await house.say("q", thread=thread)
        run = await house.gateway.next()
        for limit in (-2, 0, 10_000):
            page = await house.calls(HERE, "history.page", {"run_id": run.run_id, "limit": limit}, 100)
            assert len(page["items"]) == 1


async def test_state_of_one_agent_workspace_or_thread_is_nobody_elses() -> None:
    async with small_house() as house:
        first, second = await a_run(house), await a_run(house)
        await house.calls(HERE, "state.set", setting(first.run_id, value="mine"), 100)
        got = await house.calls(HERE, "state.get", {"run_id": second.run_id, "scope": "conversation", "key": "k"}, 100)
        assert got == {"found": False}
        await house.calls(HERE, "state.set", setting(first.run_id, scope="actor", value="ann's"), 100)
        shared = await house.calls(HERE, "state.get", {"run_id": second.run_id, "scope": "actor", "key": "k"}, 100)
        assert shared["value"] == "ann's"
        await house.say(thread=str(uuid.uuid4()), agent_id="two")
        other_agent = await house.gateway.next()
        unseen = await house.calls(HERE, "state.get", {"run_id": other_agent.run_id, "scope": "actor", "key": "k"}, 100)
        assert unseen == {"found": False}


def _valid(method: str, run_id: str) -> dict[str, Any]:
    """Parameters of the right shape for any call, made from its own schema."""
    schema = HOST_CALLS[method].params.model_json_schema()
    samples = {"string": "x", "integer": 1, "array": [], "object": {}, "number": 1.0, "boolean": True}
    needed = {
        name: samples.get(schema["properties"][name].get("type", "object"), {}) for name in schema.get("required", [])
    }
    return needed | {"run_id": run_id}
