"""`python -m bench.finding`: one user's conversations found by words, as the list of conversations asks for them.

10,000 conversations of ten messages each (1,000 with `--quick`) in one SQLite file, or with `--store` in the PostgreSQL
database that it names (`new` starts one), written through the store like everything else. First the index is filled,
which the first search does; then each figure is the time of one page of 30. CPU time is this process's.
"""

import argparse
import asyncio
import random
import tempfile
import time
from pathlib import Path

import uvloop

from bench.history import row_of, sentence, timed
from bench.stores import address
from paddock.ports import Batch, Store
from paddock.rules.log.chain import SALTS_BYTES, Head, seal
from paddock.rules.rows.rows import SessionDetailsRow, SessionRow
from paddock.rules.search.queries import ThreadQuery, thread_phrases
from paddock.rules.session.facts import Event, Fact, Target
from paddock.storage.chosen import store_at

CONVERSATIONS = 10_000
MESSAGES = 10
AT_ONCE = 200
ASKED = ("天气", "气", "weather", "wea", "project report", "kubernetes", "Zürich", "天气 量子纠缠", "nowhere")


async def fill(store: Store, conversations: int) -> None:
    for start in range(0, conversations, AT_ONCE):
        names = [f"conversation-{number}" for number in range(start, min(start + AT_ONCE, conversations))]
        await asyncio.gather(*(talk(store, name) for name in names))
        await store.write([SessionDetailsRow(name, title=f"Talk {name}") for name in names])


async def talk(store: Store, name: str) -> None:
    claim, chance = await store.claim(name), random.Random(name)
    facts = [Fact(Event.USER_INPUT, "", Target.SYSTEM, "user:b", payload={"n": n}) for n in range(MESSAGES)]
    sealed, after = seal(Head(), facts, chance.randbytes(SALTS_BYTES * len(facts)))
    rows = [row_of(name, fact.seq, sentence(chance)) for fact in sealed]
    await store.append(Batch(name, claim.epoch, Head(), after, sealed, [SessionRow(name, "w", "u", 0.0), *rows]))


async def find(store: Store, words: str) -> int:
    found = await store.find_sessions(ThreadQuery("w", "u", thread_phrases(words), limit=30))
    return len(found.threads) if found.complete else -1


async def measure(store: Store, conversations: int, rounds: int) -> None:
    await store.open()
    await fill(store, conversations)
    start, spent = time.perf_counter(), time.process_time()
    while await find(store, "nowhere") < 0:
        pass
    took, cpu = time.perf_counter() - start, time.process_time() - spent
    print(f"{conversations} conversations of {MESSAGES} messages; the index filled in {took:.1f} s, CPU {cpu:.1f} s")
    for words in ASKED:
        p50, p95, used, found = await timed(rounds, lambda words=words: find(store, words))
        print(f"{words:16} p50 {p50:6.2f} ms  p95 {p95:6.2f} ms  CPU {used:6.2f} ms  {found // rounds} found")
    await store.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.finding", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the conversations: a first look")
    parser.add_argument("--store", default="embedded", help="postgresql://..., or new for a server of its own")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="paddock-bench-") as place, address(given.store) as there:
        uvloop.run(measure(store_at(there, Path(place)), CONVERSATIONS // (10 if given.quick else 1), 40))


if __name__ == "__main__":
    main()
