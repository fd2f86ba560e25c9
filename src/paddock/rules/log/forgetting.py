"""Forgetting parts of a log: facts and sessions that are old enough, and the words of erased messages. Pure.

Of an erased message sender, kind and time stay, its words go. What is left has the shape of what was there, so that
readers of logs need not know of erasure, and the tables beside the log can still be made from it. Times come in as
values, and nothing is deleted here.
"""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, cast

from msgspec import to_builtins

from paddock.rules.log.chain import ANCHOR, DELTA, Head, StoredFact, erased, recalled
from paddock.rules.log.payloads import as_object
from paddock.rules.log.projection import RunProjection
from paddock.rules.rows.forgetting import FactErased, ItemErased
from paddock.rules.rows.rows import TERMINAL_STATUSES, RunRow, SessionRow, TranscriptRow
from paddock.rules.session.facts import SYSTEM_SENDER, Event, Fact, Target
from paddock.rules.session.state import SessionState
from paddock.rules.values import Value, replace

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
    lasting = [fact for fact in old if fact.kind != DELTA]
    if all(fact.kind == ANCHOR for fact in lasting):
        return None
    return Head(lasting[-1].seq, lasting[-1].digest)


def _torn(old: Sequence[OldFact], runs: Mapping[str, RunRow]) -> int | None:
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


ABOUT_RUN = ("client_run_id", "workspace_id", "user_id", "source", "door", "agent_id", "came_along", "replaces")
TELLING = frozenset({"streamed_text", "text_hash"})
"""Metadata from which the words could be had."""
SURE = 8
"""A text of fewer characters than this is looked for as a whole only: shorter ones stand in many others by chance."""


def without_words(stored: StoredFact) -> StoredFact:
    """The fact as it is stored from now on; its digest, and with it the chain, stays."""
    metadata = stored.read_metadata()
    kept = {name: value for name, value in metadata.items() if name not in TELLING}
    changed = erased(stored.metadata, kept) if kept != metadata else stored.metadata
    return replace(stored, payload=erased(stored.payload, _shape(stored)), metadata=changed)


def _shape(stored: StoredFact) -> Any:
    payload: Mapping[str, Any] = stored.read_payload() or {}
    return _input(payload) if "run" in payload else _output(payload)


def _input(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    about, message = as_object(payload["run"]), as_object(payload.get("message"))
    run: dict[str, Any] = {name: about[name] for name in ABOUT_RUN if name in about}
    if event := as_object(about.get("event")):
        run["event"] = {name: event[name] for name in ("event_type", "thread_id") if event.get(name) is not None}
    return {
        "message": {"id": message.get("id"), "role": message.get("role", "user"), "content": "", "erased": True},
        "text": "",
        "params": {},
        "run": run,
    }


def _output(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    kind, data = payload.get("type"), as_object(payload.get("data"))
    match kind:
        case "message.completed":
            role = as_object(data.get("message")).get("role", "assistant")
            left: Mapping[str, Any] = {"message": {"role": role, "content": ""}}
        case "tool.call.completed":
            left = {"tool_call_id": data.get("tool_call_id"), "tool_name": data.get("tool_name"), "result": ""}
        case "tool.call.started":
            left = {"tool_call_id": data.get("tool_call_id"), "tool_name": data.get("tool_name")}
        case _:
            left = {name: data[name] for name in ("artifact_id", "artifact_type") if name in data}
    return {"type": kind, "data": {**left, "erased": True}}


def replaced_by(stored: StoredFact) -> int | None:
    """Return the number of the earlier input whose place this one took, if it did."""
    seq = as_object(as_object(stored.read_payload()).get("run")).get("replaces")
    return seq if isinstance(seq, int) else None


def item_of(session: SessionRow, run: RunRow | None, stored: StoredFact) -> TranscriptRow | None:
    projection = RunProjection(session, {run.run_id: run} if run else {})
    return next((row for row in projection.rows(stored.seq, recalled(stored)) if isinstance(row, TranscriptRow)), None)


def rows_of(session: SessionRow, run: RunRow | None, stored: StoredFact) -> tuple[FactErased | ItemErased, ...]:
    left = without_words(stored)
    fact = FactErased(session.session_id, stored.seq, stored.position, left.payload, left.metadata)
    item = item_of(session, run, left)
    if item is None:
        return (fact,)
    return fact, ItemErased(session.session_id, item.seq, item.content, item.content_json, item.metadata)


def without_copies(stored: StoredFact, text: str) -> StoredFact | None:
    """Clients send along what was said before. The fact without copies of these words, or None when it has none."""
    payload = stored.read_payload()
    if not isinstance(payload, dict) or "params" not in payload:
        return None
    known = cast("dict[str, Any]", payload)
    clean = _without(known["params"], text)
    if clean == known["params"]:
        return None
    return replace(stored, payload=erased(stored.payload, {**known, "params": clean}))


def _without(value: Any, text: str) -> Any:
    if isinstance(value, str):
        return "" if value == text or (len(text) >= SURE and text in value) else value
    if isinstance(value, dict):
        return {key: _without(held, text) for key, held in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_without(held, text) for held in cast("list[Any]", value)]
    return value


def artifacts_named(stored: StoredFact) -> frozenset[str]:
    found: set[str] = set()
    _collect(stored.read_payload(), found)
    return frozenset(found)


def artifacts_announced(stored: StoredFact) -> frozenset[str]:
    """The artifact whose making a fact tells of, by id; none for facts that tell of something else."""
    payload = as_object(stored.read_payload())
    return artifacts_named(stored) if payload.get("type") == "artifact.created" else frozenset()


def _collect(value: Any, found: set[str]) -> None:
    if isinstance(value, dict):
        for name, held in cast("dict[str, Any]", value).items():
            if name == "artifact_id" and isinstance(held, str):
                found.add(held)
            _collect(held, found)
    elif isinstance(value, list):
        for held in cast("list[Any]", value):
            _collect(held, found)
