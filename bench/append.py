"""`python -m bench.append`: how many facts per second become durable, on each store, with 32 producers.

Each producer owns a session and appends one fact with its audit row at a time, and waits until it is on disk: what a
gate does for a runner, without the gate. PostgreSQL is started for the occasion with fsync on, unless `--store` names
one.
"""

import argparse
import asyncio
import resource
import statistics
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import uvloop

from paddock.host.ids import random_bytes
from paddock.ports import Batch, Store
from paddock.rules.log.chain import SALTS_BYTES, Head, seal
from paddock.rules.rows.rows import AuditRow, Row, SessionRow
from paddock.rules.session.facts import Event, Fact, Target
from paddock.storage.chosen import store_at
from postgres_server import new_server

TEXT = "x" * 200


class Producer:
    """Appends as fast as the store acknowledges, and notes how long each took."""

    def __init__(self, store: Store, session_id: str) -> None:
        self.seconds: list[float] = []
        self._store = store
        self._session_id = session_id

    async def produce(self, until: float) -> None:
        claim = await self._store.claim(self._session_id)
        head = claim.head
        rows: list[Row] = [SessionRow(self._session_id, "bench", "bench", 1.0)]
        while (begin := time.perf_counter()) < until:
            head = await self._append(claim.epoch, head, rows)
            rows = []
            self.seconds.append(time.perf_counter() - begin)

    async def _append(self, epoch: int, head: Head, rows: list[Row]) -> Head:
        fact = Fact(Event.USER_INPUT, "", Target.SYSTEM, "user:bench", turn_id="turn", payload={"text": TEXT}, time=1.0)
        facts, after = seal(head, [fact], random_bytes(SALTS_BYTES))
        decision = AuditRow(1.0, "bench", "agent:a", "bench.append", "log", self._session_id, "allowed", "granted")
        await self._store.append(Batch(self._session_id, epoch, head, after, facts, [*rows, decision]))
        return after


async def measure(store: Store, producers: int, seconds: float) -> str:
    await store.open()
    try:
        await _produce(store, "warm", producers, min(1.0, seconds))
        before = _cpu()
        begin = time.perf_counter()
        took = await _produce(store, "measured", producers, seconds)
        rate = len(took) / (time.perf_counter() - begin)
        return (
            f"{rate:8,.0f} facts/s   p50 {statistics.median(took) * 1000:6.2f} ms   "
            f"p99 {statistics.quantiles(took, n=100)[98] * 1000:6.2f} ms   "
            f"host CPU {(_cpu() - before) / len(took) * 1e6:5.0f} us/fact"
        )
    finally:
        await store.close()


async def _produce(store: Store, name: str, count: int, seconds: float) -> list[float]:
    producers = [Producer(store, f"{name}-{number}") for number in range(count)]
    until = time.perf_counter() + seconds
    await asyncio.gather(*(producer.produce(until) for producer in producers))
    return [one for producer in producers for one in producer.seconds]


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


@contextmanager
def _address(given: str | None) -> Generator[str]:
    if given is not None:
        yield given
        return
    server = new_server(fsync="on")
    try:
        yield server.new_database()
    finally:
        server.let_go()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.append", description="Durable appends per second.")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--producers", type=int, default=32)
    parser.add_argument("--store", help="postgresql://... instead of a server of its own")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, _address(options.store) as address:
        for name, where in (("SQLite", "embedded"), ("PostgreSQL", address)):
            store = store_at(where, Path(directory))
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                print(f"{name:12}", runner.run(measure(store, options.producers, options.seconds)), flush=True)


if __name__ == "__main__":
    main()
