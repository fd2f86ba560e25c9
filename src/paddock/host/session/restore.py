"""A session as its log tells it: the state, what its turns were asked, and why one was left."""

from typing import Protocol

from paddock.host.session.inputs import handover_input
from paddock.host.session.memory import SessionMemory
from paddock.ports import Claim, ConversationRecords, EventLog
from paddock.rules.cluster.leases import WHY
from paddock.rules.log.chain import StoredFact
from paddock.rules.run.context import RunInput
from paddock.rules.run.events import from_payload
from paddock.rules.run.outputs import Collected
from paddock.rules.session.facts import Target
from paddock.rules.session.recovery import recalled, restore
from paddock.rules.session.state import SessionState, from_bytes

PAGE = 1024
STORE_AWAY = ("storage_unavailable", "the store could not write while this run was in progress")


class _Records(ConversationRecords, EventLog, Protocol):
    """The ports of the store that are used here."""


def why_left(claim: Claim) -> tuple[str, str]:
    """Code and sentence for a run that an earlier owner left: its host is gone, or could not go on with it."""
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
    for turn_id in memory.state.live_turn_ids:
        run = await store.run(turn_id)
        if run is not None:
            memory.projection.runs[turn_id] = run
        for stored in await _turn(store, memory.session_id, turn_id):
            _remember(memory, turn_id, stored)


async def _recall_asking(store: _Records, memory: SessionMemory, turn_id: str) -> None:
    """Where the answers of a turn go that asked for another agent and may have ended since."""
    if turn_id in memory.inputs:  # it goes on
        memory.hand(turn_id)
        return
    for stored in await _turn(store, memory.session_id, turn_id):
        _remember(memory, turn_id, stored)
    memory.hand(turn_id)
    memory.inputs.pop(turn_id, None)


async def _turn(store: _Records, session_id: str, turn_id: str) -> list[StoredFact]:
    """All facts of a turn in order of number; there are few once its messages are finished."""
    facts: dict[int, StoredFact] = {}
    after = 0
    while True:
        page = await store.read(session_id, after=after, turn_id=turn_id, limit=PAGE)
        facts.update((fact.seq, fact) for fact in page)
        if len(page) < PAGE:
            return [facts[seq] for seq in sorted(facts)]
        after = page[-1].position


def _remember(memory: SessionMemory, turn_id: str, stored: StoredFact) -> None:
    """Take a fact of a live run into memory."""
    if stored.kind == "USER_INPUT" and stored.target == Target.SYSTEM:
        memory.inputs[turn_id] = (_input(stored), stored.trace_id or turn_id)
    elif stored.kind == "CONTROL:HANDOVER_CONTEXT":
        memory.inputs[turn_id] = (handover_input(recalled(stored), stored.seq), stored.trace_id or turn_id)
    elif memory.collected and turn_id == memory.collected.turn_id and stored.kind.startswith("AGENT_OUTPUT"):
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
