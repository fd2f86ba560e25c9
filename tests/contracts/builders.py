"""Words for the contract tests: facts, rows and an owner that writes them. Knows no plug."""

from collections.abc import Sequence
from typing import Any

from paddock.ports import Batch, Claim, EventLog
from paddock.rules.log.chain import SALTS_BYTES, StoredFact, seal
from paddock.rules.rows.rows import AuditRow, InboxRow, Row, RunRow, SessionRow, StateRow, TranscriptRow
from paddock.rules.session.facts import Event, Fact, Target

SESSION = "5d0c0f0e-6f0c-4f4e-8a52-000000000001"


def said(text: str, turn_id: str | None = "turn-1") -> Fact:
    return Fact(Event.USER_INPUT, "", Target.SYSTEM, "user:ann", turn_id=turn_id, payload={"text": text}, time=1.5)


def delta(text: str, turn_id: str = "turn-1") -> Fact:
    return Fact(Event.AGENT_OUTPUT, "CHUNK", Target.FRONTEND, "agent:a", turn_id=turn_id, payload={"text": text})


def finished(text: str, first_seq: int, turn_id: str = "turn-1") -> Fact:
    """A message that stands where its first delta stood."""
    metadata = {"first_seq": first_seq, "lengths": [len(text)]}
    return Fact(
        Event.AGENT_OUTPUT,
        "MESSAGE",
        Target.FRONTEND,
        "agent:a",
        turn_id=turn_id,
        payload={"text": text},
        metadata=metadata,
    )


def a_session(session_id: str = SESSION) -> SessionRow:
    return SessionRow(session_id, "workspace", "ann", 1.0)


def a_run(run_id: str = "run-1", **changes: Any) -> RunRow:
    columns: dict[str, Any] = {
        "session_id": SESSION,
        "workspace_id": "workspace",
        "user_id": "ann",
        "client_run_id": f"label-of-{run_id}",
        "agent_id": "agent",
        "runner_id": "author/name/runner",
        "status": "running",
        "code": None,
        "message": None,
        "created_at": 1.0,
        "started_at": 2.0,
        "ended_at": None,
        "deadline_at": 300.0,
        "first_seq": 1,
        "last_seq": 3,
        "grant": b'{"tools":[]}',
        "usage": b"",
    }
    return RunRow(run_id, **columns | changes)


def an_item(seq: int, session_id: str = SESSION, content: str = "hi") -> TranscriptRow:
    return TranscriptRow(session_id, seq, f"item-{seq}", "run-1", "user", "message", None, content, b"", 1.0, b"{}")


def an_inbox_row(key: str = "key", session_id: str = SESSION) -> InboxRow:
    return InboxRow(session_id, key, b"\x00hash", "run-1", 1.0)


def a_decision(reason: str = "granted", run_id: str | None = "run-1", time: float = 1.0) -> AuditRow:
    return AuditRow(time, "workspace", "agent:a", "history.page", "history", SESSION, "allowed", reason, run_id)


def a_value(key: str, value: bytes | None, scope_key: str = "scope") -> StateRow:
    return StateRow(scope_key, key, value, 1.0)


class Owner:
    """Owns one session and writes to it, keeping the end of the log in mind like the session's loop does."""

    def __init__(self, log: EventLog, claim: Claim) -> None:
        self.log = log
        self.claim = claim
        self.head = claim.head

    @classmethod
    async def of(cls, log: EventLog, session_id: str = SESSION) -> "Owner":
        return cls(log, await log.claim(session_id))

    def batch(
        self,
        *facts: Fact,
        rows: Sequence[Row] = (),
        snapshot: bytes = b"",
        compacted: Sequence[tuple[str, int, int]] = (),
        rests: bool = False,
    ) -> Batch:
        """The next batch; the first of a session opens it."""
        sealed, after = seal(self.head, facts, bytes(SALTS_BYTES * len(facts)))
        if not self.head.seq:
            rows = [a_session(self.claim.session_id), *rows]
        return Batch(
            self.claim.session_id, self.claim.epoch, self.head, after, sealed, rows, snapshot, compacted, rests
        )

    async def write(self, *facts: Fact, **more: Any) -> Sequence[StoredFact]:
        batch = self.batch(*facts, **more)
        await self.log.append(batch)
        self.head = batch.after
        return batch.facts
