"""`python -m bench.history_day`: one day of a long conversation, as a person's client asks for it over HTTP.

A thread of 100,000 items, 200 a day, is written through the store into a data directory; then the host is started on
it as a person would, and days are asked for at random. Every tenth answer carries a card, every tenth message a file.
"""

import argparse
import asyncio
import http.client
import json
import random
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from bench.paddock import paddock_launch
from bench.servers import Server, cpu_of, serving
from bench.verdicts import Line, shown
from paddock.host.ids import random_bytes
from paddock.host.people.principals import DEV
from paddock.ports import Batch, Store
from paddock.rules.log.chain import SALTS_BYTES, seal
from paddock.rules.rows.rows import SessionRow, TranscriptRow
from paddock.rules.session.facts import Event, Fact, Target
from paddock.rules.ui_schema.compiler import compile_hints
from paddock.settings import EMBEDDED
from paddock.storage.chosen import store_at

TARGET_MS = 10.0
ITEMS, PER_DAY = 100_000, 200
FIRST_DAY = datetime(2024, 1, 1, tzinfo=UTC)
THREAD = str(uuid.UUID(int=7))
CARD = compile_hints([{"type": "fields", "title": "Order", "items": [{"label": "state", "value": "sent"}]}]).document
SENTENCE = "The parcel left the house this morning and will be with you tomorrow. 明天到。 "


def rows_of(seqs: range) -> Iterator[TranscriptRow]:
    for seq in seqs:
        index = seq - 1
        at = FIRST_DAY + timedelta(days=index // PER_DAY, seconds=120 * (index % PER_DAY))
        yield _user(seq, at) if index % 2 == 0 else _assistant(seq, at)


def _user(seq: int, at: datetime) -> TranscriptRow:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": SENTENCE}]
    if seq % 20 == 1:
        blocks.append({"type": "binary", "id": f"artifact-{seq}", "mimeType": "image/png", "filename": "a.png"})
    whole = msgspec.json.encode({"role": "user", "content": blocks})
    about = msgspec.json.encode({"message_id": f"m{seq}"})
    return TranscriptRow(
        THREAD, seq, f"i{seq}", f"r{seq}", "user", "message", None, SENTENCE, whole, at.timestamp(), about
    )


def _assistant(seq: int, at: datetime) -> TranscriptRow:
    about = msgspec.json.encode({"ui_schema": CARD}) if seq % 20 == 0 else b""
    return TranscriptRow(
        THREAD, seq, f"i{seq}", f"r{seq}", "assistant", "message", "bench", SENTENCE * 4, b"", at.timestamp(), about
    )


async def fill(store: Store, items: int) -> None:
    await store.open()
    claim = await store.claim(THREAD)
    head = claim.head
    while head.seq < items:
        facts = [Fact(Event.USER_INPUT, "", Target.SYSTEM, "user:b", payload={"n": n}) for n in range(PER_DAY)]
        sealed, after = seal(head, facts, random_bytes(SALTS_BYTES * len(facts)))
        opening = [] if head.seq else [SessionRow(THREAD, DEV.workspace_id, DEV.user_id, FIRST_DAY.timestamp())]
        rows = [*opening, *rows_of(range(sealed[0].seq, sealed[-1].seq + 1))]
        await store.append(Batch(THREAD, claim.epoch, head, after, sealed, rows))
        head = after
    await store.close()


def ask(connection: http.client.HTTPConnection, day: date) -> tuple[float, int]:
    """Milliseconds, and how many messages came."""
    begun = time.perf_counter()
    connection.request("GET", f"/api/v1/agent/history?threadId={THREAD}&before={day + timedelta(days=1)}")
    answer = connection.getresponse()
    body = answer.read()
    took = (time.perf_counter() - begun) * 1000
    found = json.loads(body)
    if answer.status != 200 or found["day"] != day.isoformat():
        raise SystemExit(f"asked for {day} and got {answer.status}: {body[:200]!r}")
    return took, len(found["messages"])


def measure(server: Server, rounds: int, days: int) -> list[Line]:
    chance = random.Random(5)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    first = FIRST_DAY.date()
    for _ in range(20):
        ask(connection, first + timedelta(days=chance.randrange(days)))
    before = cpu_of(server.process)
    pages = [ask(connection, first + timedelta(days=chance.randrange(days))) for _ in range(rounds)]
    cpu = (cpu_of(server.process) - before) / rounds * 1000
    if any(count != PER_DAY for _, count in pages):
        raise SystemExit("a day came with other than its 200 messages")
    took = sorted(page[0] for page in pages)
    p50, p95 = statistics.median(took), took[int(0.95 * len(took))]
    name = f"a day of {PER_DAY} items from a thread of {days * PER_DAY:,}, over HTTP"
    return [
        Line(f"{name}, p50", f"{p50:.2f} ms", f"< {TARGET_MS:g} ms", p50 < TARGET_MS),
        Line(f"{name}, p95", f"{p95:.2f} ms"),
        Line("CPU of the host for one", f"{cpu:.2f} ms"),
    ]


def run(*, quick: bool, directory: Path | None = None) -> None:
    with tempfile.TemporaryDirectory(prefix="paddock-bench-", dir=directory) as place:
        work = Path(place)
        launch = paddock_launch(work)
        (work / "data").mkdir()
        asyncio.run(fill(store_at(EMBEDDED, work / "data"), ITEMS))
        with serving(launch, work / "host.log") as server:
            print(shown(measure(server, 100 if quick else 400, ITEMS // PER_DAY)))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.history_day", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    run(quick=parser.parse_args().quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
