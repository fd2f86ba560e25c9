"""Sessions in memory: the loops of a host, and the memory of one session, restored from its log.

A session's memory is dropped when a take cannot be written.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from paddock.host.session.arrivals import Accepted
from paddock.ports import Claim, ConversationRecords, EventLog
from paddock.rules.cluster import WHY
from paddock.rules.errors import RunCode
from paddock.rules.log.chain import Head, StoredFact, recalled, restore
from paddock.rules.log.events import handover_data
from paddock.rules.log.payloads import HANDOVER, RunEvent, from_payload
from paddock.rules.log.projection import SUBTHREAD, RunProjection
from paddock.rules.rows.rows import SessionRow
from paddock.rules.run.context import RunInput
from paddock.rules.run.outputs import Collected
from paddock.rules.session.facts import Fact, Target
from paddock.rules.session.state import SessionState, from_bytes

if TYPE_CHECKING:
    from paddock.host.session.loop import SessionLoop

IDLE_SESSIONS = 64
"""Few on purpose. Kept sessions leave the processor's cache, and every run pays for that when their memory is used
again: with 512 a short run cost 7 % more. Loading a session takes a tenth of a millisecond."""


class SessionLoops:
    """The loops of the sessions in memory: those at work, and a few idle ones. Made before the tails, which need it."""

    def __init__(self) -> None:
        self.holds = False
        """Queued turns stay in line, because the host is being stopped."""
        self._loops: dict[str, SessionLoop] = {}
        self._idle: OrderedDict[str, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._loops)

    def __iter__(self) -> "Iterator[SessionLoop]":
        return iter(list(self._loops.values()))

    def get(self, session_id: str) -> "SessionLoop | None":
        return self._loops.get(session_id)

    def use(self, session_id: str) -> "SessionLoop | None":
        """Return the loop; it is forgotten last from now on."""
        loop = self._loops.get(session_id)
        if loop is not None and session_id in self._idle:
            self._idle.move_to_end(session_id)
        return loop

    def works_on(self, session_id: str) -> bool:
        """Tell whether this host works on the session now, so that no other host does."""
        loop = self._loops.get(session_id)
        return loop is not None and not loop.idle

    def add(self, loop: "SessionLoop") -> None:
        self._loops[loop.session_id] = loop

    def forget(self, session_id: str) -> None:
        self._loops.pop(session_id, None)
        self._idle.pop(session_id, None)

    def rests(self, session_id: str) -> None:
        """Keep an idle session for a while; the one that has rested longest may be forgotten."""
        self._idle[session_id] = None
        self._idle.move_to_end(session_id)
        while len(self._idle) > IDLE_SESSIONS:
            oldest, _ = self._idle.popitem(last=False)
            known = self._loops.get(oldest)
            if known is not None and known.idle:
                del self._loops[oldest]


class SessionMemory:
    """One session in its owner's memory."""

    def __init__(self, claim: Claim, state: SessionState) -> None:
        self.session_id = claim.session_id
        self.epoch = claim.epoch
        self.head: Head = claim.head
        self.state = state
        self.projection = RunProjection(claim.session or SessionRow(claim.session_id, "", "", 0.0), {})
        self.exists = claim.session is not None
        self.since_snapshot = claim.head.seq - claim.snapshot_seq
        self.inputs: dict[str, tuple[RunInput, str]] = {}
        """The inputs of turns that have not ended, with their trace ids."""
        self.collected: Collected | None = None
        """The output of the live turn so far."""
        self.answers: OrderedDict[str, tuple[bytes, Accepted]] = OrderedDict()
        self.handing: dict[str, RunEvent] = {}
        """The platform's events behind turns that ask for another agent: it answers in the same of the platform's
        threads, whatever is said in between."""

    def hand(self, run_id: str | None) -> None:
        """Remember where a turn that asks for another agent happens, also when it has ended."""
        given = self.inputs.get(run_id or "")
        if given is not None and given[0].event is not None and given[0].event.delivery is not None:
            self.handing[run_id or ""] = given[0].event


PAGE = 1024
STORE_AWAY: tuple[RunCode, str] = ("storage_unavailable", "the store could not write while this run was in progress")


class _Records(ConversationRecords, EventLog, Protocol): ...


def why_left(claim: Claim) -> tuple[RunCode, str]:
    """Return the code and the sentence for a run that an earlier owner left unfinished."""
    return (claim.left, WHY[claim.left]) if claim.left in WHY else STORE_AWAY


def state_of(claim: Claim) -> SessionState:
    return restore(from_bytes(claim.snapshot) if claim.snapshot else SessionState(), claim.facts)


async def restored(store: _Records, claim: Claim) -> SessionMemory:
    """Restore the memory of a session's new owner, also in the middle of live runs."""
    state = state_of(claim)
    memory = SessionMemory(claim, state)
    if state.turn is not None or state.queue:
        await _recall_turns(store, memory)
    if state.transactions:
        for asking in {found.turn_id for found in state.transactions if found.turn_id is not None}:
            await _recall_asking(store, memory, asking)
    return memory


async def _recall_turns(store: _Records, memory: SessionMemory) -> None:
    live = memory.state.turn
    memory.collected = Collected(live.turn_id, live.agent_id) if live else None
    for run_id in memory.state.live_turn_ids:
        run = await store.run(run_id)
        if run is not None:
            memory.projection.runs[run_id] = run
        for stored in await _turn(store, memory.session_id, run_id):
            _remember(memory, run_id, stored)


async def _recall_asking(store: _Records, memory: SessionMemory, run_id: str) -> None:
    """Recall where a turn that asked for another agent happens, also when it has ended since."""
    if run_id in memory.inputs:  # it has not ended
        memory.hand(run_id)
        return
    for stored in await _turn(store, memory.session_id, run_id):
        _remember(memory, run_id, stored)
    memory.hand(run_id)
    memory.inputs.pop(run_id, None)


async def _turn(store: _Records, session_id: str, run_id: str) -> list[StoredFact]:
    """Return all facts of a turn in order; there are few once its messages are finished."""
    facts: dict[int, StoredFact] = {}
    after = 0
    while True:
        page = await store.read(session_id, after=after, run_id=run_id, limit=PAGE)
        facts.update((fact.seq, fact) for fact in page)
        if len(page) < PAGE:
            return [facts[seq] for seq in sorted(facts)]
        after = page[-1].position


def _remember(memory: SessionMemory, run_id: str, stored: StoredFact) -> None:
    if stored.kind == "USER_INPUT" and stored.target == Target.SYSTEM:
        memory.inputs[run_id] = (_input(stored), stored.trace_id or run_id)
    elif stored.kind == "CONTROL:HANDOVER_CONTEXT":
        memory.inputs[run_id] = (handover_input(recalled(stored), stored.seq), stored.trace_id or run_id)
    elif memory.collected and run_id == memory.collected.turn_id and stored.kind.startswith("AGENT_OUTPUT"):
        memory.collected.remember(stored)


def _input(stored: StoredFact) -> RunInput:
    payload = stored.read_payload()
    about = payload["run"]
    return RunInput(
        text=payload["text"],
        message=payload["message"],
        params=payload["params"],
        source=about["source"],
        seq=stored.seq,
        at=stored.time,
        earlier_history=stored.seq > 2,
        event=from_payload(about),
        attachments=about.get("attachments") or (),
        door=about.get("door") or "native",
        locale=about.get("locale"),
        time_zone=about.get("time_zone"),
    )


def handover_input(fact: Fact, seq: int) -> RunInput:
    """Return the input of an agent that takes over; the other agent's words are looked up when the run starts."""
    payload: Mapping[str, Any] = fact.payload
    actor = {"actor_type": "agent", "actor_id": payload["from_agent_id"]}
    event = RunEvent(
        event_type=HANDOVER,
        data=handover_data(payload),
        actor=actor,
        delivery=fact.metadata.get("delivery"),
        subthread_id=fact.metadata.get(SUBTHREAD),
    )
    return RunInput("", {}, {}, "system", seq, fact.time, True, event)
