"""Effects whose outcome the store could not take: told as unknown and never as worth a second try, recorded later."""

import asyncio
import uuid
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import paddock.host.runs.outcomes as room
from host.platforms import EDITING_AGENTS, EDITOR, MemoryPlatform
from host.scripted import ANN, AtRunner, ScriptedGateway, SmallHouse, small_house
from paddock.host.runs.outcomes import Outcomes
from paddock.ports import Caller
from paddock.ports.tools import ToolAnswer, ToolInfo, ToolUse
from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError, UnansweredWriteError
from paddock.rules.rows.automation import CalendarEventRow
from paddock.rules.rows.calls import ApprovalStepRow, ToolCallRow
from stores import QuickStore, opened

pytestmark = [pytest.mark.anyio, pytest.mark.spec("gate/outcomes")]
HERE = Caller("test/one", "c1")
PERMISSIONS = {"tools": ["detail", "call"], "storage": ["plugin"], "artifacts": ["create"], **EDITOR}
AGENTS = EDITING_AGENTS.replace("platform_actions", "tools: all, platform_actions")


class Store(QuickStore):
    """A store that goes away, or takes a write and does not say so."""

    def __init__(self) -> None:
        super().__init__()
        self.away = False
        self.refused = asyncio.Event()
        """Set as soon as something was to be written while it is away."""
        self.silent: Callable[[Sequence[Any]], bool] = lambda _rows: False

    def healthy(self) -> bool:
        return super().healthy() and not self.away

    async def write(self, rows: Sequence[Any]) -> None:
        if self.away:
            self.refused.set()
            raise StorageUnavailableError("the disk is full")
        await super().write(rows)
        if self.silent(rows):
            self.silent, self.away = lambda _rows: False, True
            raise UnansweredWriteError("the connection was lost")


class Bookings:
    """One tool that books: counted, held until it may end."""

    def __init__(self) -> None:
        self.count = 0
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()
        self.stubborn = False
        self.answer = ToolAnswer(b'"booked"')

    def list(self, workspace: str) -> Sequence[ToolInfo]:
        return [ToolInfo("book", "function", "Books.", {"type": "object"})]

    def find(self, workspace: str, name: str) -> ToolInfo | None:
        return self.list(workspace)[0] if name == "book" else None

    async def call(self, use: ToolUse) -> ToolAnswer:
        self.count += 1
        self.begun.set()
        while not self.may_end.is_set():
            try:
                await self.may_end.wait()
            except asyncio.CancelledError:
                if not self.stubborn:
                    raise
        return self.answer


class Scene:
    """A run that books, over a store that can go away."""

    def __init__(self, house: SmallHouse, run: AtRunner, store: Store, tool: Bookings) -> None:
        self.house, self.run, self.store, self.tool = house, run, store, tool

    async def ask(self, method: str, **params: Any) -> Any:
        return await self.house.calls(HERE, method, {"run_id": self.run.run_id, **params}, 100)

    async def refused(self, method: str, **params: Any) -> HostError:
        with pytest.raises(HostError) as error:
            await self.ask(method, **params)
        return error.value

    def book(self) -> "asyncio.Task[Any]":
        return asyncio.ensure_future(self.ask("tools.call", tool_name="book", parameters={}))

    async def call(self) -> ToolCallRow:
        (row,) = await self.store.tool_calls(self.run.run_id)
        return row

    async def becomes(self, *statuses: str) -> None:
        async with asyncio.timeout(30):
            while (await self.call()).status not in statuses:
                await asyncio.sleep(0.01)


@pytest.fixture
async def scene(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(room, "LOOK_SECONDS", 0.01)
    store, tool = Store(), Bookings()
    async with small_house(store, gateway=ScriptedGateway(PERMISSIONS), agents=AGENTS, own_tools=tool) as house:
        await house.say(thread=str(uuid.uuid4()), agent_id="one")
        yield Scene(house, await house.gateway.next(), store, tool)
        store.away = False


async def test_a_result_is_handed_on_when_the_store_is_back_in_time(scene: Scene) -> None:
    calling = scene.book()
    await scene.tool.begun.wait()
    scene.store.away = True
    scene.tool.may_end.set()
    await asyncio.wait_for(scene.store.refused.wait(), 30)
    assert not calling.done()
    scene.store.away = False
    assert (await calling)["result"] == "booked"
    assert ((await scene.call()).status, scene.tool.count) == ("completed", 1)


async def test_a_store_that_stays_away_makes_the_outcome_unknown_and_it_is_recorded_when_it_is_back(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = room.Outcomes.record

    async def impatient(self: room.Outcomes, workspace_id: str, rows: Sequence[Any], *, seconds: float | None) -> bool:
        return await record(self, workspace_id, rows, seconds=seconds and 0.05)

    monkeypatch.setattr(room.Outcomes, "record", impatient)
    calling = scene.book()
    await scene.tool.begun.wait()
    scene.store.away = True
    scene.tool.may_end.set()
    with pytest.raises(HostError) as told:
        await asyncio.wait_for(calling, 30)
    error = told.value
    assert (error.code, error.retryable, error.details) == (ErrorCode.RUNTIME_ERROR, False, {"outcome": "unknown"})
    assert (await scene.call()).status == "started"
    scene.store.away = False
    await scene.becomes("completed")
    assert scene.tool.count == 1


@pytest.mark.parametrize("stubborn", [False, True], ids=["it stops", "it does not stop"])
async def test_a_call_that_is_given_up_while_the_store_is_away_is_unknown_when_it_is_back(
    scene: Scene, stubborn: bool
) -> None:
    scene.tool.stubborn = stubborn
    calling = scene.book()
    await scene.tool.begun.wait()
    scene.store.away = True
    calling.cancel()
    await asyncio.wait_for(scene.store.refused.wait(), 30)
    scene.store.away = False
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(calling, 30)
    await scene.becomes("unknown")
    scene.tool.may_end.set()


async def test_a_call_whose_intent_was_not_answered_is_not_made_and_the_record_says_so(scene: Scene) -> None:
    scene.store.silent = lambda rows: any(isinstance(row, ToolCallRow) for row in rows)
    with pytest.raises(StorageUnavailableError) as refused:  # which the wire calls retryable: nothing was done
        await scene.book()
    assert not isinstance(refused.value, UnansweredWriteError)
    scene.store.away = False
    await scene.becomes("failed")
    assert (b"nothing was called" in (await scene.call()).result, scene.tool.count) == (True, 0)


async def test_a_result_that_cannot_be_kept_is_no_reason_to_say_that_nothing_was_done(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: Any, **__: Any) -> Any:
        raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, "the workspace is full")

    monkeypatch.setattr(type(scene.house.artifacts), "keep", full)
    scene.tool.answer = ToolAnswer(b'"' + b"x" * 100_000 + b'"')
    scene.tool.may_end.set()
    answer = await scene.book()
    assert answer["is_error"]
    assert "did its work, but its result could not be kept (the workspace is full)" in answer["result"]["error"]
    assert (await scene.call()).status == "completed"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("state.set", {"scope": "conversation", "key": "k", "value": 1}),
        ("storage.set", {"area": "plugin", "key": "k", "value_base64": b64encode(b"x").decode()}),
        ("artifacts.create", {"artifact_type": "file", "content_base64": b64encode(b"x").decode()}),
        ("platform.request_action", {"action": "message.edit", "target": {}, "payload": {}}),
    ],
)
async def test_a_write_is_worth_a_second_try_only_when_it_was_not_taken(
    scene: Scene, method: str, params: dict[str, Any]
) -> None:
    scene.store.silent = lambda _rows: True
    unanswered = await scene.refused(method, **params)
    assert (unanswered.retryable, unanswered.details) == (False, {"outcome": "unknown"})
    with pytest.raises(StorageUnavailableError):  # which the wire calls retryable
        await scene.ask(method, **params)


async def test_a_tool_that_writes_to_the_hosts_own_store_has_an_unknown_outcome_when_that_is_not_answered(
    scene: Scene,
) -> None:
    lunch = {"action": "create", "title": "Lunch", "event_timezone": "UTC", "start": "2026-03-16T12:00"}
    scene.store.silent = lambda rows: any(isinstance(row, CalendarEventRow) for row in rows)
    asking = asyncio.ensure_future(scene.ask("tools.call", tool_name="calendar_write", parameters=lunch))
    async with asyncio.timeout(30):
        while not scene.store.away:
            await asyncio.sleep(0.01)
    scene.store.away = False
    answer = await asking
    assert (answer["is_error"], "whether it did its work is not known" in answer["result"]["error"]) == (True, True)
    assert (await scene.call()).status == "unknown"


async def test_bytes_that_cannot_be_freed_do_not_undo_what_was_stored(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.ask("storage.set", area="plugin", key="k", value_base64=b64encode(b"old").decode())

    async def away(*_: Any) -> Any:
        raise StorageUnavailableError("gone")

    monkeypatch.setattr(scene.store, "blobs_in_use", away)
    assert await scene.ask("storage.set", area="plugin", key="k", value_base64=b64encode(b"new").decode())
    assert (await scene.ask("storage.delete", area="plugin", key="k"))["deleted"]


async def test_a_platform_action_is_done_on_record_when_the_store_is_back() -> None:
    store, platform = Store(), MemoryPlatform()
    platform.may_go_on.clear()
    gateway = ScriptedGateway(PERMISSIONS)
    async with small_house(store, gateway=gateway, agents=AGENTS, platform=platform) as house:
        await house.say(thread=str(uuid.uuid4()), agent_id="one")
        scene = Scene(house, await house.gateway.next(), store, Bookings())
        asked = await scene.ask("platform.request_action", action="message.edit", target={}, payload={})
        deciding = asyncio.ensure_future(house.approvals.decide(ANN, asked["approval_id"], "granted"))
        async with asyncio.timeout(30):
            while not platform.done:
                await asyncio.sleep(0.01)
        store.away = True
        platform.may_go_on.set()
        await asyncio.wait_for(store.refused.wait(), 30)
        store.away = False
        assert (await asyncio.wait_for(deciding, 30)).outcome(0) == "done"
        assert len(platform.done) == 1


async def test_a_decision_that_was_not_answered_is_acted_on_once_when_the_store_is_back() -> None:
    store, platform = Store(), MemoryPlatform()
    async with small_house(store, gateway=ScriptedGateway(PERMISSIONS), agents=AGENTS, platform=platform) as house:
        await house.say(thread=str(uuid.uuid4()), agent_id="one")
        scene = Scene(house, await house.gateway.next(), store, Bookings())
        asked = await scene.ask("platform.request_action", action="message.edit", target={}, payload={})
        store.silent = lambda rows: any(isinstance(row, ApprovalStepRow) for row in rows)
        with pytest.raises(StorageUnavailableError):
            await house.approvals.decide(ANN, asked["approval_id"], "granted")
        assert platform.done == []
        store.away = False
        async with asyncio.timeout(30):
            while (await house.approvals.get(ANN, asked["approval_id"])).outcome(0) != "done":
                await asyncio.sleep(0.01)
        assert len(platform.done) == 1


async def test_no_more_outcomes_are_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MAX_KEPT", 3)
    monkeypatch.setattr(room, "MAX_KEPT_EACH", 2)
    async with opened(Store()) as store:
        outcomes = Outcomes(store)
        store.away = True
        kept = [await outcomes.record(workspace, [], seconds=0.05) for workspace in "aaab"]
        assert (kept, outcomes.kept) == ([False] * 4, {"a": 2, "b": 1})
        store.away = False
        await asyncio.wait_for(outcomes.written(), 30)
    assert outcomes.kept == {}
