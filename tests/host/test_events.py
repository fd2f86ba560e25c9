"""What happened in a conversation, as runners may read it: told kinds only, newest first, large data by reference."""

import json
import uuid
from base64 import b64decode
from typing import Any

import pytest

from host.calling import AGENTS, a_gateway, a_run, ask, encoded, ended, refusal, streamed
from host.scripted import AtRunner, SmallHouse, small_house
from paddock.rules.errors import ErrorCode
from paddock.rules.log.events import EVENT_TYPES
from paddock.rules.session.facts import VOCABULARY, kind_of

pytestmark = pytest.mark.anyio

NO_EVENT = (ErrorCode.NOT_FOUND, "there is no such event")


def test_every_kind_that_is_told_is_a_word_of_the_log() -> None:
    words = {kind_of(event, subtype) for event, subtypes in VOCABULARY.items() for subtype in subtypes}
    assert set(EVENT_TYPES) <= words


async def a_busy_turn(house: SmallHouse, thread: str) -> AtRunner:
    run = await a_run(house, thread)
    run.delta("he")
    run.say("tool.call.started", tool_call_id="c", tool_name="look", parameters={"q": 1})
    run.say("tool.call.completed", tool_call_id="c", tool_name="look", result={"rows": [1]})
    run.say("artifact.created", artifact_type="file", name="n.txt", content_base64=encoded(b"hello"))
    run.say("state.updated", scope="conversation", key="k", value="a secret of this agent")
    run.message("hello")
    await ended(house, run, thread)
    return run


async def test_events_tell_inputs_outputs_tools_files_and_ends_newest_first() -> None:
    thread = str(uuid.uuid4())
    async with small_house(gateway=a_gateway()) as house:
        first = await a_busy_turn(house, thread)
        run = await a_run(house, thread)
        items = (await ask(house, run, "events.page"))["items"]
        types = [item["event_type"] for item in reversed(items)]
        assert types == [
            "session.opened",
            "message.received",
            "message.completed",  # where its first piece stood
            "tool.call.started",
            "tool.call.completed",
            "artifact.created",
            "state.updated",
            "run.completed",
            "message.received",
        ]
        by_type = {item["event_type"]: item for item in items if item["metadata"].get("run_id") == first.run_id}
        assert by_type["tool.call.started"]["metadata"]["data"]["parameters"] == {"q": 1}
        assert (by_type["message.received"]["actor_type"], by_type["message.received"]["actor_id"]) == ("user", "ann")
        assert (by_type["message.completed"]["bot_id"], by_type["message.completed"]["input_summary"]) == (
            "one",
            "hello",
        )
        assert by_type["message.received"]["input_summary"] == "hi"


async def test_values_of_state_and_grants_are_never_told() -> None:
    thread = str(uuid.uuid4())
    async with small_house(gateway=a_gateway(), agents=AGENTS) as house:
        await a_busy_turn(house, thread)
        run = await a_run(house, thread, agent_id="two")
        items = (await ask(house, run, "events.page"))["items"]
        changed = next(item for item in items if item["event_type"] == "state.updated")
        assert changed["metadata"]["data"] == {"scope": "conversation", "key": "k"}
        everything = json.dumps(items)
        assert "a secret of this agent" not in everything
        assert "state_scopes" not in everything
        raw = f"raw_{changed['event_id']}"
        assert json.loads(b"".join(await streamed(house, run, raw))) == changed["metadata"]["data"]


async def test_pages_follow_each_other_without_gap_or_repetition() -> None:
    thread = str(uuid.uuid4())
    async with small_house(gateway=a_gateway()) as house:
        for _ in range(3):
            await a_busy_turn(house, thread)
        run = await a_run(house, thread)
        whole = await ask(house, run, "events.page", limit=100)
        collected: list[Any] = []
        cursor = None
        while True:
            page = await ask(house, run, "events.page", limit=4, **({"before_cursor": cursor} if cursor else {}))
            collected += page["items"]
            if not page["has_more"]:
                break
            cursor = page["next_cursor"]
        assert [item["event_id"] for item in collected] == [item["event_id"] for item in whole["items"]]
        for limit, count in ((-3, 1), (0, 1), (1000, len(collected))):
            assert len((await ask(house, run, "events.page", limit=limit))["items"]) == count


async def test_an_event_is_got_by_the_id_that_the_context_the_history_and_the_page_use() -> None:
    thread = str(uuid.uuid4())
    async with small_house(gateway=a_gateway()) as house:
        await a_busy_turn(house, thread)
        run = await a_run(house, thread)
        own = await ask(house, run, "events.get", event_id=run.context["event"]["event_id"])
        assert (own["event_type"], own["metadata"]["run_id"]) == ("message.received", run.run_id)
        history = await ask(house, run, "history.page")
        for item in history["items"]:
            assert (await ask(house, run, "events.get", event_id=item["event_id"]))["created_at"] == item["created_at"]
        for item in (await ask(house, run, "events.page"))["items"]:
            assert await ask(house, run, "events.get", event_id=item["event_id"]) == item


async def test_foreign_untold_and_invented_events_are_all_not_found() -> None:
    thread = str(uuid.uuid4())
    async with small_house(gateway=a_gateway()) as house:
        await a_busy_turn(house, thread)
        stranger, run = await a_run(house, str(uuid.uuid4())), await a_run(house, thread)
        told = {item["event_id"] for item in (await ask(house, run, "events.page"))["items"]}
        untold = [f"{thread}.{seq}" for seq in range(1, 40) if f"{thread}.{seq}" not in told]
        foreign = run.context["event"]["event_id"]
        for event_id in (untold[0], untold[1], "x", f"{thread}.0", f"{thread}.-1", f"{thread}.1e3", f"{thread}.٣"):
            assert await refusal(house, run, "events.get", event_id=event_id) == NO_EVENT
        assert await refusal(house, stranger, "events.get", event_id=foreign) == NO_EVENT
        for cursor in ("h1", "e", "ezz", "1", foreign):
            code, _ = await refusal(house, run, "events.page", before_cursor=cursor)
            assert code is ErrorCode.NOT_FOUND


async def test_large_data_is_behind_a_reference_that_is_read_like_an_artifact() -> None:
    thread, text = str(uuid.uuid4()), "大" * 20_000
    async with small_house(gateway=a_gateway()) as house:
        run = await a_run(house, thread, text=text)
        own = await ask(house, run, "events.get", event_id=run.context["event"]["event_id"])
        assert "data" not in own["metadata"]
        assert len(own["input_summary"]) == 1000
        assert own["input_ref"] == own["raw_ref"]
        about = await ask(house, run, "artifacts.metadata", artifact_id=own["raw_ref"])
        whole = b"".join(await streamed(house, run, own["raw_ref"]))
        assert (about["size_bytes"], about["mime_type"], about["source"]) == (len(whole), "application/json", "system")
        assert json.loads(whole)["message"]["content"] == text
        part = await ask(house, run, "artifacts.read_range", artifact_id=own["raw_ref"], offset=3, length=5)
        assert b64decode(part["content_base64"]) == whole[3:8]
        stranger = await a_run(house)
        no_artifact = (ErrorCode.NOT_FOUND, "there is no such artifact")
        assert await refusal(house, stranger, "artifacts.metadata", artifact_id=own["raw_ref"]) == no_artifact


async def test_a_run_that_may_not_read_events_reads_no_raw_data_either() -> None:
    async with small_house(gateway=a_gateway(events=[])) as house:
        run = await a_run(house, text="x" * 20_000)
        raw = f"raw_{run.context['event']['event_id']}"
        assert (await refusal(house, run, "artifacts.read_range", artifact_id=raw))[0] is ErrorCode.NOT_FOUND
        assert (await refusal(house, run, "events.page"))[0] is ErrorCode.UNAUTHORIZED
