"""What every store promises about knowledge: found when finished, gone when dropped, nothing twice, jobs go on."""

from typing import Any

import pytest

from paddock.ports import Store
from paddock.ports.knowledge import BaseRow, ChunkFilter, DocumentRow, JobRow, KnowledgeStore, StoredChunk
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import AuditRow
from paddock.rules.search.passages import Chunk
from paddock.rules.search.tokens import terms_of, tokens_of
from paddock.rules.values import replace
from paddock.storage.chosen import knowledge_in
from paddock.storage.postgres import PostgresStore
from paddock.storage.sqlite import SqliteStore
from paddock.storage.sqlite.connection import Cursor

pytestmark = pytest.mark.anyio

BASE = BaseRow("w", "kb", "Handbook", "all of it", "", 1.0)
AUDIT = AuditRow(1.0, "w", "user:ann", "knowledge.test", "kb", "w", "allowed", "role admin")
EVERYTHING = ChunkFilter()
SEARCH, WORDS = "select count(*) from knowledge_search", "select count(*) from knowledge_words"


class Both:
    """A store and its knowledge."""

    def __init__(self, store: Store, knowledge: KnowledgeStore) -> None:
        self.store = store
        self.knowledge = knowledge


def both_of(store: Store) -> Both:
    return Both(store, knowledge_in(store))


@pytest.fixture
async def both(store: Store) -> Both:
    both = both_of(store)
    await both.knowledge.add_base(BASE, AUDIT)
    return both


@pytest.fixture
def knowledge(both: Both) -> KnowledgeStore:
    return both.knowledge


def a_job(document_id: str, name: str = "a.txt", **more: object) -> JobRow:
    job = JobRow(f"job-{document_id}", "w", "kb", document_id, name, f"hash-{document_id}", 10, 1.0, user_id="ann")
    return replace(job, **more)


def a_document(job: JobRow, metadata: bytes = b"") -> DocumentRow:
    return DocumentRow(job.document_id, job.name, "text/plain", job.content_hash, 10, 2.0, metadata)


def stored(*texts: str, vector: bytes = b"", first: int = 0) -> list[StoredChunk]:
    return [
        StoredChunk(Chunk(first + n, text, 0, len(text), heading="H"), " ".join(tokens_of(text)), vector)
        for n, text in enumerate(texts)
    ]


async def bring_in(
    knowledge: KnowledgeStore, document_id: str, *texts: str, metadata: bytes = b"", vector: bytes = b"", **more: Any
) -> JobRow:
    job = a_job(document_id, total=len(texts), done=len(texts), **more)
    await knowledge.add_job(job, b"source", AUDIT)
    await knowledge.begin(job, a_document(job, metadata))
    await knowledge.add_chunks(job, stored(*texts, vector=vector))
    done = replace(job, status="completed")
    await knowledge.finish(done)
    return done


async def texts_for(
    knowledge: KnowledgeStore, query: str, *, only: ChunkFilter = EVERYTHING, limit: int = 10
) -> list[str]:
    ranked = await knowledge.find("w", "kb", terms_of(query), limit=limit, only=only)
    assert [score for _, score in ranked] == sorted((score for _, score in ranked), reverse=True)
    assert all(score > 0 for _, score in ranked)
    found = {one.chunk_no: one.chunk.text for one in await knowledge.chunks("w", "kb", [n for n, _ in ranked])}
    return [found[number] for number, _ in ranked]


async def test_a_base_is_made_once_and_belongs_to_its_workspace(both: Both) -> None:
    knowledge = both.knowledge
    assert await knowledge.base("w", "kb") == BASE
    assert await knowledge.base("other", "kb") is None
    with pytest.raises(HostError) as refused:
        await knowledge.add_base(BASE, AUDIT)
    assert refused.value.code is ErrorCode.CONFLICT
    await knowledge.add_base(replace(BASE, workspace_id="other"), AUDIT)
    await knowledge.add_base(replace(BASE, kb_id="a"), AUDIT)
    assert [row.kb_id for row in await knowledge.bases("w")] == ["a", "kb"]
    assert [row.action for row in await both.store.audit()] == ["knowledge.test"] * 3


async def test_the_passage_with_more_of_the_words_comes_first(knowledge: KnowledgeStore) -> None:
    await bring_in(knowledge, "d1", "北京的天气很好", "上海的饭很好吃", "The weather in London is bad", "nothing of it")
    assert (await texts_for(knowledge, "北京天气怎么样"))[0] == "北京的天气很好"
    assert await texts_for(knowledge, "London weather") == ["The weather in London is bad"]
    assert await texts_for(knowledge, "饭") == ["上海的饭很好吃"]
    assert await texts_for(knowledge, "quantum") == []
    assert await texts_for(knowledge, '"') == []
    assert len(await texts_for(knowledge, "很好 weather", limit=2)) == 2


async def test_a_document_is_found_only_when_it_is_finished(knowledge: KnowledgeStore) -> None:
    job = a_job("d1", total=2)
    await knowledge.add_job(job, b"source", AUDIT)
    assert await knowledge.source(job.job_id) == b"source"
    assert await knowledge.begin(job, a_document(job)) == 0
    await knowledge.add_chunks(replace(job, done=1), stored("needle one"))
    assert await texts_for(knowledge, "needle") == []
    assert await knowledge.documents("w", "kb") == []
    assert await knowledge.begin(job, a_document(job)) == 1, "a job that begins again goes on"
    await knowledge.add_chunks(replace(job, done=2), stored("needle two", first=1))
    await knowledge.finish(replace(job, status="completed", done=2))
    assert sorted(await texts_for(knowledge, "needle")) == ["needle one", "needle two"]
    assert [row.chunk_count for row in await knowledge.documents("w", "kb")] == [2]
    assert await knowledge.source(job.job_id) == b""


async def test_a_failed_job_leaves_no_document(knowledge: KnowledgeStore) -> None:
    job = a_job("d1", total=2)
    await knowledge.add_job(job, b"source", AUDIT)
    await knowledge.begin(job, a_document(job))
    await knowledge.add_chunks(job, stored("needle"))
    await knowledge.finish(replace(job, status="failed", message="no"))
    assert await texts_for(knowledge, "needle") == []
    told = await knowledge.job("w", "kb", job.job_id)
    assert told is not None
    assert (told.status, told.message) == ("failed", "no")
    assert await knowledge.unfinished_jobs() == []


async def test_a_new_version_takes_the_place_of_the_old_one(knowledge: KnowledgeStore) -> None:
    await bring_in(knowledge, "d1", "old words")
    await bring_in(knowledge, "d2", "new words")
    await bring_in(knowledge, "d3", "other words", name="b.txt")
    assert sorted(await texts_for(knowledge, "words")) == ["new words", "other words"]
    assert [row.document_id for row in await knowledge.documents("w", "kb")] == ["d2", "d3"]
    assert [row.document_id for row in await knowledge.documents("w", "kb", after="d2", limit=1)] == ["d3"]
    found = await knowledge.document_by_hash("w", "kb", "hash-d2")
    assert found is not None
    assert found.document_id == "d2"
    assert await knowledge.document_by_hash("w", "kb", "hash-d1") is None


async def test_a_job_that_brought_nothing_replaces_nothing(knowledge: KnowledgeStore) -> None:
    await bring_in(knowledge, "d1", "old words")
    again = a_job("d2")
    await knowledge.add_job(again, b"source", AUDIT)
    await knowledge.finish(replace(again, status="completed", message="unchanged"))
    assert await texts_for(knowledge, "words") == ["old words"]


async def test_a_dropped_document_is_gone(both: Both) -> None:
    knowledge = both.knowledge
    await bring_in(knowledge, "d1", *(f"needle {n}" for n in range(150)))
    before = await knowledge.version("w", "kb")
    assert await knowledge.drop_document("w", "kb", "d1", AUDIT)
    assert not await knowledge.drop_document("w", "kb", "d1", AUDIT)
    assert not await knowledge.drop_document("other", "kb", "d1", AUDIT)
    assert await texts_for(knowledge, "needle") == []
    assert await knowledge.version("w", "kb") != before


async def test_a_dropped_base_is_gone_with_all_it_had(knowledge: KnowledgeStore) -> None:
    await bring_in(knowledge, "d1", "needle")
    waiting = a_job("d2")
    await knowledge.add_job(waiting, b"source", AUDIT)
    assert not await knowledge.drop_base("other", "kb", AUDIT)
    assert await knowledge.drop_base("w", "kb", AUDIT)
    assert await knowledge.unfinished_jobs() == []
    assert await knowledge.source(waiting.job_id) == b""
    await knowledge.add_base(BASE, AUDIT)
    assert await texts_for(knowledge, "needle") == []
    assert await knowledge.documents("w", "kb") == []
    with pytest.raises(HostError):
        await knowledge.begin(waiting, a_document(waiting))


async def test_filters_choose_documents(knowledge: KnowledgeStore) -> None:
    await bring_in(knowledge, "d1", "needle one", metadata=b'{"year":2025}')
    await bring_in(knowledge, "d2", "needle two", name="b.txt", metadata=b'{"year":2026}')

    async def found(**only: object) -> list[str]:
        return sorted(await texts_for(knowledge, "needle", only=ChunkFilter(**only)))  # type: ignore[arg-type]

    assert await found(names=frozenset({"b.txt"})) == ["needle two"]
    assert await found(document_ids=frozenset({"d1"})) == ["needle one"]
    assert await found(metadata={"year": 2026}) == ["needle two"]
    assert await found(media_types=frozenset({"application/pdf"})) == []
    assert await found() == ["needle one", "needle two"]


async def test_a_filter_looks_past_any_number_of_better_passages(knowledge: KnowledgeStore) -> None:
    await bring_in(knowledge, "d1", *(["needle needle"] * 300))
    await bring_in(knowledge, "d2", "some needle in a very long and winding sentence about hay", name="b.txt")
    assert len(await texts_for(knowledge, "needle", only=ChunkFilter(names=frozenset({"b.txt"})), limit=2)) == 1


async def test_vectors_are_read_in_order_and_only_of_finished_documents(knowledge: KnowledgeStore) -> None:
    await bring_in(knowledge, "d1", "a", "b", "c", vector=b"\x00\x00\x80?")
    job = a_job("d2", name="b.txt")
    await knowledge.add_job(job, b"source", AUDIT)
    await knowledge.begin(job, a_document(job))
    await knowledge.add_chunks(job, stored("d", vector=b"\x00\x00\x80?"))
    first = await knowledge.vectors("w", "kb", limit=2)
    rest = await knowledge.vectors("w", "kb", after=first[-1][0])
    assert (len(first), len(rest)) == (2, 1)
    assert {vector for _, vector in [*first, *rest]} == {b"\x00\x00\x80?"}


async def test_unfinished_jobs_are_told_oldest_first(knowledge: KnowledgeStore) -> None:
    for age, name in ((3.0, "d3"), (1.0, "d1"), (2.0, "d2")):
        await knowledge.add_job(a_job(name, created_at=age), b"x", AUDIT)
    assert [job.document_id for job in await knowledge.unfinished_jobs()] == ["d1", "d2", "d3"]
    assert await knowledge.job("w", "other", "job-d1") is None


async def test_what_was_hidden_and_not_dropped_is_swept_at_the_next_start(both: Both) -> None:
    knowledge, store = both.knowledge, both.store
    await bring_in(knowledge, "d1", "needle")
    gone, words = "delete from knowledge_documents", "select count(*) from knowledge_chunks"
    if isinstance(store, SqliteStore):

        def delete(cursor: Cursor) -> None:
            cursor.execute(gone)

        await store.perform(delete)
        assert await knowledge.sweep() == 1
        left = await store.ask(lambda connection: connection.execute(f"{words} union all {SEARCH}").fetchall())
    else:
        assert isinstance(store, PostgresStore)
        await store.perform(lambda connection: connection.execute(gone))
        assert await knowledge.sweep() == 1
        left = await store.reader.all(f"{words} union all {WORDS}")
    assert sum(count for (count,) in left) == 0


async def test_unfinished_jobs_are_told_of_one_workspace_and_whose_there_are(knowledge: KnowledgeStore) -> None:
    await knowledge.add_job(a_job("d1"), b"x", AUDIT)
    assert await knowledge.workspaces_with_jobs() == ["w"]
    assert [job.document_id for job in await knowledge.unfinished_jobs(workspace="w")] == ["d1"]
    assert await knowledge.unfinished_jobs(workspace="another") == []
    await knowledge.finish(a_job("d1", status="failed"))
    assert await knowledge.workspaces_with_jobs() == []
