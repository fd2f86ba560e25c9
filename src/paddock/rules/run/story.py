"""Entries on one time line of everything on record about a run: facts, decisions, calls, files. Pure.

Values that a runner keeps in state are never told, only that they changed. Reasons of decisions are for administrators.
"""

from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec

from paddock.rules.log.chain import StoredFact, bare
from paddock.rules.rows.calls import ModelUsageRow, ToolCallRow
from paddock.rules.rows.rows import ArtifactRow, AuditRow
from paddock.rules.values import Value

MAX_SHOWN = 16_384
"""Bytes of one payload; a longer one is told by its size."""
PROCESS = frozenset({"CONTROL:INPUT_ACK", "CONTROL:CANCEL_ACK", "EVENT:AGENT_STARTED", "ERROR:CANCEL_TIMEOUT"})

STATE_CHANGES = frozenset({"state.set", "state.delete"})


class Chapter(Value, frozen=True):
    """One entry of the time line. `kind`: event, process, state, decision, tool, model or artifact."""

    time: float
    kind: str
    name: str
    result: str | None = None
    until: float | None = None
    detail: Mapping[str, Any] = {}


def happened(facts: Iterable[StoredFact]) -> list[Chapter]:
    """List messages and events; pieces of messages are left to the message they became."""
    return [_fact(fact) for fact in facts if not fact.is_delta]


def _fact(fact: StoredFact) -> Chapter:
    payload = fact.read_payload()
    said: Mapping[str, Any] = cast("dict[str, Any]", payload) if isinstance(payload, dict) else {}
    what = str(said.get("type") or "")
    detail: dict[str, Any] = {"seq": fact.seq, "sender": fact.sender, "target": fact.target}
    if what == "state.updated":
        told = said.get("data")
        known: Mapping[str, Any] = cast("dict[str, Any]", told) if isinstance(told, dict) else {}
        return Chapter(
            fact.time, "state", what, detail={**detail, "scope": known.get("scope"), "key": known.get("key")}
        )
    if payload is not None:
        detail["payload"] = _shown(bare(fact.payload))
    kind = "process" if fact.kind in PROCESS else "event"
    return Chapter(fact.time, kind, f"{fact.kind} {what}".strip(), detail=detail)


def decided(rows: Iterable[AuditRow], *, with_reasons: bool) -> list[Chapter]:
    return [
        Chapter(
            row.time,
            "decision",
            row.action,
            row.result,
            detail={"actor": row.actor, "resource": row.resource, "scope": row.scope}
            | ({"reason": row.reason} if with_reasons else {}),
        )
        for row in rows
    ]


def states_changed(rows: Iterable[AuditRow]) -> list[Chapter]:
    """List state changes made by host calls; results that do the same are among the facts."""
    return [
        Chapter(row.time, "state", row.action, detail={"resource": row.resource, "scope": row.scope})
        for row in rows
        if row.action in STATE_CHANGES and row.result == "allowed"
    ]


def tools_called(rows: Iterable[ToolCallRow]) -> list[Chapter]:
    return [
        Chapter(
            row.started_at,
            "tool",
            row.tool_name,
            row.status,
            row.ended_at,
            {
                "callId": row.call_id,
                "parameters": _shown(row.parameters),
                "result": _shown(row.result),
                "artifactId": row.artifact_id,
            },
        )
        for row in rows
    ]


def models_asked(rows: Iterable[ModelUsageRow]) -> list[Chapter]:
    return [
        Chapter(
            row.started_at,
            "model",
            row.model_id,
            row.result,
            row.ended_at,
            {
                "operation": row.operation,
                "answeredBy": row.answered_by,
                "promptTokens": row.prompt_tokens,
                "completionTokens": row.completion_tokens,
                "totalTokens": row.total_tokens,
                "cost": row.cost,
                **({"estimated": True} if row.estimated else {}),
            },
        )
        for row in rows
    ]


def artifacts_told(rows: Iterable[ArtifactRow]) -> list[Chapter]:
    return [
        Chapter(
            row.created_at,
            "artifact",
            row.name or row.artifact_id,
            detail={
                "artifactId": row.artifact_id,
                "mimeType": row.mime_type,
                "size": row.size,
                "sha256": row.sha256,
                "published": row.published,
            },
        )
        for row in rows
    ]


def _shown(given: bytes) -> Any:
    if not given:
        return None
    return msgspec.Raw(given) if len(given) <= MAX_SHOWN else {"bytes": len(given), "shown": False}
