"""`knowledge.retrieve`: passages with their place, through the gate, from granted bases only."""

from typing import Any

import pytest

from contracts.test_knowledge import AUDIT
from paddock.host.calls.knowledge import KnowledgeCalls
from paddock.knowledge.bases import Bases
from paddock.knowledge.ingest import Ingest
from paddock.rules.access.permissions import Grant, RunScope
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.people import Payer
from paddock.storage.chosen import knowledge_in
from paddock_sdk.protocol.host_calls import KnowledgeRetrieveParams
from stores import QuickStore

pytestmark = pytest.mark.anyio


async def some_bases(store: QuickStore, workspace: str = "default") -> Bases:
    kept = knowledge_in(store)
    ingest = Ingest(kept)
    bases = Bases(kept, ingest)
    await bases.create(workspace, "kb", AUDIT)
    job = await bases.add(Payer(workspace, "ann"), "kb", "a.md", b"# Travel\nBook trains first.", AUDIT, {})
    assert (await ingest.do(job)).status == "completed"
    return bases


def a_grant(workspace: str = "default") -> Grant:
    scope = RunScope("r", workspace, "ann", "agent", "c")
    return Grant("p", frozenset({"knowledge.retrieve"}), frozenset(), frozenset(), scope=scope, deadline_at=1e12)


async def retrieve(bases: Bases, grant: Grant, **asked: Any) -> Any:
    given: dict[str, Any] = {"kb_id": "kb", "query_text": "trains", **asked}
    params = KnowledgeRetrieveParams(run_id="r", **given)
    return (await KnowledgeCalls(bases).retrieve(grant, params)).results


async def test_a_passage_has_a_score_a_distance_and_a_place(store: QuickStore) -> None:
    (entry,) = await retrieve(await some_bases(store), a_grant())
    assert entry.content[0].text == "# Travel\nBook trains first."
    assert entry.score is not None
    assert entry.distance == pytest.approx(1 - entry.score)
    assert (entry.metadata["document"], entry.metadata["heading"]) == ("a.md", "Travel")


async def test_a_base_of_another_workspace_does_not_exist(store: QuickStore) -> None:
    with pytest.raises(HostError) as refused:
        await retrieve(await some_bases(store, "elsewhere"), a_grant())
    assert refused.value.code is ErrorCode.NOT_FOUND


async def test_an_unknown_filter_is_an_invalid_argument(store: QuickStore) -> None:
    with pytest.raises(HostError) as refused:
        await retrieve(await some_bases(store), a_grant(), filters={"colour": "red"})
    assert refused.value.code is ErrorCode.INVALID_ARGUMENT
