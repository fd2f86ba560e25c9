"""Forgetting on purpose: a conversation that is deleted, a message that is erased, and what is past its time.

What was decided stays on the audit trail. Nothing here runs on the way of a message: parts are small, others come
between them, and a store that is away is tried again next time.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import structlog

from paddock.host.draft import no_such_thread
from paddock.host.principals import Principal
from paddock.host.sessions import Sessions
from paddock.host.sweeping import free
from paddock.ports import Store
from paddock.ports.artifacts import Blobs
from paddock.ports.keeping import OldRows
from paddock.rules.chain import Head, StoredFact
from paddock.rules.erasing import artifacts_named, rows_of, without_copies
from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError
from paddock.rules.permissions import Grant, RunScope, state_key
from paddock.rules.retention import OldSession, Periods, before, trim_through
from paddock.rules.rows import (
    TERMINAL_STATUSES,
    Apart,
    ArtifactGone,
    ArtifactRow,
    AuditRow,
    CallsErased,
    FactErased,
    RunRow,
    SessionGone,
    SessionRow,
    TranscriptRow,
)
from paddock.rules.values import Value

SWEEP_SECONDS = 6 * 3600.0
FIRST_SWEEP_SECONDS = 120.0
PART = 500
PAUSE_SECONDS = 0.01
"""Between two parts: whoever talks goes first."""
ALL = 1_000_000
SNAPSHOT_ITEMS = 100
INPUTS = ("USER_INPUT", "USER_INPUT:MENTION")
BUSY = "something is still going on in this conversation; close it first, then delete it"
AGED: Sequence[tuple[OldRows, str]] = (
    ("tool_calls", "calls"),
    ("model_usage", "calls"),
    ("approvals", "calls"),
    ("audit", "audit"),
    ("runs", "audit"),
    ("tombstones", "audit"),
)
"""Rows that go by age, and whose period says when."""

log = structlog.get_logger("paddock.keeping")


class Erased(Value, frozen=True):
    """What was erased: the message, copies that clients had sent along later, files."""

    copies: int
    artifacts: int


class Keeping:
    def __init__(
        self,
        store: Store,
        blobs: Blobs,
        sessions: Sessions,
        *,
        clock: Callable[[], float],
        periods: Periods | None = None,
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._sessions = sessions
        self._clock = clock
        self._periods = periods or Periods()
        self._scrub_wanted = False
        """Something was deleted; the next sweep sees to it that nothing of it stays readable on the disk."""

    # --- a conversation ----------------------------------------------------------------------------------------------

    async def delete_thread(self, principal: Principal, thread_id: str) -> None:
        """Forget a conversation, all but the audit trail and its id. Raises CONFLICT while something goes on in it."""
        session = await self._session(principal, thread_id)
        row = self._audit(principal, "session.delete", thread_id, thread_id)
        if not await self._delete(session, row, buried_at=self._clock()):
            raise HostError(ErrorCode.CONFLICT, BUSY, retryable=True)

    async def _delete(self, session: SessionRow, audit: AuditRow | None, *, buried_at: float | None) -> bool:
        thread_id = session.session_id
        state = (await self._sessions.open(thread_id)).state
        if state.turn is not None or state.queue or state.transactions:
            return False
        keys = await self._state_keys(session)
        files = await self._store.artifacts_of(thread_id, limit=ALL)
        await self._sessions.forget(thread_id)
        gone = SessionGone(thread_id, keys, buried_at)
        await self._store.write([gone, audit] if audit else [gone])
        self._sessions.tails.forget(thread_id)
        self._scrub_wanted = True
        await self._purge()
        await free(self._store, self._blobs, [row.sha256 for row in files])
        return True

    async def _state_keys(self, session: SessionRow) -> tuple[str, ...]:
        """Where the runners of this conversation kept what they know of it."""
        known = await self._store.agents_of_session(session.session_id)
        keys = [state_key("conversation", _grant(session, agent_id, runner_id)) for agent_id, runner_id in known]
        return tuple(key for key in keys if key is not None)

    async def _purge(self) -> None:
        while True:
            if not await self._store.purge(limit=PART):
                return
            await asyncio.sleep(0)  # whoever else waits for a commit comes between

    # --- a message ---------------------------------------------------------------------------------------------------

    async def erase(self, principal: Principal, thread_id: str, item_id: str, *, artifacts: bool = False) -> Erased:
        """Erase the words of one transcript item wherever they are stored; the chain still verifies."""
        session = await self._session(principal, thread_id)
        run = await self._run_of(thread_id, item_id)
        item = await self._item(run, item_id)
        stored = await self._store.fact(thread_id, item.seq)
        if stored is None:
            raise _no_such_item()
        copies = [row async for row in self._copies(item)]
        files = await self._files(thread_id, stored) if artifacts else []
        rows: list[Apart] = [*rows_of(session, run, stored), *copies, *_calls(item, stored)]
        rows += [ArtifactGone(row.artifact_id) for row in files]
        await self._store.write([*rows, self._audit(principal, "message.erase", item_id, thread_id, run)])
        self._sessions.tails.forget(thread_id)
        await free(self._store, self._blobs, [row.sha256 for row in files])
        await self._store.scrub()
        return Erased(len(copies), len(files))

    async def _run_of(self, thread_id: str, item_id: str) -> RunRow:
        run = await self._store.run(item_id.rpartition(".")[0])
        if run is None or run.session_id != thread_id:
            raise _no_such_item()
        if run.status not in TERMINAL_STATUSES:
            text = "the run of this message is still going on; cancel it or wait for its end, then erase"
            raise HostError(ErrorCode.CONFLICT, text, retryable=True)
        return run

    async def _item(self, run: RunRow, item_id: str) -> TranscriptRow:
        after = run.first_seq - 1
        while True:
            page = await self._store.transcript(
                run.session_id, after=after, before=run.last_seq + 1, limit=PART, newest_first=False
            )
            if found := next((item for item in page if item.item_id == item_id), None):
                return found
            if len(page) < PART:
                raise _no_such_item()
            after = page[-1].seq

    async def _copies(self, item: TranscriptRow) -> AsyncIterator[FactErased]:
        """Later inputs of the conversation with which a client sent these words along."""
        upto: int | None = None
        while item.content.strip():
            page = await self._store.events(item.session_id, kinds=INPUTS, before=upto, limit=PART)
            for fact in page:
                if fact.seq > item.seq and (left := without_copies(fact, item.content)) is not None:
                    yield FactErased(item.session_id, fact.seq, fact.position, left.payload, left.metadata)
            if len(page) < PART or page[-1].seq <= item.seq:
                return
            upto = page[-1].position

    async def _files(self, thread_id: str, stored: StoredFact) -> list[ArtifactRow]:
        found = [await self._store.artifact(artifact_id) for artifact_id in sorted(artifacts_named(stored))]
        return [row for row in found if row is not None and row.conversation_id == thread_id]

    # --- what is past its time ---------------------------------------------------------------------------------------

    async def keep_sweeping(self, chance: Callable[[], float]) -> None:
        """For as long as the house stands, and never all hosts at the same moment."""
        await asyncio.sleep(FIRST_SWEEP_SECONDS * (0.5 + chance()))
        while True:
            try:
                await self.sweep()
            except (StorageUnavailableError, HostError) as error:
                log.warning("could not forget what is past its time", action="retention.sweep", error=str(error))
            await asyncio.sleep(SWEEP_SECONDS * (0.9 + chance() / 5))

    async def sweep(self) -> dict[str, int]:
        """Forget what is past its time: how much of each kind. One audit row for each kind."""
        await self._purge()
        now, counts = self._clock(), dict[str, int]()
        if (old := before(now, self._periods.conversations)) is not None:
            counts["conversations"], counts["trimmed"] = await self._sweep_conversations(old, now)
        for kind, period in AGED:
            limit = before(now, getattr(self._periods, period))
            if limit is not None and (kind != "runs" or self._periods.conversations):
                counts[kind] = await self._sweep_rows(kind, limit)
        found = {kind: count for kind, count in counts.items() if count}
        if found:
            await self._store.write([self._swept(kind, count, now) for kind, count in found.items()])
            log.info("forgot what is past its time", action="retention.sweep", **found)
        if found or self._scrub_wanted:
            self._scrub_wanted = False
            await self._store.scrub()
        return found

    async def _sweep_rows(self, kind: OldRows, limit: float) -> int:
        total = 0
        while count := await self._store.forget_old(kind, limit, limit=PART):
            total += count
            await asyncio.sleep(PAUSE_SECONDS)
            if count < PART:
                break
        return total

    async def _sweep_conversations(self, old: float, now: float) -> tuple[int, int]:
        deleted = trimmed = last = 0
        while page := await self._store.sessions_opened_before(old, after=last):
            for session in page:
                if session.updated_at < old:
                    deleted += await self._delete(_row(session), None, buried_at=None)
                else:
                    trimmed += await self._trim(session, old, now)
                await asyncio.sleep(0)
            last = page[-1].number
            await asyncio.sleep(PAUSE_SECONDS)
        return deleted, trimmed

    async def _trim(self, session: OldSession, old: float, now: float) -> bool:
        """Trim a conversation that is still used, part by part; whether anything went."""
        any_went = False
        while (through := await self._old_part(session.session_id, old)) is not None:
            if not await self._sessions.trim(session.session_id, through, session.updated_at, now):
                break  # it is in use; next time
            any_went = True
            await asyncio.sleep(PAUSE_SECONDS)
        return any_went

    async def _old_part(self, session_id: str, old: float) -> Head | None:
        if not any(fact.time < old for fact in await self._store.oldest_facts(session_id, limit=1)):
            return None
        facts = await self._store.oldest_facts(session_id, limit=2 * PART)
        turns = {fact.turn_id for fact in facts if fact.turn_id is not None}
        runs = [await self._store.run(turn_id) for turn_id in sorted(turns)]
        return trim_through(facts, {run.run_id: run for run in runs if run is not None}, old)

    # --- readers that come too late ----------------------------------------------------------------------------------

    async def check_cursor(self, thread_id: str, seq: int) -> None:
        """Raises CURSOR_EXPIRED, with the newest of the conversation, when what follows this place was trimmed."""
        trimmed = await self._store.trimmed(thread_id)
        if seq >= trimmed.seq:
            return
        head = (await self._sessions.open(thread_id)).head
        items = await self._store.transcript(thread_id, before=head + 1, limit=SNAPSHOT_ITEMS)
        snapshot = {"cursor": str(head), "trimmedThrough": trimmed.seq, "items": [_seen(item) for item in items[::-1]]}
        raise _expired("go on from the snapshot and its cursor", snapshot)

    async def check_run(self, run: RunRow) -> None:
        """The same for the stream of one run, which is kept or trimmed as a whole."""
        trimmed = await self._store.trimmed(run.session_id)
        if run.last_seq > trimmed.seq:
            return
        about = {"taskId": run.run_id, "threadId": run.session_id, "runId": run.client_run_id, "status": run.status}
        raise _expired("what is left of the run is in the snapshot", {"trimmedThrough": trimmed.seq, "run": about})

    # --- within ------------------------------------------------------------------------------------------------------

    async def _session(self, principal: Principal, thread_id: str) -> SessionRow:
        """The conversation, if it is the caller's or the caller looks after its workspace."""
        session = await self._store.session(thread_id)
        if session is None or not _may(principal, session):
            raise no_such_thread()
        return session

    def _audit(
        self, principal: Principal, action: str, resource: str, thread_id: str, run: RunRow | None = None
    ) -> AuditRow:
        return AuditRow(
            time=self._clock(),
            workspace_id=principal.workspace_id,
            actor=f"user:{principal.user_id}",
            action=action,
            resource=resource,
            scope=thread_id,
            result="allowed",
            reason=f"role {principal.role}",
            run_id=run.run_id if run else None,
            session_id=thread_id,
        )

    def _swept(self, kind: str, count: int, now: float) -> AuditRow:
        return AuditRow(
            time=now,
            workspace_id="",
            actor="host",
            action="retention.sweep",
            resource=kind,
            scope="host",
            result="allowed",
            reason=f"{count} past their time",
        )


def _may(principal: Principal, session: SessionRow) -> bool:
    if principal.operator:
        return True
    mine = principal.workspace_id == session.workspace_id
    return mine and (principal.role == "admin" or principal.user_id == session.user_id)


def _row(session: OldSession) -> SessionRow:
    return SessionRow(session.session_id, session.workspace_id, session.user_id, 0.0)


def _grant(session: SessionRow, agent_id: str, runner_id: str) -> Grant:
    scope = RunScope("", session.workspace_id, session.user_id, agent_id, session.session_id)
    return Grant(scope, runner_id, frozenset(), frozenset(), frozenset(), 0.0)


def _calls(item: TranscriptRow, stored: StoredFact) -> tuple[CallsErased, ...]:
    """What the host remembers of a tool's calls has the same words as what the runner told of them."""
    if item.item_type not in ("tool_call", "tool_result") or item.run_id is None:
        return ()
    payload: dict[str, Any] = stored.read_payload() or {}
    return (CallsErased(item.run_id, str((payload.get("data") or {}).get("tool_name"))),)


def _seen(item: TranscriptRow) -> dict[str, Any]:
    return {
        "itemId": item.item_id,
        "role": item.role,
        "type": item.item_type,
        "agentId": item.agent_id,
        "content": item.content,
        "time": item.created_at,
    }


def _expired(what: str, snapshot: dict[str, Any]) -> HostError:
    text = f"what follows this cursor is past its time and was forgotten; {what}"
    return HostError(ErrorCode.CURSOR_EXPIRED, text, details={"snapshot": snapshot})


def _no_such_item() -> HostError:
    return HostError(ErrorCode.NOT_FOUND, "there is no such message in this conversation")
