"""Knowledge as the host uses it: documents come in whole or not at all, are found with their place, and jobs go on."""

import hashlib
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from contracts.conftest import PLUGS, open_plug
from contracts.test_knowledge import AUDIT, Both, both_of
from knowledge.makers import a_pdf
from paddock.host.calls.artifacts import ArtifactLimits, Artifacts
from paddock.host.calls.knowledge import DocumentOriginals
from paddock.knowledge import bases as bases_module
from paddock.knowledge import ingest as ingest_module
from paddock.knowledge.bases import Bases
from paddock.knowledge.ingest import Embed, Ingest
from paddock.ports.knowledge import JobRow, Passage, StoredChunk
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.people import Payer
from paddock.rules.values import replace
from stores import QuickBlobs

pytestmark = pytest.mark.anyio
ANN = Payer("w", "ann")


class House:
    """Both halves over one store; the test does the jobs itself."""

    def __init__(self, both: Both, embed: Embed | None = None, room: int = 1 << 30) -> None:
        self.both = both
        self.blobs = QuickBlobs()
        limits = ArtifactLimits(workspace_bytes=room)
        artifacts = Artifacts(both.store, self.blobs, clock=time.time, limits=limits)
        originals = DocumentOriginals(artifacts, both.store, self.blobs)
        self.ingest = Ingest(both.knowledge, embed=embed, originals=originals)
        self.bases = Bases(both.knowledge, self.ingest, embed=embed, originals=originals)

    async def kept(self) -> dict[str, bytes]:
        """The originals that are listed, by name, and their bytes."""
        found: dict[str, bytes] = {}
        for file in await self.bases.files("w"):
            row = await self.both.store.artifact(file.file_id)
            assert row is not None
            assert (row.workspace_id, row.user_id, row.conversation_id, row.expires_at) == ("w", None, None, None)
            found[file.name] = await self.blobs.read(row.sha256, 0, row.size)
        return found

    async def add(self, name: str, content: str | bytes, **metadata: Any) -> JobRow:
        raw = content.encode() if isinstance(content, str) else content
        job = await self.bases.add(ANN, "kb", name, raw, AUDIT, metadata)
        await self.ingest.do(job)
        return await self.bases.job("w", "kb", job.job_id)

    async def ask(self, query: str, top_k: int = 5, **filters: Any) -> Sequence[Passage]:
        return await self.bases.retrieve(ANN, "kb", query, top_k=top_k, filters=filters)


@pytest.fixture(params=PLUGS)
async def both(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Both]:
    with open_plug(request.param, tmp_path) as store:
        await store.open()
        yield both_of(store)
        await store.close()


@pytest.fixture
async def house(both: Both) -> House:
    house = House(both)
    await house.bases.create("w", "kb", AUDIT)
    return house


async def test_a_document_is_found_with_the_place_it_stands_at(house: House) -> None:
    job = await house.add("手册.md", "# 手册\n\n## 请假\n员工每年有十五天年假。\n\n## 出差\n先订火车。", year=2026)
    assert (job.status, job.done, job.total) == ("completed", 3, 3)
    (best, *_) = await house.ask("年假有几天")
    assert "十五天年假" in best.text
    assert 0 < best.score <= 1
    assert best.metadata["document"] == "手册.md"
    assert best.metadata["heading"] == "手册 > 请假"
    assert best.metadata["metadata"] == {"year": 2026}
    assert best.metadata["end"] - best.metadata["start"] == len(best.text)


async def test_a_page_of_a_pdf_is_cited(house: House) -> None:
    await house.add("a.pdf", a_pdf("Nothing here", "Trains leave at noon"))
    (best,) = await house.ask("trains noon")
    assert (best.metadata["page"], best.metadata["media_type"]) == (2, "application/pdf")


async def test_the_same_content_is_never_there_twice(house: House) -> None:
    await house.add("a.txt", "needle")
    again = await house.add("a.txt", "needle")
    copy = await house.add("b.txt", "needle")
    assert [job.message for job in (again, copy)] == ["unchanged: a.txt has the same content"] * 2
    assert len(await house.ask("needle")) == 1
    assert len(await house.bases.documents("w", "kb", after="", limit=10)) == 1


async def test_a_new_version_replaces_the_old_one(house: House) -> None:
    await house.add("a.txt", "old needle")
    await house.add("a.txt", "new needle")
    assert [passage.text for passage in await house.ask("needle")] == ["new needle"]


async def test_what_cannot_be_read_fails_its_job_with_a_sentence(house: House) -> None:
    failed = await house.add("a.pdf", b"%PDF-1.4 rubbish")
    assert failed.status == "failed"
    assert "damaged" in failed.message
    empty = await house.add("a.txt", "  \n ")
    assert "has no text" in empty.message
    assert await house.ask("rubbish") == []


async def test_delete_deletes(house: House) -> None:
    job = await house.add("a.txt", "needle")
    await house.bases.delete_document("w", "kb", job.document_id, AUDIT)
    assert await house.ask("needle") == []
    await house.add("a.txt", "needle")
    await house.bases.delete("w", "kb", AUDIT)
    with pytest.raises(HostError) as refused:
        await house.ask("needle")
    assert refused.value.code is ErrorCode.NOT_FOUND


async def test_documents_on_their_way_in_are_told_of_their_own_base_until_they_have_arrived(house: House) -> None:
    await house.bases.create("w", "other", AUDIT)
    jobs = [await house.bases.add(ANN, "kb", f"{name}.txt", name.encode(), AUDIT, {}) for name in ("a", "b")]
    assert [job.name for job in await house.bases.on_their_way("w", "kb")] == ["a.txt", "b.txt"]
    assert await house.bases.on_their_way("w", "other") == []
    await house.ingest.do(jobs[0])
    assert [job.name for job in await house.bases.on_their_way("w", "kb")] == ["b.txt"]
    with pytest.raises(HostError) as refused:
        await house.bases.on_their_way("elsewhere", "kb")
    assert refused.value.code is ErrorCode.NOT_FOUND


async def test_a_job_goes_on_after_a_restart_where_it_stopped(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest_module, "PART", 2)
    house = House(both)
    await house.bases.create("w", "kb", AUDIT)
    sentences = "\n\n".join(f"# H{n}\nneedle number {n}" for n in range(7))
    await house.bases.add(ANN, "kb", "a.md", sentences.encode(), AUDIT, {})
    (job,) = await both.knowledge.unfinished_jobs()

    written: list[int] = []
    real = both.knowledge.add_chunks

    async def dies_in_the_middle(job: JobRow, chunks: Sequence[StoredChunk]) -> None:
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(len(chunks))
        await real(job, chunks)

    monkeypatch.setattr(both.knowledge, "add_chunks", dies_in_the_middle)
    with pytest.raises(KeyboardInterrupt):
        await house.ingest.do(job)
    await both.store.close()

    await both.store.open()
    monkeypatch.undo()
    house = House(both)
    (left,) = await both.knowledge.unfinished_jobs()
    assert (left.status, left.done, left.total) == ("running", 4, 7)
    assert (await house.ingest.do(left)).status == "completed"
    assert len(await house.ask("needle", top_k=20)) == 7


async def meaning(
    payer: Payer, model_id: str, texts: Sequence[str], *, deadline_at: float
) -> Sequence[Sequence[float]]:
    """A model of three meanings: animals, weather, and whatever else."""
    words = {"dog": 0, "puppy": 0, "hound": 0, "rain": 1, "storm": 1}
    vectors: list[list[float]] = []
    for text in texts:
        noise = int(hashlib.sha256(text.encode()).hexdigest()[:4], 16) / 1e7
        vector = [noise, noise, 0.1]
        for word, place in words.items():
            vector[place] += text.lower().count(word)
        vectors.append(vector)
    return vectors


async def test_with_an_embedding_model_meaning_finds_what_words_do_not(both: Both) -> None:
    paid: list[Payer] = []

    async def embed(payer: Payer, model_id: str, texts: Sequence[str], *, deadline_at: float) -> Any:
        paid.append(payer)
        return await meaning(payer, model_id, texts, deadline_at=deadline_at)

    house = House(both, embed)
    await house.bases.create("w", "kb", AUDIT, model="embedder")
    await house.add("a.txt", "The hound sleeps.")
    assert paid == [ANN], "who brought a document in uses the model for it"
    await house.add("b.txt", "A storm is coming.")
    best = await house.ask("puppy", top_k=1)
    assert [passage.text for passage in best] == ["The hound sleeps."]
    both_ways = await house.ask("storm hound")
    assert {passage.text for passage in both_ways} == {"The hound sleeps.", "A storm is coming."}
    assert [p.text for p in await house.ask("puppy", documents=["b.txt"])] == ["A storm is coming."]
    await house.add("a.txt", "Nothing of the kind any more.")
    assert "The hound sleeps." not in {passage.text for passage in await house.ask("puppy")}


async def test_while_the_embedding_model_is_down_words_still_find_and_what_they_do_not_find_is_an_error(
    both: Both,
) -> None:
    house = House(both, meaning)
    await house.bases.create("w", "kb", AUDIT, model="embedder")
    await house.add("a.txt", "The hound sleeps.")
    down = House(both, absent)
    assert [passage.text for passage in await down.ask("hound")] == ["The hound sleeps."]
    with pytest.raises(HostError, match="embedder is down"):
        await down.ask("puppy")


async def absent(payer: Payer, model_id: str, texts: Sequence[str], *, deadline_at: float) -> Sequence[Sequence[float]]:
    raise HostError(ErrorCode.RUNTIME_ERROR, f"{model_id} is down", retryable=True)


async def test_a_base_that_wants_vectors_says_so_when_there_is_no_model(house: House) -> None:
    await house.bases.create("w", "vectors", AUDIT, model="embedder")
    job = await house.bases.add(ANN, "vectors", "a.txt", b"needle", AUDIT, {})
    assert "embedder" in (await house.ingest.do(job)).message


@pytest.mark.parametrize(
    ("name", "content", "metadata", "code"),
    [
        ("", b"x", {}, ErrorCode.INVALID_ARGUMENT),
        ("a\n", b"x", {}, ErrorCode.INVALID_ARGUMENT),
        ("a", b"", {}, ErrorCode.INVALID_ARGUMENT),
        ("a", b"x" * (32 * 1024 * 1024 + 1), {}, ErrorCode.PAYLOAD_TOO_LARGE),
        ("a", b"x", {"k": "v" * 20_000}, ErrorCode.PAYLOAD_TOO_LARGE),
    ],
)
async def test_a_document_has_a_name_some_content_and_a_size(
    house: House, name: str, content: bytes, metadata: dict[str, str], code: ErrorCode
) -> None:
    with pytest.raises(HostError) as refused:
        await house.bases.add(ANN, "kb", name, content, AUDIT, metadata)
    assert refused.value.code is code


@pytest.mark.parametrize(
    ("query", "top_k", "filters"),
    [
        (" ", 5, {}),
        ("x", 0, {}),
        ("x", 101, {}),
        ("x", 5, {"author": "me"}),
        ("x", 5, {"documents": "a.txt"}),
        ("x", 5, {"metadata": []}),
    ],
)
async def test_a_question_that_cannot_be_meant_is_refused(
    house: House, query: str, top_k: int, filters: dict[str, Any]
) -> None:
    with pytest.raises(HostError) as refused:
        await house.ask(query, top_k, **filters)
    assert refused.value.code is ErrorCode.INVALID_ARGUMENT


@pytest.mark.parametrize("kb_id", ["", "Big", "a b", "-a", "x" * 65, "../x"])
async def test_an_id_is_short_and_plain(house: House, kb_id: str) -> None:
    with pytest.raises(HostError) as refused:
        await house.bases.create("w", kb_id, AUDIT)
    assert refused.value.code is ErrorCode.INVALID_ARGUMENT


async def test_workspaces_with_documents_take_turns(house: House) -> None:
    await house.bases.create("x", "kb", AUDIT)
    for number in range(4):
        await house.bases.add(ANN, "kb", f"w{number}.txt", f"w{number}".encode(), AUDIT, {})
    await house.bases.add(replace(ANN, workspace_id="x"), "kb", "x.txt", b"x", AUDIT, {})
    order: list[str] = []
    while (job := await house.ingest.next_job()) is not None:
        order.append((await house.ingest.do(job)).name)
    assert order == ["w0.txt", "x.txt", "w1.txt", "w2.txt", "w3.txt"]


async def test_the_documents_that_wait_are_bounded_for_a_workspace_and_leave_room_for_another(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bases_module, "MAX_WAITING_JOBS", 2)
    monkeypatch.setattr(bases_module, "MAX_JOBS", 3)
    await house.bases.create("x", "kb", AUDIT)
    other = replace(ANN, workspace_id="x")
    for payer, name, room in ((ANN, "a", True), (ANN, "b", True), (ANN, "c", False), (other, "d", True)):
        adding = house.bases.add(payer, "kb", f"{name}.txt", name.encode(), AUDIT, {})
        with nullcontext() if room else pytest.raises(HostError, match="too many documents"):
            await adding
    with pytest.raises(HostError, match="too many documents"):  # room for one more of this workspace, and none in all
        await house.bases.add(other, "kb", "e.txt", b"e", AUDIT, {})


# --- originals --------------------------------------------------------------------------------------------------------


async def test_the_original_of_a_document_is_kept_and_goes_with_it(house: House) -> None:
    page = a_pdf("Trains leave at nine.")
    await house.add("a.txt", "one")
    job = await house.add("b.pdf", page)
    assert await house.kept() == {"a.txt": b"one", "b.pdf": page}
    assert await house.both.store.artifact_bytes("w") == 3 + len(page)
    await house.bases.delete_document("w", "kb", job.document_id, AUDIT)
    assert await house.kept() == {"a.txt": b"one"}
    assert await house.both.store.artifact_bytes("w") == 3
    with pytest.raises(HostError):
        await house.blobs.read(hashlib.sha256(page).hexdigest(), 0, 1)
    await house.add("a.txt", "another")
    assert await house.kept() == {"a.txt": b"another"}, "the new version took its place"
    assert await house.both.store.artifact_bytes("w") == 7
    await house.bases.delete("w", "kb", AUDIT)
    await house.both.knowledge.sweep()
    assert (await house.kept(), await house.both.store.artifact_bytes("w")) == ({}, 0)
    with pytest.raises(HostError):
        await house.blobs.read(hashlib.sha256(b"another").hexdigest(), 0, 1)


async def test_a_document_for_whose_original_there_is_no_room_is_refused(both: Both) -> None:
    house = House(both, room=10)
    await house.bases.create("w", "kb", AUDIT)
    assert (await house.add("small.txt", "12345")).status == "completed"
    job = await house.add("large.txt", "1234567")
    assert (job.status, "room" in job.message or "more than" in job.message) == ("failed", True), job.message
    assert list(await house.kept()) == ["small.txt"]
    assert [row.name for row in await house.bases.documents("w", "kb", after="", limit=10)] == ["small.txt"]


async def test_a_document_of_an_earlier_version_gets_its_original_when_it_is_added_again(both: Both) -> None:
    house = House(both)
    before = Ingest(both.knowledge)
    await house.bases.create("w", "kb", AUDIT)
    await before.do(await house.bases.add(ANN, "kb", "a.txt", b"as before", AUDIT, {}))
    assert await house.kept() == {}
    assert (await house.add("a.txt", "as before")).message.startswith("unchanged")
    assert await house.kept() == {"a.txt": b"as before"}
