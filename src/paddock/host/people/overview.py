"""Overview of a workspace for its people: runs, the whole story of one run, audited decisions, usage.

Users see their own runs, administrators those of the workspace. Any other run looks like an unknown one.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from paddock.host.people.principals import Principal
from paddock.host.runs.lookup import RunsView
from paddock.ports import CallRecords, ConversationRecords, EventLog, KeptRecords, OverviewRecords
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.people import MAX_LISTED, AuditEntry, AuditQuery, Pace, RunsQuery, Spender, UsageLine
from paddock.rules.rows.rows import AuditRow, RunRow
from paddock.rules.run.story import (
    Chapter,
    artifacts_told,
    decided,
    happened,
    models_asked,
    states_changed,
    tools_called,
)
from paddock.rules.values import Value

MAX_FACTS = 2_000
NO_RUNS = Pace(0.0, 0, 0, 0, 0, None, None)


class _Records(CallRecords, ConversationRecords, EventLog, KeptRecords, OverviewRecords, Protocol): ...


class Story(Value, frozen=True):
    """Everything on record about one run, in order of time."""

    run: RunRow
    grant: Mapping[str, Any]
    usage: Mapping[str, Any] | None
    chapters: Sequence[Chapter]
    cut: bool
    """True when more happened than is listed."""


class Spending(Value, frozen=True):
    """Usage and durations of runs, per span of time."""

    since: float
    every: int
    usage: Sequence[UsageLine]
    paces: Sequence[Pace]
    whole: Pace
    """All runs together; it cannot be computed from the medians in `paces`."""
    people: Sequence[Spender] = ()
    """Usage per user, when no single user was asked for."""


class Overview:
    def __init__(self, store: _Records, clock: Callable[[], float], *, note: Callable[[AuditRow], None]) -> None:
        self._store = store
        self._note = note
        self._view = RunsView(store)
        self._clock = clock

    async def runs(self, query: RunsQuery) -> Sequence[RunRow]:
        return await self._store.runs_where(query)

    async def find(self, principal: Principal, ref: str, session_id: str | None = None) -> RunRow:
        """Find a run of the caller, or for an administrator any run of the workspace. Raises NOT_FOUND."""
        if principal.role == "admin":
            run = await self._store.run(ref)
            there = run is not None and session_id in {None, run.session_id}
            if run is not None and there and run.workspace_id == principal.workspace_id:
                if run.user_id != principal.user_id:
                    self._note(
                        principal.audit(
                            "run.look", run.run_id, at=self._clock(), scope=run.session_id, session_id=run.session_id
                        )
                    )
                return run
        return await self._view.find(principal, ref, session_id)

    async def story(self, principal: Principal, run: RunRow) -> Story:
        admin = principal.role == "admin"
        facts, decisions, tools, models, files = await asyncio.gather(
            self._store.read(run.session_id, after=0, run_id=run.run_id, limit=MAX_FACTS),
            self._store.audit(run_id=run.run_id, limit=MAX_FACTS),
            self._store.tool_calls(run.run_id),
            self._store.model_usage(run.run_id),
            self._store.artifacts_of(run.session_id),
        )
        chapters = [
            *happened(facts),
            *decided(decisions, with_reasons=admin),
            *states_changed(decisions),
            *tools_called(tools),
            *models_asked(models),
            *artifacts_told([row for row in files if row.run_id == run.run_id]),
        ]
        grant: Mapping[str, Any] = msgspec.json.decode(run.grant) if run.grant else {}
        cut = len(facts) == MAX_FACTS or len(decisions) == MAX_FACTS
        return Story(run, grant, await self._view.usage(run), sorted(chapters, key=lambda chapter: chapter.time), cut)

    async def decisions(self, principal: Principal, query: AuditQuery) -> Sequence[AuditEntry]:
        if principal.role != "admin":
            raise HostError(ErrorCode.UNAUTHORIZED, "this needs a key with the role admin")
        return await self._store.audit_where(query)

    async def spending(self, principal: Principal, user_id: str | None, *, seconds: int, every: int) -> Spending:
        since = (self._clock() - seconds) // every * every
        usage = await self._store.usage_lines(principal.workspace_id, user_id, since=since, every=every)
        paces = await self._store.paces(principal.workspace_id, user_id, since=since, every=every)
        whole = await self._store.paces(principal.workspace_id, user_id, since=since, every=None)
        people: Sequence[Spender] = ()
        if user_id is None:
            people = await self._store.spenders(principal.workspace_id, since=since, limit=MAX_LISTED)
        return Spending(since, every, usage, paces, whole[0] if whole else NO_RUNS, people)
