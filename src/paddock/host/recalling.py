"""A session as its log tells it: the state, what its turns were asked, and why one was left. Reads values, no store."""

from paddock.host.draft import Memory
from paddock.host.inputs import handover_input
from paddock.ports import Claim
from paddock.rules.chain import StoredFact
from paddock.rules.leases import WHY
from paddock.rules.run_context import RunInput
from paddock.rules.run_events import from_payload
from paddock.rules.session.facts import Target
from paddock.rules.session.recovery import recalled, restore
from paddock.rules.session.state import SessionState, from_bytes

STORE_AWAY = ("storage_unavailable", "the store could not write while this run was in progress")


def why_left(claim: Claim) -> tuple[str, str]:
    """What the end of a turn says that an earlier owner left: its host is gone, or could not go on with it."""
    return (claim.left, WHY[claim.left]) if claim.left in WHY else STORE_AWAY


def state_of(claim: Claim) -> SessionState:
    return restore(from_bytes(claim.snapshot) if claim.snapshot else SessionState(), claim.facts)


def remember(memory: Memory, turn_id: str, stored: StoredFact) -> None:
    """What a fact of a turn that has not ended means to whoever goes on with it."""
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
