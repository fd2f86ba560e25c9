"""`python -m bench.history`: pages and searches of one long conversation in a large database, as a runner gets them.

Ten conversations of 100,000 items (one with `--quick`) in one SQLite file, or with `--store` in the PostgreSQL
database that it names (`new` starts one), written through the store like everything else. Each figure is the time from
the host call's work to the answer as JSON; the gate and the pipe to the runner are not in it. CPU time is this
process's: a database server's own is only in the wall time.
"""

import argparse
import asyncio
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import uvloop

from bench.report import Figure, Target
from bench.stores import address
from paddock.host.calls.history import History
from paddock.ports import Batch, Store
from paddock.rules.access.permissions import Grant, RunScope
from paddock.rules.log.chain import SALTS_BYTES, Head, seal
from paddock.rules.log.events import Place, cursor_of
from paddock.rules.rows.rows import SessionRow, TranscriptRow, View
from paddock.rules.session.facts import Event, Fact
from paddock.rules.session.facts import Target as To
from paddock.storage.chosen import store_at
from paddock_sdk.protocol.history import HistoryPage, HistorySearchResult
from paddock_sdk.protocol.host_calls import HistoryPageParams, HistorySearchParams

LENGTH = 100_000
"""Items in one conversation."""
CONVERSATIONS = 10
PER_APPEND = 200
COMMON = "的了我你是不在有这他们说就也都和会要去看好来到时候天气公司工作项目今天明天问题方案讨论会议报告"
ENGLISH = ["the", "project", "report", "meeting", "deploy", "server", "error", "weather", "send", "review", "plan"]
RARE = ["青花瓷", "量子纠缠", "kubernetes", "Zürich", "蓝鲸"]

Times = tuple[float, float, float, int]
"""p50 and p95 of the wall, p50 of CPU time (all threads), in milliseconds; items that came altogether."""
PAGE, SEARCH = "page of 100 rows", "search, 20 newest"
TARGETS = {PAGE: Target(at_most=3.0, of="host"), SEARCH: Target(at_most=5.0, of="host")}


def sentence(chance: random.Random) -> str:
    """About 25 characters of mixed Chinese and English; a rare word once in some two thousand."""
    words = ["".join(chance.choices(COMMON, k=chance.randint(4, 14))) for _ in range(2)]
    words.insert(1, chance.choice(ENGLISH))
    if chance.random() < 0.0005:
        words.append(chance.choice(RARE))
    return " ".join(words)


async def fill(store: Store, conversations: int, length: int) -> None:
    await asyncio.gather(*(talk(store, number, length) for number in range(conversations)))


async def talk(store: Store, number: int, length: int) -> None:
    chance = random.Random(number)
    session_id = f"conversation-{number}"
    claim = await store.claim(session_id)
    head = claim.head
    for _ in range(0, length, PER_APPEND):
        head = await append(store, session_id, claim.epoch, head, chance)


async def append(store: Store, session_id: str, epoch: int, head: Head, chance: random.Random) -> Head:
    facts = [Fact(Event.USER_INPUT, "", To.SYSTEM, "user:b", payload={"n": n}) for n in range(PER_APPEND)]
    sealed, after = seal(head, facts, chance.randbytes(SALTS_BYTES * len(facts)))
    opening = [SessionRow(session_id, "w", "u", 0.0)] if not head.seq else []
    rows = [row_of(session_id, fact.seq, sentence(chance)) for fact in sealed]
    await store.append(Batch(session_id, epoch, head, after, sealed, [*opening, *rows]))
    return after


def row_of(session_id: str, seq: int, text: str) -> TranscriptRow:
    return TranscriptRow(session_id, seq, f"i{seq}", "run", "user", "message", None, text, b"", float(seq), b"")


async def timed(rounds: int, one: Callable[[], Awaitable[int]]) -> Times:
    took: list[float] = []
    cpu: list[float] = []
    items = 0
    for _ in range(rounds):
        start, spent = time.perf_counter(), time.process_time()
        items += await one()
        took.append((time.perf_counter() - start) * 1000)
        cpu.append((time.process_time() - spent) * 1000)
    return statistics.median(took), statistics.quantiles(took, n=20)[18], statistics.median(cpu), items


def as_sent(answer: HistoryPage | HistorySearchResult) -> int:
    """Written as the gate writes it; how many items there were."""
    assert answer.__pydantic_serializer__.to_json(answer, exclude_none=True)
    return len(answer.items)


class Asker:
    """One runner after another, each in one of the conversations."""

    def __init__(self, store: Store, conversations: int, length: int) -> None:
        self.chance = random.Random(11)
        self._history = History(store)
        self._length = length
        none: frozenset[str] = frozenset()
        scopes = (RunScope("r", "w", "u", "a", f"conversation-{n}") for n in range(conversations))
        self._grants = [Grant("p", none, none, none, scope=scope, deadline_at=1e12) for scope in scopes]

    async def page(self) -> int:
        grant, place = self.chance.choice(self._grants), Place(self.chance.randint(200, self._length))
        cursor = cursor_of(place, grant.scope.session_id, View())
        asked = HistoryPageParams(run_id="r", limit=100, before_cursor=cursor)
        answer = await self._history.page(grant, asked)
        return as_sent(answer)

    async def search(self, words: str, grant: Grant | None = None) -> int:
        asked = HistorySearchParams(run_id="r", query=words, top_k=20)
        answer = await self._history.search(grant or self.chance.choice(self._grants), asked)
        return as_sent(answer)

    async def have_all_indexed(self) -> None:
        """The first search of a conversation has what is missing indexed."""
        for grant in self._grants:
            await self.search("方案", grant)

    def queries(self) -> dict[str, Callable[[], str]]:
        chance = self.chance
        return {
            "two characters": lambda: "".join(chance.choices(COMMON, k=2)),
            "one character": lambda: chance.choice(COMMON),
            "four characters": lambda: "".join(chance.choices(COMMON, k=4)),
            "a frequent English word": lambda: chance.choice(ENGLISH),
            "two words": lambda: f"{chance.choice(ENGLISH)} {''.join(chance.choices(COMMON, k=2))}",
            "a rare word": lambda: chance.choice(RARE),
            "frequent words that never meet": lambda: " ".join(chance.sample(ENGLISH, 2)),
        }


async def measure(store: Store, conversations: int, length: int, rounds: int) -> dict[str, Times]:
    """How long each kind of question took."""
    await store.open()
    began = time.perf_counter()
    await fill(store, conversations, length)
    print(f"  filled in {time.perf_counter() - began:.0f} s; waiting for the index", file=sys.stderr)
    asker = Asker(store, conversations, length)
    await asker.have_all_indexed()
    print(f"  indexed after {time.perf_counter() - began:.0f} s", file=sys.stderr)
    told = {PAGE: await timed(rounds, asker.page)}
    for name, words in asker.queries().items():
        told[f"{SEARCH}: {name}"] = await timed(rounds, lambda words=words: asker.search(words()))
    await store.close()
    return told


def found(
    conversations: int, rounds: int, store: str, directory: Path | None = None, length: int = LENGTH
) -> dict[str, Times]:
    with tempfile.TemporaryDirectory(prefix="paddock-history-", dir=directory) as work, address(store) as at:
        return uvloop.run(measure(store_at(at, Path(work)), conversations, length, rounds))


def figures_of(told: Mapping[str, Times], items: int, store: str) -> list[Figure]:
    """The page and each kind of search, with the targets."""
    figures: list[Figure] = []
    for name, (p50, *_) in told.items():
        where = f"at {items:,} items" if name == PAGE else f"in {LENGTH:,}"
        figures.append(Figure(f"{name}, {where}, p50, {store}", "ms", host=p50, target=TARGETS[name.split(":")[0]]))
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.history", description=__doc__)
    parser.add_argument("--conversations", type=int, default=CONVERSATIONS, help=f"each of {LENGTH:,} items")
    parser.add_argument("--rounds", type=int, default=200, help="calls per figure")
    parser.add_argument("--quick", action="store_true", help="one conversation: a first look")
    parser.add_argument("--store", default="embedded", help="postgresql://..., or new for a server of its own")
    parser.add_argument("--dir", type=Path, help="where the database lives while measuring")
    options = parser.parse_args()
    conversations = 1 if options.quick else options.conversations
    told = found(conversations, options.rounds, options.store, options.dir)
    print(f"{conversations} conversations of {LENGTH:,} items, load average {os.getloadavg()[0]:.1f}")
    print(f"{'':<52} {'p50 ms':>8} {'p95 ms':>8} {'CPU p50':>8} {'items':>7}  target")
    for name, (p50, p95, cpu, count) in told.items():
        print(f"{name:<52} {p50:8.2f} {p95:8.2f} {cpu:8.2f} {count:7d}  {TARGETS[name.split(':')[0]]} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
