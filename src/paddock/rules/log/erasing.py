"""Erasure of a message: sender, kind and time stay, its words go.

Pure. What is left has the shape of what was there, so that whoever reads logs need not know of erasure, and the tables
beside the log can still be made from it.
"""

from collections.abc import Mapping
from typing import Any, cast

from paddock.rules.log.chain import StoredFact, erased
from paddock.rules.rows.forgetting import FactErased, ItemErased
from paddock.rules.rows.projection import RunProjection
from paddock.rules.rows.rows import RunRow, SessionRow, TranscriptRow
from paddock.rules.run.outputs import as_object
from paddock.rules.session.recovery import recalled
from paddock.rules.values import replace

ABOUT_RUN = ("client_run_id", "workspace_id", "user_id", "source", "door", "agent_id", "came_along")
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


def item_of(session: SessionRow, run: RunRow | None, stored: StoredFact) -> TranscriptRow | None:
    """The transcript item that a fact leads to."""
    projection = RunProjection(session, {run.run_id: run} if run else {})
    return next((row for row in projection.rows(stored.seq, recalled(stored)) if isinstance(row, TranscriptRow)), None)


def rows_of(session: SessionRow, run: RunRow | None, stored: StoredFact) -> tuple[FactErased | ItemErased, ...]:
    """Return the rows that erase the words of this fact and of its transcript item."""
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
    """The artifacts a fact refers to, by id."""
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
