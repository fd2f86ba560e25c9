"""Forgetting on purpose: a conversation that is deleted, a message that is erased; and readers that come too late.

What was decided stays on the audit trail. What is forgotten by age is in `retention.py`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any, Protocol

import structlog

from paddock.host.cluster.answering import RequestHandlers
from paddock.host.cluster.forwarding import Forwarding
from paddock.host.cluster.remote_requests import ForgetThread, Forgotten
from paddock.host.keeping.sweeping import free
from paddock.host.people.principals import Principal, no_such_thread
from paddock.host.session.sessions import Sessions
from paddock.host.session.titles import repeats
from paddock.ports import ConversationRecords, EventLog, KeepingRecords, KeptRecords, SessionRecords
from paddock.ports.artifacts import Blobs
from paddock.rules.access.permissions import Grant, RunScope, state_key
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.chain import StoredFact
from paddock.rules.log.erasing import artifacts_announced, artifacts_named, rows_of, without_copies
from paddock.rules.rows.forgetting import CallsErased, FactErased, ItemErased, RequestsErased, SessionGone
from paddock.rules.rows.rows import (
    TERMINAL_STATUSES,
    Apart,
    ArtifactGone,
    ArtifactRow,
    AuditRow,
    RunRow,
    SessionDetailsRow,
    SessionRow,
    TranscriptRow,
    is_erased,
)
from paddock.rules.run.outputs import as_object
from paddock.rules.values import Value

log = structlog.get_logger("paddock.keeping")

PART = 500
ALL = 1_000_000
SNAPSHOT_ITEMS = 100
INPUTS = ("USER_INPUT", "USER_INPUT:MENTION")
BUSY = "something is still going on in this conversation; close it first, and if you have, try again in a moment"


class _Records(ConversationRecords, EventLog, KeepingRecords, KeptRecords, SessionRecords, Protocol):
    """The ports of the store that are used here."""


class Erased(Value, frozen=True):
    """Result of an erasure: the message, copies that clients sent along later, files."""

    copies: int
    artifacts: int


class Directories(Protocol):
    """Where conversations leave files on the disks of hosts."""

    async def forget(self, workspace_id: str, conversation_id: str) -> None: ...


class Deletion:
    def __init__(
        self,
        store: _Records,
        blobs: Blobs,
        sessions: Sessions,
        *,
        clock: Callable[[], float],
        directories: Directories | None = None,
        forwarding: Forwarding | None = None,
    ) -> None:
        self._forwarding = forwarding or Forwarding()
        self._directories = directories
        self._store = store
        self._blobs = blobs
        self._sessions = sessions
        self._clock = clock
        self.scrub_wanted = False
        """Something was deleted; the next sweep sees to it that nothing of it stays readable on the disk."""

    @property
    def remote_handlers(self) -> RequestHandlers:
        """How this host does it when another one asks."""
        return {ForgetThread: self._forget}

    # --- a conversation ----------------------------------------------------------------------------------------------

    async def delete_thread(self, principal: Principal, thread_id: str) -> None:
        """Forget a conversation, all but the audit trail and its id. Raises CONFLICT while something goes on in it."""
        session = await self._session(principal, thread_id)
        row = self._audit(principal, "session.delete", thread_id, thread_id)
        if not await self.forget(session, row, buried_at=self._clock()):
            raise HostError(ErrorCode.CONFLICT, BUSY, retryable=True)

    async def forget(
        self,
        session: SessionRow,
        audit: AuditRow | None,
        *,
        buried_at: float | None,
        silent_since: float | None = None,
    ) -> bool:
        """Forget a conversation in which nothing goes on, and nothing went on since then; False when something does.
        The host that has it does it, because only that one knows."""
        request = ForgetThread(session, audit, buried_at, silent_since)
        try:
            return (await self._forwarding.here_or_at_owner(partial(self._forget, request), request, Forgotten)).it_is
        except HostError as error:
            if error.code is not ErrorCode.RUNTIME_ERROR:
                raise
            # A host of an older release does not know how to. It has the conversation only while something goes on in
            # it; from then on this host can do it.
            text = "the host that has a conversation could not forget it"
            log.warning(text, action="keeping.forget", session_id=session.session_id, reason=error.message)
            return False

    async def _forget(self, request: ForgetThread) -> Forgotten:
        thread_id = request.session.session_id
        keys = await self._state_keys(request.session)
        files = await self._store.artifacts_of(thread_id, limit=ALL)
        epoch = await self._sessions.let_go(thread_id)
        if epoch is None or await self._spoke_since(thread_id, request.silent_since):
            return Forgotten(False)
        if self._directories is not None:  # first: after the record is gone nobody would know of them
            await self._directories.forget(request.session.workspace_id, thread_id)
        gone = SessionGone(thread_id, keys, request.buried_at, epoch)
        try:
            await self._store.write([gone, request.audit] if request.audit else [gone])
        except HostError as error:
            if error.code is not ErrorCode.CONFLICT:
                raise
            return Forgotten(False)  # somebody went on with it meanwhile
        self._sessions.tails.gone(thread_id)
        self.scrub_wanted = True
        await self.purge()
        await free(self._store, self._blobs, [row.sha256 for row in files])
        return Forgotten(True)

    async def _spoke_since(self, thread_id: str, moment: float | None) -> bool:
        """Tell if something was written after that moment; from our claim on nobody writes unnoticed."""
        known = await self._store.session_summary(thread_id) if moment is not None else None
        return known is not None and moment is not None and known.updated_at >= moment

    async def _state_keys(self, session: SessionRow) -> tuple[str, ...]:
        """Where the runners of this conversation kept what they know of it."""
        known = await self._store.agents_of_session(session.session_id)
        keys = [state_key("conversation", _grant(session, agent_id, runner_id)) for agent_id, runner_id in known]
        return tuple(key for key in keys if key is not None)

    async def purge(self) -> None:
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
        rows.append(RequestsErased(thread_id, run.run_id, run.created_at))
        rows += [ArtifactGone(row.artifact_id) for row in files]
        rows += [row async for row in self._announcements(session, files, apart_from=stored.seq)]
        rows += await self._title_of(item)
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

    async def _title_of(self, item: TranscriptRow) -> list[SessionDetailsRow]:
        """A title that is made of the erased words goes with them."""
        summary = await self._store.session_summary(item.session_id)
        told = summary is not None and repeats(summary.title or "", item.content)
        return [SessionDetailsRow(item.session_id, title="")] if told else []

    async def _files(self, thread_id: str, stored: StoredFact) -> list[ArtifactRow]:
        found = [await self._store.artifact(artifact_id) for artifact_id in sorted(artifacts_named(stored))]
        return [row for row in found if row is not None and row.conversation_id == thread_id]

    async def _announcements(
        self, session: SessionRow, files: Sequence[ArtifactRow], *, apart_from: int
    ) -> AsyncIterator[FactErased | ItemErased]:
        """Find mentions of erased files in the runs that made them: their names, and digests in older logs."""
        going = {row.artifact_id for row in files}
        for run_id in sorted({row.run_id for row in files if row.run_id is not None}):
            run = await self._store.run(run_id)
            async for fact in self._facts_of(session.session_id, run_id):
                told = artifacts_announced(fact)
                if told & going and fact.seq != apart_from:
                    for row in rows_of(session, run, fact):
                        yield row

    async def _facts_of(self, thread_id: str, run_id: str) -> AsyncIterator[StoredFact]:
        after = 0
        while page := await self._store.read(thread_id, after=after, turn_id=run_id, limit=PART):
            for fact in page:
                yield fact
            after = page[-1].position

    # --- readers that come too late ----------------------------------------------------------------------------------

    async def check_reached(self, thread_id: str, seq: int) -> None:
        """Raises INVALID_ARGUMENT for a place that the conversation has not come to: nobody was ever given it."""
        if seq > (await self._sessions.view(thread_id)).head:
            text = "this cursor lies beyond the end of the conversation: send the last `id:` of the stream as it came"
            raise HostError(ErrorCode.INVALID_ARGUMENT, text)

    async def is_gone(self, thread_id: str) -> bool:
        """Tell if a session existed and was deleted."""
        return await self._store.session(thread_id) is None

    async def check_cursor(self, thread_id: str, seq: int) -> None:
        """Raises CURSOR_EXPIRED, with the newest of the conversation, when what follows this place was trimmed."""
        trimmed = await self._store.trimmed(thread_id)
        if seq >= trimmed.seq:
            return
        head = (await self._sessions.view(thread_id)).head
        items = await self._store.transcript(thread_id, before=head + 1, limit=SNAPSHOT_ITEMS)
        snapshot = {"cursor": str(head), "trimmedThrough": trimmed.seq, "items": [_seen(item) for item in items[::-1]]}
        raise _expired("go on from the snapshot and its cursor", snapshot)

    async def check_run(self, run: RunRow) -> None:
        """Check the stream of one run, which is kept or trimmed as a whole."""
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


def _may(principal: Principal, session: SessionRow) -> bool:
    if principal.operator:
        return True
    mine = principal.workspace_id == session.workspace_id
    return mine and (principal.role == "admin" or principal.user_id == session.user_id)


def _grant(session: SessionRow, agent_id: str, runner_id: str) -> Grant:
    scope = RunScope("", session.workspace_id, session.user_id, agent_id, session.session_id)
    return Grant(scope, runner_id, frozenset(), frozenset(), frozenset(), 0.0)


def _calls(item: TranscriptRow, stored: StoredFact) -> tuple[CallsErased, ...]:
    """Erase the stored tool calls that repeat the words of an item."""
    if item.item_type not in ("tool_call", "tool_result") or item.run_id is None:
        return ()
    data = as_object(as_object(stored.read_payload()).get("data"))
    return (CallsErased(item.run_id, str(data.get("tool_name"))),)


def _seen(item: TranscriptRow) -> dict[str, Any]:
    seen: dict[str, Any] = {
        "itemId": item.item_id,
        "role": item.role,
        "type": item.item_type,
        "agentId": item.agent_id,
        "content": item.content,
        "time": item.created_at,
    }
    return {**seen, "erased": True} if is_erased(item) else seen


def _expired(what: str, snapshot: dict[str, Any]) -> HostError:
    text = f"what follows this cursor is past its time and was forgotten; {what}"
    return HostError(ErrorCode.CURSOR_EXPIRED, text, details={"snapshot": snapshot})


def _no_such_item() -> HostError:
    return HostError(ErrorCode.NOT_FOUND, "there is no such message in this conversation")
