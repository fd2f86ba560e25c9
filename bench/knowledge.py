"""`python -m bench.knowledge`: passages from a base of 10,000 chunks, as a runner gets them.

The base is written through the store like everything else. Each figure is the time from the host call's work to the
answer as JSON values; the gate and the pipe to the runner are not in it.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from bench.history import COMMON, ENGLISH, RARE, Times, timed
from bench.verdicts import Line, shown
from paddock.host.calls.knowledge import KnowledgeCalls
from paddock.knowledge.bases import Bases
from paddock.knowledge.ingest import Ingest
from paddock.knowledge.vectors import packed
from paddock.ports.knowledge import DocumentRow, JobRow, KnowledgeStore, StoredChunk
from paddock.rules.access.permissions import Grant, RunScope
from paddock.rules.people import Payer
from paddock.rules.rows.rows import AuditRow
from paddock.rules.search.passages import Chunk
from paddock.rules.search.tokens import tokens_of
from paddock.rules.values import replace
from paddock.storage.chosen import knowledge_in
from paddock.storage.sqlite import SqliteStore
from paddock_sdk.protocol.host_calls import KnowledgeRetrieveParams

AUDIT = AuditRow(0.0, "w", "bench", "bench", "kb", "w", "allowed", "bench")
TARGET_MS = 20.0
DIMENSIONS = 384
PER_DOCUMENT = 100


async def embed(
    payer: Payer,  # noqa: ARG001
    model_id: str,  # noqa: ARG001
    texts: Sequence[str],
    *,
    deadline_at: float,  # noqa: ARG001
) -> Sequence[Sequence[float]]:
    chances = [random.Random(text) for text in texts]
    return [[chance.random() - 0.5 for _ in range(DIMENSIONS)] for chance in chances]


def passage(chance: random.Random) -> str:
    """About 700 characters of mixed Chinese and English."""
    words: list[str] = []
    for _ in range(35):
        words.append("".join(chance.choices(COMMON, k=chance.randint(4, 14))) + "，")
        words.append(chance.choice(ENGLISH) + " ")
    if chance.random() < 0.01:
        words.append(chance.choice(RARE))
    return "".join(words)


async def fill(kept: KnowledgeStore, kb_id: str, chunks: int, chance: random.Random, *, vectors: bool) -> None:
    for number in range(chunks // PER_DOCUMENT):
        name = f"{kb_id}-{number}"
        job = JobRow(f"job-{name}", "w", kb_id, f"doc-{name}", name, name, 1, 0.0, total=PER_DOCUMENT)
        await kept.add_job(job, b"source", AUDIT)
        await kept.begin(job, DocumentRow(job.document_id, name, "text/plain", name, 1, 0.0))
        texts = [passage(chance) for _ in range(PER_DOCUMENT)]
        made = [[chance.gauss(0, 1) for _ in range(DIMENSIONS)] for _ in texts] if vectors else []
        blobs = packed(made, len(texts)) if vectors else [b""] * len(texts)
        stored = [
            StoredChunk(Chunk(n, text, 0, len(text)), " ".join(tokens_of(text)), blob)
            for n, (text, blob) in enumerate(zip(texts, blobs, strict=True))
        ]
        await kept.add_chunks(job, stored)
        await kept.finish(replace(job, status="completed"))


async def measure(directory: Path, chunks: int, rounds: int) -> list[tuple[str, Times]]:
    store = SqliteStore(directory)
    await store.open()
    kept = knowledge_in(store)
    bases = Bases(kept, Ingest(kept, embed=embed), embed=embed)
    chance = random.Random(7)
    began = time.perf_counter()
    for kb_id, model in (("words", ""), ("vectors", "bench")):
        await bases.create("w", kb_id, AUDIT, model=model)
        await fill(kept, kb_id, chunks, chance, vectors=bool(model))
    print(f"  filled in {time.perf_counter() - began:.0f} s", file=sys.stderr)
    none: frozenset[str] = frozenset()
    grant = Grant("p", none, none, none, scope=RunScope("r", "w", "u", "a", "c"), deadline_at=1e12)
    calls = KnowledgeCalls(bases)

    def asking(kb_id: str, words: Callable[[], str]) -> Callable[[], Awaitable[int]]:
        async def one() -> int:
            asked = KnowledgeRetrieveParams(run_id="r", kb_id=kb_id, query_text=words())
            return len((await calls.retrieve(grant, asked)).model_dump(mode="json")["results"])

        return one

    queries: dict[str, Callable[[], str]] = {
        "a rare word": lambda: chance.choice(RARE),
        "two characters": lambda: "".join(chance.choices(COMMON, k=2)),
        "a question of 12 characters": lambda: "".join(chance.choices(COMMON, k=12)),
        "a question, Chinese and English": lambda: f"{''.join(chance.choices(COMMON, k=6))} {chance.choice(ENGLISH)}",
    }
    told: list[tuple[str, Times]] = []
    for kb_id in ("words", "vectors"):
        for name, words in queries.items():
            figure = await timed(rounds, asking(kb_id, words))
            told.append((f"retrieve, {kb_id}: {name}", figure))
    await store.close()
    return told


def lines_of(told: Sequence[tuple[str, Times]]) -> list[Line]:
    return [
        Line(f"{name}, p50 (CPU {cpu:.2f} ms)", f"{p50:.2f} ms", f"< {TARGET_MS:g} ms", p50 < TARGET_MS)
        for name, (p50, _, cpu, _) in told
    ]


def run(*, quick: bool, directory: Path | None = None, chunks: int = 10_000) -> None:
    with tempfile.TemporaryDirectory(prefix="paddock-knowledge-", dir=directory) as work:
        told = asyncio.run(measure(Path(work), chunks, 40 if quick else 100))
    print(f"{chunks:,} chunks in each base")
    print(shown(lines_of(told)))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.knowledge", description=__doc__)
    parser.add_argument("--chunks", type=int, default=10_000, help="in each of two bases, one with vectors")
    parser.add_argument("--quick", action="store_true", help="fewer calls: a first look")
    parser.add_argument("--dir", type=Path, help="where the database lives while measuring")
    options = parser.parse_args()
    run(quick=options.quick, directory=options.dir, chunks=options.chunks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
