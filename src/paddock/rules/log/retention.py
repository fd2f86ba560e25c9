"""Find facts and sessions old enough to delete. Pure: times come in as values, nothing is deleted here."""

from collections.abc import Mapping, Sequence
from itertools import takewhile

from msgspec import to_builtins

from paddock.rules.log.chain import ANCHOR, Head
from paddock.rules.rows.rows import TERMINAL_STATUSES, RunRow
from paddock.rules.session.facts import SYSTEM_SENDER, Event, Fact, Target
from paddock.rules.session.state import SessionState
from paddock.rules.values import Value

DAY = 86_400.0


class Periods(Value, frozen=True):
    """For how many days what is kept; 0 keeps it for ever."""

    conversations: int = 365
    """Facts and items, counted from when they were recorded; a conversation silent for so long goes as a whole."""
    calls: int = 90
    """What tools were given and gave back, what models used, and what was approved."""
    audit: int = 400
    """Decisions, runs whose conversation has gone, and the ids of deleted conversations."""


class OldSession(Value, frozen=True):
    """A session as the sweeper sees it. `number` is the order in which sessions were opened."""

    number: int
    session_id: str
    workspace_id: str
    user_id: str
    updated_at: float
    trimmed_seq: int


class OldFact(Value, frozen=True):
    """A fact at the beginning of a log, without its words."""

    seq: int
    turn_id: str | None
    time: float
    kind: str
    digest: bytes


def before(now: float, days: int) -> float | None:
    """The time before which things are old; None when they never are."""
    return now - days * DAY if days else None


def trim_through(oldest: Sequence[OldFact], runs: Mapping[str, RunRow], time: float) -> Head | None:
    """The last fact that may go: everything up to it is older than `time`, and no run is cut in two.

    An anchor alone is not worth trimming: it would only be replaced by the next one.
    """
    old = list(takewhile(lambda fact: fact.time < time, oldest))
    while old and (torn := _torn(old, runs)) is not None:
        old = [fact for fact in old if fact.seq < torn]
    lasting = [fact for fact in old if fact.kind != "AGENT_OUTPUT:CHUNK"]
    if all(fact.kind == ANCHOR for fact in lasting):
        return None
    return Head(lasting[-1].seq, lasting[-1].digest)


def _torn(old: Sequence[OldFact], runs: Mapping[str, RunRow]) -> int | None:
    """Return the first number of the earliest run that does not end within these facts."""
    last = max(fact.seq for fact in old)
    mine = (runs.get(fact.turn_id or "") for fact in old)
    return min((run.first_seq for run in mine if run is not None and not _is_over(run, last)), default=None)


def _is_over(run: RunRow, last: int) -> bool:
    return run.status in TERMINAL_STATUSES and run.last_seq <= last


def anchor(trimmed: Head, state: SessionState, at: float, now: float) -> Fact:
    """The fact that the chain goes on from, with the state that what was there led to, so that what is left still gives
    it. It is as old as what came before it: trimming is no sign of life."""
    event, _, subtype = ANCHOR.partition(":")
    told = {"through": trimmed.seq, "digest": trimmed.digest.hex(), "trimmed_at": now, "state": to_builtins(state)}
    return Fact(Event(event), subtype, Target.SYSTEM, SYSTEM_SENDER, payload=told, time=at)


def first_id_after(time: float) -> str:
    """The smallest id that a run begun at this time can have."""
    stamp = f"{max(0, int(time * 1000)):012x}"
    return f"{stamp[:8]}-{stamp[8:]}"
