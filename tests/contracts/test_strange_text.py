"""Characters that a database may refuse or mistake are kept by every store, wherever text is kept."""

import pytest

from contracts.builders import SESSION, Owner, a_decision, a_run, a_value, an_item, said
from contracts.test_approvals import ASKED
from contracts.test_calls import a_tool_call
from contracts.test_kept import a_blob, an_artifact
from contracts.test_knowledge import BASE, EVERYTHING, a_document, a_job, both_of, stored
from contracts.test_search import asked, found
from paddock.ports import Store
from paddock.ports.knowledge import ChunkFilter
from paddock.rules.rows.rows import AgentRow, AuditRow, SessionDetailsRow
from paddock.rules.search.tokens import terms_of
from paddock.rules.values import replace

pytestmark = pytest.mark.anyio

STRANGE = ["\x00", "a\x00b", "\x1a", "\x1a0", "a\x1a1\x00", "'\"\\%_", "\u2028", "\U0010ffff", "\x00" * 3]


async def test_rows_beside_the_log_keep_any_text(store: Store) -> None:
    for text in STRANGE:
        artifact = an_artifact(f"art{text}", name=text, conversation_id=text, mime_type=text)
        call, agent = a_tool_call(text, run_id=text, tool_name=text), AgentRow("w", text, b"{}", 1.0, text)
        approval = replace(ASKED, approval_id=text, user_id=text, action=text)
        audit = replace(a_decision(reason=text), run_id=text)
        await store.write([artifact, a_blob(text, area=text), call, agent, approval, a_value(text, b"v", text), audit])
        assert await store.artifact(f"art{text}") == artifact
        assert await store.artifacts_of(text) == [artifact]
        assert await store.stored(text, text) == a_blob(text, area=text)
        assert await store.stored_keys(text, prefix=text) == [text]
        assert await store.tool_calls(text) == [call]
        assert [one.asked for one in await store.approvals("w", text)] == [approval]
        assert (await store.state_snapshot([text], max_bytes=10))[text].values == {text: b"v"}
        assert await store.audit(run_id=text) == [audit]
    assert sorted(row.agent_id for row in await store.stored_agents()) == sorted(STRANGE)
    assert await store.blobs_in_use(STRANGE) == frozenset()


async def test_conversations_keep_any_text_and_are_searched_in_spite_of_it(store: Store) -> None:
    owner = await Owner.of(store)
    items = [an_item(seq, content=f"{text} needle{seq}") for seq, text in enumerate(STRANGE, 1)]
    await owner.write(said("".join(STRANGE)), rows=[*items, a_run(message=STRANGE[1])])
    if (indexing := getattr(store, "_indexing", None)) is not None:
        await indexing.catch_up(SESSION)
    assert await store.transcript(SESSION, newest_first=False) == items
    for item in items:
        assert await found(store, asked(f"needle{item.seq}")) == [item.seq]
        assert await found(store, asked(item.content.replace("\x00", " "))) == [item.seq]
    await store.write([SessionDetailsRow(SESSION, title=STRANGE[4])])
    summary = await store.session_summary(SESSION)
    assert summary is not None
    assert summary.title == STRANGE[4]


async def test_knowledge_keeps_any_text(store: Store) -> None:
    knowledge = both_of(store).knowledge
    audit = AuditRow(1.0, "w", "user:ann", "knowledge.test", "kb", "w", "allowed", "x")
    await knowledge.add_base(replace(BASE, description="".join(STRANGE)), audit)
    for number, text in enumerate(STRANGE):
        job = a_job(f"d{number}", text, total=1)
        await knowledge.add_job(job, text.encode(), audit)
        await knowledge.begin(job, a_document(job))
        await knowledge.add_chunks(job, stored(f"{text} needle"))
        await knowledge.finish(replace(job, status="completed"))
        (hit,) = await knowledge.find("w", "kb", terms_of("needle"), limit=9, only=ChunkFilter(names=frozenset({text})))
        (chunk,) = await knowledge.chunks("w", "kb", [hit[0]])
        assert (chunk.chunk.text, chunk.document.name) == (f"{text} needle", text)
    assert len(await knowledge.find("w", "kb", terms_of("needle"), limit=99, only=EVERYTHING)) == len(STRANGE)
