"""Which rows follow from a fact: runs, transcript, state. Pure, so that the tables can be rebuilt from the log."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from paddock.rules.outputs import text_of
from paddock.rules.rows import Row, RunRow, SessionRow, StateRow, TranscriptRow
from paddock.rules.session.facts import Event, Fact, Target
from paddock.rules.values import replace

_encode = msgspec.json.Encoder().encode

FAILING = frozenset({"RUN_FAILED", "ROUTE_TIMEOUT", "AGENT_NOT_IN_SESSION"})
"""Errors that end a turn. A cancel that timed out ends it too, but as cancelled."""


@dataclass(slots=True)
class Book:
    """The runs of one session that have not ended, as the facts so far made them."""

    session: SessionRow
    runs: dict[str, RunRow]

    def rows(self, seq: int, fact: Fact) -> Iterator[Row]:
        """The rows that one fact, recorded under this number, makes or changes."""
        match fact.event, fact.target:
            case Event.USER_INPUT, Target.SYSTEM:
                yield self._keep(self._accepted(seq, fact))
                yield self._user_item(seq, fact)
            case Event.USER_INPUT, Target.AGENT:
                yield from self._dispatched(seq, fact)
            case Event.AGENT_OUTPUT, _:
                yield from self._output(seq, fact)
            case Event.ERROR, _ if fact.subtype in FAILING:
                payload: Mapping[str, Any] = fact.payload or {}
                yield from self._end(seq, fact, "failed", str(payload.get("code")), str(payload.get("message")))
            case Event.EVENT, _ if fact.subtype == "CANCELED":
                yield from self._end(seq, fact, "cancelled", "cancelled", None)
            case Event.EVENT, _ if fact.subtype == "TURN_QUEUED":
                yield from self._queued(seq, fact)
            case _:
                return

    def _keep(self, run: RunRow) -> RunRow:
        self.runs[run.run_id] = run
        return run

    def _accepted(self, seq: int, fact: Fact) -> RunRow:
        about: Mapping[str, Any] = fact.payload["run"]
        return RunRow(
            run_id=str(fact.turn_id),
            session_id=self.session.session_id,
            workspace_id=about["workspace_id"],
            user_id=about["user_id"],
            client_run_id=about["client_run_id"],
            agent_id=about.get("agent_id") or "",
            runner_id="",
            status="queued",
            code=None,
            message=None,
            created_at=fact.time,
            started_at=None,
            ended_at=None,
            deadline_at=None,
            first_seq=seq,
            last_seq=seq,
            grant=b"",
            usage=b"",
        )

    def _user_item(self, seq: int, fact: Fact) -> TranscriptRow:
        message: Mapping[str, Any] = fact.payload["message"]
        plain = isinstance(message.get("content"), str)
        return TranscriptRow(
            session_id=self.session.session_id,
            seq=seq,
            item_id=f"{fact.turn_id}.0",
            run_id=fact.turn_id,
            role="user",
            item_type="message",
            agent_id=None,
            content=fact.payload["text"],
            content_json=b"" if plain else _encode(message),
            created_at=fact.time,
            metadata=_encode({"message_id": message.get("id")}),
        )

    def _queued(self, seq: int, fact: Fact) -> Iterator[Row]:
        run = self.runs.get(fact.turn_id or "")
        if run is not None:
            yield self._keep(replace(run, agent_id=str(fact.payload["agent_id"]), last_seq=seq))

    def _dispatched(self, seq: int, fact: Fact) -> Iterator[Row]:
        run = self.runs.get(fact.turn_id or "")
        if run is None:
            return
        given = fact.metadata
        yield self._keep(
            replace(
                run,
                agent_id=fact.target_id or "",
                runner_id=str(given.get("runner_id") or ""),
                status="running",
                started_at=fact.time,
                deadline_at=given.get("deadline_at"),
                grant=_encode(given["grant"]) if "grant" in given else b"",
                last_seq=seq,
            )
        )

    def _output(self, seq: int, fact: Fact) -> Iterator[Row]:
        if fact.subtype == "FINAL":
            usage = fact.payload["data"].get("usage")
            yield from self._end(seq, fact, "completed", None, None, usage=_encode(usage) if usage else b"")
        elif fact.subtype == "MESSAGE":
            yield from self._message(seq, fact, fact.payload["type"], fact.payload["data"])

    def _message(self, seq: int, fact: Fact, kind: str, data: Mapping[str, Any]) -> Iterator[Row]:
        match kind:
            case "message.completed":
                message: Mapping[str, Any] = data.get("message") or {}
                text = text_of(message.get("content"))
                whole = (
                    b""
                    if set(message) <= {"role", "content"} and isinstance(message.get("content"), str)
                    else _encode(message)
                )
                yield self._item(seq, fact, "assistant", "message", text, whole, fact.metadata["message_id"])
            case "tool.call.started":
                yield self._item(
                    seq,
                    fact,
                    "assistant",
                    "tool_call",
                    str(data.get("tool_name")),
                    _encode(data),
                    f"{fact.turn_id}.{seq}",
                )
            case "tool.call.completed":
                result = data.get("error") or data.get("result")
                text = result if isinstance(result, str) else _encode(result).decode()
                yield self._item(seq, fact, "tool", "tool_result", text, _encode(data), f"{fact.turn_id}.{seq}")
            case "state.updated" if "scope_key" in fact.metadata:
                yield StateRow(fact.metadata["scope_key"], data["key"], _encode(data.get("value")), fact.time)
            case _:
                return

    def _item(
        self, seq: int, fact: Fact, role: str, item_type: str, text: str, whole: bytes, item_id: str
    ) -> TranscriptRow:
        run = self.runs.get(fact.turn_id or "")
        return TranscriptRow(
            session_id=self.session.session_id,
            seq=seq,
            item_id=item_id,
            run_id=fact.turn_id,
            role=role,
            item_type=item_type,
            agent_id=run.agent_id if run else None,
            content=text,
            content_json=whole,
            created_at=fact.time,
            metadata=b'{"partial":true}' if fact.metadata.get("partial") else b"",
        )

    def _end(
        self, seq: int, fact: Fact, status: str, code: str | None, message: str | None, *, usage: bytes = b""
    ) -> Iterator[Row]:
        run = self.runs.pop(fact.turn_id or "", None)
        if run is not None:
            yield replace(run, status=status, code=code, message=message, ended_at=fact.time, last_seq=seq, usage=usage)


def settled(rows: list[Row]) -> list[Row]:
    """Of several versions of one run only the last need be written."""
    last = {row.run_id: index for index, row in enumerate(rows) if isinstance(row, RunRow)}
    if len(last) == len(rows):
        return rows
    return [row for index, row in enumerate(rows) if not isinstance(row, RunRow) or last[row.run_id] == index]
