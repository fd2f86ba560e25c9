"""Tools on behalf of a run: on record before the call, on record after it, never called twice."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from contracts.builders import Owner, a_decision, a_run, said
from contracts.conftest import PLUGS, open_plug
from grants import a_grant
from paddock.compose import rooms_of
from paddock.host.calls.settling import Settling
from paddock.host.calls.tools import ToolCalls
from paddock.host.runs.outcomes import Outcomes
from paddock.ports import Store
from paddock.rules.access.permissions import Grant
from paddock.rules.errors import ErrorCode, HostError
from paddock.settings import Settings
from paddock.tools.catalog import ToolCatalog
from paddock.tools.functions import FunctionTool, FunctionTools, signature_of
from paddock_sdk.protocol.artifacts import ArtifactRef
from paddock_sdk.protocol.host_calls import ToolsCallParams, ToolsGetDetailParams

pytestmark = pytest.mark.anyio

BOTH = frozenset({"detail", "call"})
TOOLS = ("add", "digits", "stuck", "flood", "look")


class Room:
    """The room over a real store, with tools that look at the record from inside the call."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.seen: list[str] = []
        self.begun = asyncio.Event()
        self.kept: list[object] = []
        functions = [self.tool(one) for one in (add, digits, flood, self.look(), self.stuck())]
        catalog = ToolCatalog([FunctionTools(functions, clock=time.time)])
        self.calls = ToolCalls(catalog, records=store, outcomes=Outcomes(store), clock=time.time, artifacts=self)

    def tool(self, function: Any) -> FunctionTool:
        return FunctionTool(function, signature_of(function))

    def look(self) -> Any:
        async def look() -> list[str]:
            """Read the record."""
            return [f"{row.tool_name} {row.status}" for row in await self.store.tool_calls("run-1")]

        return look

    def stuck(self) -> Any:
        async def stuck() -> None:
            """Never end."""
            self.begun.set()
            await asyncio.Event().wait()

        return stuck

    async def keep_large(self, grant: Grant, result: object, *, name: str) -> tuple[Any, ArtifactRef | None]:
        if len(str(result)) < 65536:
            return result, None
        self.kept.append(result)
        return str(result)[:10], ArtifactRef(artifact_id="art-1", name=name)

    async def call(self, name: str, grant: Grant | None = None, **parameters: Any) -> dict[str, Any]:
        grant = grant or a_grant(tools=dict.fromkeys(TOOLS, BOTH))
        asked = ToolsCallParams(run_id="run-1", tool_name=name, parameters=parameters)
        answer = await self.calls.call(grant, asked, a_decision(reason=name))
        return answer.model_dump(exclude_none=True)


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def digits() -> int:
    """Give a number that nobody reads."""
    return 10**4299 * 10**2000


def flood(size: int) -> str:
    """Give much."""
    return "x" * size


@pytest.fixture(params=PLUGS)
async def room(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Room]:
    with open_plug(request.param, tmp_path) as store:
        await store.open()
        yield Room(store)
        await store.close()


async def test_a_call_is_on_record_before_it_is_made_and_its_outcome_after(room: Room) -> None:
    assert await room.call("look") == {"result": ["look started"]}
    assert await room.call("add", a=2, b=3) == {"result": 5}
    looked, added = await room.store.tool_calls("run-1")
    assert (looked.status, added.status) == ("completed", "completed")
    assert (added.parameters, added.result, added.user_id) == (b'{"a":2,"b":3}', b"5", "ann")
    assert [row.reason for row in await room.store.audit(run_id="run-1")] == ["add", "look"]


async def test_wrong_arguments_are_an_error_the_model_can_read_and_on_record(room: Room) -> None:
    answer = await room.call("add", a="two")
    assert answer["is_error"]
    assert "b: Field required" in answer["result"]["error"]
    (row,) = await room.store.tool_calls("run-1")
    assert row.status == "failed"


async def test_a_result_that_cannot_be_read_is_said_in_words_and_the_call_was_made(room: Room) -> None:
    answer = await room.call("digits")
    assert answer["is_error"]
    assert "a number of too many digits" in answer["result"]["error"]
    (row,) = await room.store.tool_calls("run-1")
    assert (row.status, row.result) == ("completed", json.dumps(answer["result"], separators=(",", ":")).encode())


async def test_nothing_is_called_for_a_run_that_was_lost_while_the_call_was_being_recorded(room: Room) -> None:
    stood_still = asyncio.Event()
    write = room.store.write

    async def write_and_stand_still(rows: Any) -> None:
        await write(rows)
        stood_still.set()

    room.store.write = write_and_stand_still
    room.calls.goes_on = lambda run_id: run_id == "run-1" and not stood_still.is_set()
    with pytest.raises(HostError) as refused:
        await room.call("stuck")
    assert refused.value.code is ErrorCode.UNAUTHORIZED
    assert not room.begun.is_set()
    (row,) = await room.store.tool_calls("run-1")
    assert (row.status, b"nothing was called" in row.result) == ("failed", True)


async def test_a_call_that_is_given_up_has_an_unknown_outcome(room: Room) -> None:
    calling = asyncio.create_task(room.call("stuck"))
    await asyncio.wait_for(room.begun.wait(), 30)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    (row,) = await room.store.tool_calls("run-1")
    assert row.status == "unknown"


async def test_a_call_without_an_outcome_is_unknown_after_a_restart_and_not_made_again(room: Room) -> None:
    owner = await Owner.of(room.store)
    await owner.write(said("hi"), rows=[a_run("run-1")])
    calling = asyncio.create_task(room.call("stuck"))
    await asyncio.wait_for(room.begun.wait(), 30)
    assert await Settling(room.store, time.time).settle() == 0, "its run is live"
    await owner.write(rows=[a_run("run-1", status="failed")])
    room.begun.clear()
    again = Settling(room.store, time.time)
    assert await again.settle() == 1
    assert not room.begun.is_set()
    assert await again.settle() == 0
    (row,) = await room.store.tool_calls("run-1")
    assert row.status == "unknown"
    assert "not made again" in (await room.store.audit(run_id="run-1"))[0].reason
    calling.cancel()
    await asyncio.gather(calling, return_exceptions=True)


async def test_a_large_result_becomes_an_artifact_and_a_very_large_one_is_refused_in_words(room: Room) -> None:
    answer = await room.call("flood", size=100_000)
    assert answer["artifact"]["artifact_id"] == "art-1"
    assert answer["result"] == "x" * 10
    answer = await room.call("flood", size=200_000_000)
    assert answer["is_error"]
    assert "ask it for less" in answer["result"]["error"]
    first, second = await room.store.tool_calls("run-1")
    assert (first.artifact_id, json.loads(first.result)) == ("art-1", "x" * 10)
    assert second.status == "completed"
    assert len(room.kept) == 1


async def test_only_granted_tools_can_be_described_and_called(room: Room) -> None:
    grant = a_grant(tools={"add": frozenset({"detail"}), "gone": BOTH})
    detail = await room.calls.get_detail(grant, ToolsGetDetailParams(run_id="run-1", tool_name="add"))
    assert detail.parameters["required"] == ["a", "b"]
    for name in ("add", "flood", "nothing"):
        with pytest.raises(HostError) as refused:
            await room.call(name, grant)
        assert refused.value.code is ErrorCode.UNAUTHORIZED
    with pytest.raises(HostError) as missing:
        await room.call("gone", grant)
    assert missing.value.code is ErrorCode.NOT_FOUND
    assert await room.store.tool_calls("run-1") == []


async def test_many_calls_side_by_side_each_get_their_own_answer(room: Room) -> None:
    answers = await asyncio.gather(*(room.call("add", a=number, b=1) for number in range(50)))
    assert [answer["result"] for answer in answers] == [number + 1 for number in range(50)]
    assert len(await room.store.tool_calls("run-1")) == 50


def test_a_host_calls_nothing_for_a_run_it_does_not_have(tmp_path: Path) -> None:
    assert not rooms_of(Settings(data=tmp_path)).granted.tool_calls.goes_on("a run of nobody here")
