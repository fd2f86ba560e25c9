"""Any interleaving of claims and appends over three sessions ends the same in every store."""

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.builders import Owner, a_run, an_item, delta, finished
from contracts.conftest import PLUGS, open_plug
from paddock.ports import Store
from paddock.rules.errors import HostError, StaleOwnerError
from paddock.rules.session.facts import Fact

SESSIONS = ("red", "green", "blue")


@dataclass(frozen=True)
class Claimed:
    session: str


@dataclass(frozen=True)
class Appended:
    """Somebody who claimed the session (`who` counts back from the newest owner) writes; the head may be wrong."""

    session: str
    who: int
    texts: tuple[str, ...]
    snapshot: bool
    finish: bool
    head_off_by: int


@dataclass
class World:
    store: Store
    owners: dict[str, list[Owner]] = field(default_factory=lambda: {name: [] for name in SESSIONS})

    async def claim(self, session: str) -> None:
        self.owners[session].append(await Owner.of(self.store, session))

    def writer(self, step: Appended) -> Owner:
        owners = self.owners[step.session]
        return owners[-1 - min(step.who, len(owners) - 1)]

    def is_stale(self, step: Appended) -> bool:
        """Has somebody claimed the session since the one who writes did?"""
        return self.writer(step) is not self.owners[step.session][-1]

    async def append(self, step: Appended) -> str:
        owner = self.writer(step)
        facts: list[Fact] = [delta(text) for text in step.texts]
        compacted = []
        first = owner.head.seq + step.head_off_by
        if step.finish and first > 0:
            facts.append(finished("".join(step.texts), first))
            compacted.append(("turn-1", first, owner.head.seq + len(step.texts)))
        rows = [a_run(f"run-{step.session}", last_seq=owner.head.seq), an_item(owner.head.seq, step.session)]
        try:
            await owner.write(*facts, rows=rows, snapshot=b"s" * step.snapshot, compacted=compacted)
        except (StaleOwnerError, HostError) as error:
            return type(error).__name__
        return "written"

    async def everything(self) -> list[object]:
        return [
            (
                await self.store.read(name),
                [await self.store.read(name, after=after) for after in range(1, 8)],
                await self.store.transcript(name),
                await self.store.transcript_count(name),
                await self.store.run(f"run-{name}"),
                [(c.head, c.session, c.snapshot, c.snapshot_seq, c.facts) for c in [await self.store.claim(name)]],
            )
            for name in SESSIONS
        ]


async def play(store: Store, rounds: Sequence[Sequence[Claimed | Appended]]) -> list[object]:
    """Claims are waited for; the appends of a round are handed over together, in order, one per session."""
    world, outcomes = World(store), list[object]()
    await store.open()
    for name in SESSIONS:
        await world.claim(name)
    for steps in rounds:
        for step in steps:
            if isinstance(step, Claimed):
                await world.claim(step.session)
        together = {step.session: step for step in steps if isinstance(step, Appended)}
        ends = await asyncio.gather(*(world.append(step) for step in together.values()))
        assert all(end != "written" for end, step in zip(ends, together.values(), strict=True) if world.is_stale(step))
        outcomes.append(ends)
    outcomes.append(await world.everything())
    await store.close()
    return outcomes


sessions = st.sampled_from(SESSIONS)
appended = st.builds(
    Appended,
    sessions,
    st.sampled_from([0, 0, 0, 1, 2]),
    st.lists(st.text(max_size=3), max_size=3).map(tuple),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0, 0, 1, -1, -2]),
)
rounds_of_steps = st.lists(st.lists(st.builds(Claimed, sessions) | appended, max_size=4), max_size=8)


@given(rounds=rounds_of_steps)
@settings(max_examples=20, deadline=None)
def test_any_interleaving_ends_the_same_in_every_store(rounds: list[list[Claimed | Appended]]) -> None:
    def ends_in(plug: str) -> list[object]:
        with tempfile.TemporaryDirectory() as directory, open_plug(plug, Path(directory)) as store:
            return anyio.run(play, store, rounds)

    first, *others = map(ends_in, PLUGS)
    assert all(other == first for other in others)
