"""Documents on their way in where several hosts could bring them in: what one has ended stays as it ended."""

from collections.abc import AsyncIterator

import pytest

from contracts.test_knowledge import AUDIT, BASE, a_document, a_job, bring_in, texts_for
from paddock.knowledge.ingest import Ingest
from paddock.ports.knowledge import JobRow, KnowledgeStore
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.values import replace
from paddock.storage.chosen import knowledge_in
from paddock.storage.postgres import PostgresStore
from postgres_server import a_database

pytestmark = pytest.mark.anyio


@pytest.fixture
async def knowledge() -> AsyncIterator[KnowledgeStore]:
    with a_database() as address:
        store = PostgresStore(address)
        await store.open()
        knowledge = knowledge_in(store)
        await knowledge.add_base(BASE, AUDIT)
        yield knowledge
        await store.close()


async def told(knowledge: KnowledgeStore, job: JobRow) -> JobRow | None:
    return await knowledge.job("w", "kb", job.job_id)


async def test_a_host_that_was_away_changes_nothing_of_a_job_that_another_ended(knowledge: KnowledgeStore) -> None:
    done = await bring_in(knowledge, "d1", "needle")
    for late in (
        knowledge.begin(replace(done, status="running"), a_document(done)),
        knowledge.finish(replace(done, status="failed", message="too late")),
    ):
        with pytest.raises(HostError) as refused:
            await late
        assert refused.value.code is ErrorCode.INVALID_ARGUMENT
    assert await told(knowledge, done) == done
    assert await texts_for(knowledge, "needle") == ["needle"]


async def test_a_host_that_was_away_does_not_end_what_another_is_bringing_in(knowledge: KnowledgeStore) -> None:
    job = a_job("d2")
    await knowledge.add_job(job, b"a needle", AUDIT)
    # while it read the document another host was taken for the one that does
    here = Ingest(knowledge, may_work=lambda: False)
    await here.do(job)
    assert [one.job_id for one in await knowledge.unfinished_jobs()] == [job.job_id]
    await Ingest(knowledge).do(job)
    left = await told(knowledge, job)
    assert left is not None
    assert left.status == "completed"
    assert await texts_for(knowledge, "needle") == ["a needle"]
