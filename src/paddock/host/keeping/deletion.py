"""Deletion of conversations and erasure of messages, and the answers to readers of what is gone.

The decisions stay on the audit trail. Deletion by age is in `retention.py`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, Protocol

import structlog

from paddock.host.calls.artifacts import free
from paddock.host.cluster.forwarding import Forwarding, RequestHandlers
from paddock.host.cluster.remote_requests import Done, ForgetFiles, ForgetThread
from paddock.host.conflicts import written_first
from paddock.host.people.principals import Principal, no_such_thread
from paddock.host.runs.stored_results import repeats
from paddock.host.runs.working_directories import WorkingDirectories
from paddock.host.session.sessions import Sessions
from paddock.ports import ConversationRecords, EventLog, KeepingRecords, KeptRecords, SessionRecords
from paddock.ports.artifacts import Blobs
from paddock.rules.access.permissions import Grant, RunScope, state_key
from paddock.rules.cluster import KnownHost
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.chain import StoredFact
from paddock.rules.log.forgetting import (
    artifacts_announced,
    artifacts_named,
    replaced_by,
    rows_of,
    without_copies,
)
from paddock.rules.log.payloads import as_object
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
from paddock.rules.values import Value

log = structlog.get_logger("paddock.keeping")

PART = 500
ALL = 1_000_000
SNAPSHOT_ITEMS = 100
INPUTS = ("USER_INPUT", "USER_INPUT:MENTION")
TELL_SECONDS = 5.0
"""How long another host may take to remove the files of a conversation."""
BUSY = "something is still going on in this conversation; close it first, and if you have, try again in a moment"


class _Records(ConversationRecords, EventLog, KeepingRecords, KeptRecords, SessionRecords, Protocol): ...


class Erased(Value, frozen=True):
    """Counts of what was erased with a message: copies that clients sent again later, and files."""

    copies: int
    artifacts: int


class HoldsFiles(Protocol):
    """Holds files of conversations on disk."""

    async def forget(self, workspace_id: str, session_id: str) -> None: ...


class Directories:
    """Working directories of a conversation on all hosts. A host that is away keeps its own."""

    def __init__(
        self, here: WorkingDirectories, forwarding: Forwarding, others: Callable[[], Sequence[KnownHost]]
    ) -> None:
        self._here = here
        self._forwarding = forwarding
        self._others = others

    @property
    def remote_handlers(self) -> RequestHandlers:
        return {ForgetFiles: self._forget_here}

    async def forget(self, workspace_id: str, session_id: str) -> None:
        request = ForgetFiles(workspace_id, session_id)
        await self._forget_here(request)
        ask = (self._forwarding.ask(peer.boot, request, seconds=TELL_SECONDS) for peer in self._others())
        await asyncio.gather(*ask)

    async def _forget_here(self, request: ForgetFiles) -> Done:
        await self._here.forget(request.workspace_id, request.session_id)
        return Done()


@dataclass(eq=False)
class Deletion:
    store: _Records
    blobs: Blobs
    sessions: Sessions
    _: KW_ONLY
    clock: Callable[[], float]
    directories: HoldsFiles | None = None
    forwarding: Forwarding = field(default_factory=Forwarding)
    scrub_wanted: bool = field(default=False, init=False)
    """True after a deletion; the next sweep then overwrites what is left of it on the disk."""

    @property
    def remote_handlers(self) -> RequestHandlers:
        return {ForgetThread: self._forget}

    # --- a conversation ----------------------------------------------------------------------------------------------

    async def delete_thread(self, principal: Principal, session_id: str) -> None:
        """Delete a conversation; its audit trail and id stay. Raises CONFLICT while it is in use."""
        session = await self._session(principal, session_id)
        row = self._audit(principal, "session.delete", session_id, session_id)
        if not await self.forget(session, row, buried_at=self.clock()):
            raise HostError(ErrorCode.CONFLICT, BUSY, retryable=True)

    async def forget(
        self,
        session: SessionRow,
        audit: AuditRow | None,
        *,
        buried_at: float | None,
        silent_since: float | None = None,
    ) -> bool:
        """Delete a conversation at its owner; False when it is in use, or was used since `silent_since`."""
        request = ForgetThread(session, audit, buried_at, silent_since)
        try:
            return (await self.forwarding.here_or_at_owner(partial(self._forget, request), request, Done)).done
        except HostError as error:
            if error.code is not ErrorCode.RUNTIME_ERROR:
                raise
            # The owner may be of an older release without this request. It owns the conversation only while it is in
            # use; afterwards this host can delete it.
            text = "the owner of a conversation could not delete it"
            log.warning(text, action="keeping.forget", session_id=session.session_id, reason=error.message)
            return False

    async def _forget(self, request: ForgetThread) -> Done:
        session_id = request.session.session_id
        keys = await self._state_keys(request.session)
        files = await self.store.artifacts_of(session_id, limit=ALL)
        epoch = await self.sessions.let_go(session_id)
        if epoch is None or await self._spoke_since(session_id, request.silent_since):
            return Done(False)
        if self.directories is not None:  # first: once the record is gone nothing leads to them
            await self.directories.forget(request.session.workspace_id, session_id)
        gone = SessionGone(session_id, keys, request.buried_at, epoch)
        if not await written_first(self.store, [gone, request.audit] if request.audit else [gone]):
            return Done(False)  # it was used meanwhile
        self.sessions.tails.gone(session_id)
        self.scrub_wanted = True
        await self.purge()
        await free(self.store, self.blobs, [row.sha256 for row in files])
        return Done(True)

    async def _spoke_since(self, session_id: str, moment: float | None) -> bool:
        """True when the session was written to after that moment. Since it was let go, every write is seen."""
        known = await self.store.session_summary(session_id) if moment is not None else None
        return known is not None and moment is not None and known.updated_at >= moment

    async def _state_keys(self, session: SessionRow) -> tuple[str, ...]:
        known = await self.store.agents_of_session(session.session_id)
        threads = None, *(await self.store.subthreads_of_session(session.session_id))
        grants = [_grant(session, *agent, thread) for agent in known for thread in threads]
        keys = [state_key(scope, grant) for grant in grants for scope in ("conversation", "actor")]
        return tuple(key for key in keys if key is not None)

    async def purge(self) -> None:
        while True:
            if not await self.store.purge(limit=PART):
                return
            await asyncio.sleep(0)  # let other commits through

    # --- a message ---------------------------------------------------------------------------------------------------

    async def erase(self, principal: Principal, session_id: str, item_id: str, *, artifacts: bool = False) -> Erased:
        """Erase one transcript item wherever it is stored, left behind by an edit or not, and the same message where it
        was asked before. The digests of the log still verify."""
        session = await self._session(principal, session_id)
        run = await self._run_of(session_id, item_id)
        item, stored = await self._item(run, item_id)
        said = [one async for one in self._with_earlier(run, item, stored)]
        copies = [row async for row in self._copies(said[-1][1])]
        files = await self._files(session_id, stored) if artifacts else []
        rows: list[Apart] = [*copies, *(row for one in said for row in _words_of(session, *one))]
        rows += [ArtifactGone(row.artifact_id) for row in files]
        rows += [row async for row in self._announcements(session, files, apart_from=stored.seq)]
        rows += await self._title_of(item)
        await self.store.write([*rows, self._audit(principal, "message.erase", item_id, session_id, run)])
        self.sessions.tails.forget(session_id)
        await free(self.store, self.blobs, [row.sha256 for row in files])
        await self.store.scrub()
        return Erased(len(copies), len(files))

    async def _run_of(self, session_id: str, item_id: str) -> RunRow:
        run = await self.store.run(item_id.rpartition(".")[0])
        if run is None or run.session_id != session_id:
            raise _no_such_item()
        if run.status not in TERMINAL_STATUSES:
            text = "the run of this message is still going on; cancel it or wait for its end, then erase"
            raise HostError(ErrorCode.CONFLICT, text, retryable=True)
        return run

    async def _item(self, run: RunRow, item_id: str) -> tuple[TranscriptRow, StoredFact]:
        item = await self.store.item(run.session_id, item_id, start=run.first_seq, end=run.last_seq)
        stored = await self.store.fact(run.session_id, item.seq) if item is not None else None
        if item is None or stored is None:
            raise _no_such_item()
        return item, stored

    async def _with_earlier(
        self, run: RunRow, item: TranscriptRow, stored: StoredFact
    ) -> AsyncIterator[tuple[RunRow, TranscriptRow, StoredFact]]:
        """The item, and for a message that was asked again in the same words those whose place it took."""
        yield run, item, stored
        words = item.content
        while (seq := replaced_by(stored)) is not None and seq < stored.seq:
            before = await self.store.fact(item.session_id, seq)
            earlier = await self.store.run(before.turn_id) if before is not None and before.turn_id else None
            if before is None or earlier is None:
                return
            found = await self.store.item(item.session_id, f"{earlier.run_id}.0", start=seq, end=seq)
            if found is None or found.content != words:
                return
            yield earlier, found, before
            stored = before

    async def _copies(self, item: TranscriptRow) -> AsyncIterator[FactErased]:
        """Erase copies of the item that clients sent with later inputs."""
        upto: int | None = None
        while item.content.strip():
            page = await self.store.events(item.session_id, kinds=INPUTS, before=upto, limit=PART)
            for fact in page:
                if fact.seq > item.seq and (left := without_copies(fact, item.content)) is not None:
                    yield FactErased(item.session_id, fact.seq, fact.position, left.payload, left.metadata)
            if len(page) < PART or page[-1].seq <= item.seq:
                return
            upto = page[-1].position

    async def _title_of(self, item: TranscriptRow) -> list[SessionDetailsRow]:
        summary = await self.store.session_summary(item.session_id)
        has_copy = summary is not None and repeats(summary.title or "", item.content)
        return [SessionDetailsRow(item.session_id, title="")] if has_copy else []

    async def _files(self, session_id: str, stored: StoredFact) -> list[ArtifactRow]:
        found = [await self.store.artifact(artifact_id) for artifact_id in sorted(artifacts_named(stored))]
        return [row for row in found if row is not None and row.conversation_id == session_id]

    async def _announcements(
        self, session: SessionRow, files: Sequence[ArtifactRow], *, apart_from: int
    ) -> AsyncIterator[FactErased | ItemErased]:
        """Erase mentions of the files, such as their names, in the runs that made them."""
        going = {row.artifact_id for row in files}
        for run_id in sorted({row.run_id for row in files if row.run_id is not None}):
            run = await self.store.run(run_id)
            async for fact in self._facts_of(session.session_id, run_id):
                if artifacts_announced(fact) & going and fact.seq != apart_from:
                    for row in rows_of(session, run, fact):
                        yield row

    async def _facts_of(self, session_id: str, run_id: str) -> AsyncIterator[StoredFact]:
        after = 0
        while page := await self.store.read(session_id, after=after, run_id=run_id, limit=PART):
            for fact in page:
                yield fact
            after = page[-1].position

    # --- readers of what is gone -------------------------------------------------------------------------------------

    async def check_reached(self, session_id: str, seq: int) -> None:
        """Raises INVALID_ARGUMENT for a cursor beyond the end of the conversation."""
        if seq > (await self.sessions.view(session_id)).head:
            text = "this cursor lies beyond the end of the conversation: send the last `id:` of the stream as it came"
            raise HostError(ErrorCode.INVALID_ARGUMENT, text)

    async def is_gone(self, session_id: str) -> bool:
        """True when there is no such session (any more)."""
        return await self.store.session(session_id) is None

    async def check_cursor(self, session_id: str, seq: int) -> None:
        """Raises CURSOR_EXPIRED with a snapshot when events after this place were trimmed."""
        trimmed = await self.store.trimmed(session_id)
        if seq >= trimmed.seq:
            return
        head = (await self.sessions.view(session_id)).head
        items = await self.store.transcript(session_id, before=head + 1, limit=SNAPSHOT_ITEMS)
        snapshot = {"cursor": str(head), "trimmedThrough": trimmed.seq, "items": [_seen(item) for item in items[::-1]]}
        raise _expired("go on from the snapshot and its cursor", snapshot)

    async def check_run(self, run: RunRow) -> None:
        """Raises CURSOR_EXPIRED for a run that was trimmed; a run is kept or trimmed as a whole."""
        trimmed = await self.store.trimmed(run.session_id)
        if run.last_seq > trimmed.seq:
            return
        about = {"taskId": run.run_id, "threadId": run.session_id, "runId": run.client_run_id, "status": run.status}
        raise _expired("what is left of the run is in the snapshot", {"trimmedThrough": trimmed.seq, "run": about})

    async def _session(self, principal: Principal, session_id: str) -> SessionRow:
        """The conversation, if the caller owns it or administers its workspace. Raises NOT_FOUND."""
        session = await self.store.session(session_id)
        if session is None or not _may(principal, session):
            raise no_such_thread()
        return session

    def _audit(
        self, principal: Principal, action: str, resource: str, session_id: str, run: RunRow | None = None
    ) -> AuditRow:
        run_id = run.run_id if run else None
        return principal.audit(
            action, resource, at=self.clock(), scope=session_id, run_id=run_id, session_id=session_id
        )


def _words_of(session: SessionRow, run: RunRow, item: TranscriptRow, stored: StoredFact) -> list[Apart]:
    """The rows that erase one item and the request it came with."""
    return [
        *rows_of(session, run, stored),
        *_calls(item, stored),
        RequestsErased(session.session_id, run.run_id, run.created_at),
    ]


def _may(principal: Principal, session: SessionRow) -> bool:
    if principal.operator:
        return True
    mine = principal.workspace_id == session.workspace_id
    return mine and (principal.role == "admin" or principal.user_id == session.user_id)


def _grant(session: SessionRow, agent_id: str, runner_id: str, subthread_id: str | None) -> Grant:
    """Return a grant of the runs of which nobody knows who caused them: what they keep for that actor, whoever it was,
    goes with the conversation."""
    scope = RunScope(
        "",
        session.workspace_id,
        session.user_id,
        agent_id,
        session.session_id,
        subthread_id,
        surface="",
        named=False,
    )
    return Grant(runner_id, frozenset(), frozenset(), frozenset(), scope=scope, deadline_at=0.0)


def _calls(item: TranscriptRow, stored: StoredFact) -> tuple[CallsErased, ...]:
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
