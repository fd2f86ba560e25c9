"""History for runners: pages that fit a frame, searches that see everything, and only where the grant allows it."""

import json
import uuid
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from contracts.builders import SESSION, Owner, an_item, said
from host.scripted import ANN, ScriptedGateway, small_house
from paddock.host.calls.history import History
from paddock.ports import Caller, Store
from paddock.rules.access.permissions import Grant, RunScope
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import TranscriptRow
from paddock.rules.values import replace
from paddock_sdk.protocol.history import HistoryPage, HistorySearchResult
from paddock_sdk.protocol.host_calls import HistoryPageParams, HistorySearchParams
from paddock_sdk.protocol.manifest import AgentRunnerManifest

pytestmark = pytest.mark.anyio


def a_grant(history_scope: Any = "conversation", workspace: str = "workspace") -> Grant:
    scope = RunScope("run-1", workspace, "ann", "agent", SESSION)
    actions = frozenset({"history.page", "history.search"})
    return Grant("r", actions, frozenset(), frozenset(), history_scope=history_scope, scope=scope, deadline_at=1e12)


async def fill(store: Store, items: Sequence[TranscriptRow], session_id: str = SESSION) -> None:
    await (await Owner.of(store, session_id)).write(said("hi"), rows=items)


async def page(store: Store, grant: Grant | None = None, **more: Any) -> HistoryPage:
    return await History(store).page(grant or a_grant(), HistoryPageParams(run_id="run-1", **more))


async def search(store: Store, query: str, grant: Grant | None = None, **more: Any) -> HistorySearchResult:
    asked = HistorySearchParams(run_id="run-1", query=query, **more)
    return await History(store).search(grant or a_grant(), asked)


def seqs(answer: HistoryPage | HistorySearchResult) -> list[int | None]:
    return [item.seq for item in answer.items]


async def test_pages_follow_each_other_in_both_directions(store: Store) -> None:
    await fill(store, [an_item(seq) for seq in range(1, 251)])
    newest = await page(store, limit=100)
    assert seqs(newest) == list(range(250, 150, -1))
    assert newest.has_more
    older = await page(store, limit=100, before_cursor=newest.next_cursor)
    assert seqs(older) == list(range(150, 50, -1))
    last = await page(store, limit=100, before_cursor=older.next_cursor)
    assert (seqs(last), last.has_more, last.next_cursor) == (list(range(50, 0, -1)), False, None)
    forward = await page(store, limit=40, direction="forward", after_cursor=last.items[-1].cursor)
    assert (seqs(forward), forward.has_more) == (list(range(2, 42)), True)


async def test_a_page_of_huge_items_fits_a_frame_and_says_there_is_more(store: Store) -> None:
    await fill(store, [an_item(seq, content="长" * 200_000) for seq in range(1, 11)])
    got: list[int | None] = []
    cursor = None
    while True:
        answer = await page(store, limit=100, before_cursor=cursor)
        assert len(answer.model_dump_json()) < 4_194_304
        assert all(item.content == "长" * 200_000 for item in answer.items)
        got += seqs(answer)
        if not answer.has_more:
            break
        cursor = answer.next_cursor
    assert got == list(range(10, 0, -1))


async def test_an_item_no_frame_can_hold_says_how_long_it_is(store: Store) -> None:
    await fill(store, [an_item(1, content="x" * 4_000_000), an_item(2)])
    answer = await page(store)
    assert seqs(answer) == [2]
    answer = await page(store, before_cursor=answer.next_cursor)
    assert (answer.items[0].content, answer.items[0].metadata["oversize_bytes"]) == (None, 4_000_000)


async def test_attachments_are_named_when_asked_for_and_never_sent(store: Store) -> None:
    block = {"type": "binary", "id": "art-1", "mimeType": "image/png", "filename": "a.png", "data": "AAAA"}
    whole = msgspec.json.encode({"role": "user", "content": [{"type": "text", "text": "see"}, block]})
    await fill(store, [replace(an_item(1), content_json=whole)])
    assert (await page(store)).items[0].attachment_refs == []
    (ref,) = (await page(store, include_artifacts=True)).items[0].attachment_refs
    assert ref.model_dump(exclude_none=True) == {"artifact_id": "art-1", "mime_type": "image/png", "name": "a.png"}


async def test_a_search_answers_with_whole_items_newest_first(store: Store) -> None:
    await fill(store, [an_item(1, content="今天天气"), an_item(2, content="x"), an_item(3, content="天气好")])
    answer = await search(store, "天气")
    assert (seqs(answer), answer.query, answer.total_count) == ([3, 1], "天气", 2)
    assert answer.items[0].content == "天气好"
    assert (await search(store, "天气", top_k=1)).total_count is None


async def test_a_search_that_does_not_fit_a_frame_says_how_many_it_found(store: Store) -> None:
    await fill(store, [an_item(seq, content="word " + "长" * 200_000) for seq in range(1, 11)])
    answer = await search(store, "word")
    assert len(answer.model_dump_json()) < 4_194_304
    assert 0 < len(answer.items) < 10
    assert answer.total_count == 10
    found = seqs(answer)
    while answer.has_more:
        answer = await search(store, "word", before_cursor=answer.next_cursor)
        found += seqs(answer)
    assert found == list(range(10, 0, -1))


async def test_a_text_travels_once(store: Store) -> None:
    words = "said once"
    blocks = {"role": "user", "content": [{"type": "text", "text": words}, {"type": "binary", "id": "art-1"}]}
    result = {"tool_call_id": "t", "tool_name": "look", "result": words}
    called = replace(an_item(4, content=words), role="tool", item_type="tool_result")
    await fill(
        store,
        [
            an_item(1, content=words),
            replace(an_item(2, content=words), content_json=msgspec.json.encode(blocks)),
            replace(an_item(3, content=words), content_json=msgspec.json.encode({"role": "user", "content": words})),
            replace(called, content_json=msgspec.json.encode(result)),
        ],
    )
    for item in (await page(store)).items:
        assert json.dumps(item.to_wire()).count(words) == 1
        assert item.with_text().content == words


@pytest.mark.parametrize(
    "asked",
    [
        {"query": "  "},
        {"query": "x", "top_k": 0},
        {"query": "x", "top_k": 101},
        {"query": "x", "filters": {"user": "bob"}},
        {"query": "x", "filters": {"roles": "user"}},
        {"query": "x", "filters": {"roles": ["boss"]}},
        {"query": "x", "filters": {"event_types": [1]}},
        {"query": "x", "filters": {"after": "yesterday"}},
        {"query": "x", "filters": {"before": True}},
        {"query": "x", "filters": {"conversation_id": 7}},
        {"query": "x" * 1001},
    ],
)
async def test_what_cannot_be_meant_is_refused_with_a_sentence(store: Store, asked: dict[str, Any]) -> None:
    await fill(store, [])
    with pytest.raises(HostError) as refused:
        await search(store, **asked)
    assert refused.value.code is ErrorCode.INVALID_ARGUMENT
    assert len(refused.value.message) > 20


async def test_event_types_name_what_happened(store: Store) -> None:
    kinds = [("user", "message"), ("assistant", "message"), ("assistant", "tool_call"), ("tool", "tool_result")]
    items = [
        replace(an_item(n, content="w"), role=role, item_type=kind) for n, (role, kind) in enumerate(kinds, start=1)
    ]
    await fill(store, items)
    for types, expected in [
        (["message.received"], [1]),
        (["tool.call.started", "tool.call.completed"], [4, 3]),
        (["message"], [2, 1]),
        (["group.member_joined"], []),
    ]:
        assert seqs(await search(store, "w", filters={"event_types": types})) == expected


async def test_another_conversation_needs_the_workspace_scope_and_the_same_workspace(store: Store) -> None:
    await fill(store, [an_item(1, content="mine")])
    await fill(store, [an_item(1, "other", "theirs")], "other")
    filters = {"conversation_id": "other"}
    with pytest.raises(HostError) as refused:
        await search(store, "theirs", filters=filters)
    assert refused.value.code is ErrorCode.UNAUTHORIZED
    wide = a_grant("workspace")
    assert seqs(await search(store, "theirs", wide, filters=filters)) == [1]
    assert (await page(store, wide, conversation_id="other")).items[0].content == "theirs"
    assert seqs(await search(store, "theirs", wide)) == []


async def test_a_conversation_of_another_workspace_looks_like_none(store: Store) -> None:
    await fill(store, [an_item(1, content="mine")])
    sentences: set[str] = set()
    for conversation_id in (str(uuid.uuid4()), "other"):
        await fill(store, [an_item(1, "other", "theirs")], "other") if conversation_id == "other" else None
        with pytest.raises(HostError) as refused:
            await search(
                store, "x", a_grant("workspace", workspace="elsewhere"), filters={"conversation_id": conversation_id}
            )
        assert refused.value.code is ErrorCode.NOT_FOUND
        sentences.add(refused.value.message)
    assert len(sentences) == 1


class SearchingGateway(ScriptedGateway):
    async def manifest(self, runner_id: str, workspace: str = "") -> AgentRunnerManifest:
        manifest = await super().manifest(runner_id, workspace)
        return manifest.model_copy(
            update={"context": manifest.context.model_copy(update={"supports_history_search": True})}
        )


async def test_a_run_searches_its_conversation_through_the_gate() -> None:
    async with small_house(gateway=SearchingGateway({"history": ["search"]})) as house:
        thread = str(uuid.uuid4())
        await house.say("我们去北京吧", thread=thread)
        run = await house.gateway.next()
        asked = {"run_id": run.run_id, "query": "北京"}
        answer = await house.calls(Caller("test/one", "c1"), "history.search", asked, 100)
        assert [item["content"] for item in answer["items"]] == ["我们去北京吧"]
        run.say("run.completed")
        await house.story(await house.view.find(ANN, run.run_id))
        assert "history.search" in {row.action for row in await house.store.audit(run_id=run.run_id)}
