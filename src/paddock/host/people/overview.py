"""Looking over a workspace: runs, one run's whole story, decisions, usage. Reads only; says who may see what.

A person sees their own runs; an administrator those of the workspace. Foreign runs look like unknown ones.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from paddock.host.people.principals import Principal
from paddock.host.runs.lookup import RunsView
from paddock.ports import CallRecords, ConversationRecords, EventLog, KeptRecords, OverviewRecords
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.people.overview import MAX_LISTED, AuditEntry, AuditQuery, Pace, RunsQuery, Spender, UsageLine
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


class _Records(CallRecords, ConversationRecords, EventLog, KeptRecords, OverviewRecords, Protocol):
    """The ports of the store that are used here."""


class Story(Value, frozen=True):
    """All that is on record about one run, in order of time."""

    run: RunRow
    grant: Mapping[str, Any]
    usage: Mapping[str, Any] | None
    chapters: Sequence[Chapter]
    cut: bool
    """More happened than is told."""


class Spending(Value, frozen=True):
    """Usage and durations of runs, by span of time."""

    since: float
    every: int
    usage: Sequence[UsageLine]
    paces: Sequence[Pace]
    whole: Pace
    """All of these runs together: a median of medians is none."""
    people: Sequence[Spender] = ()
    """Who used it, where it is asked for everybody."""


class Overview:
    def __init__(self, store: _Records, clock: Callable[[], float], *, note: Callable[[AuditRow], None]) -> None:
        self._store = store
        self._note = note
        self._view = RunsView(store)
        self._clock = clock

    async def runs(self, query: RunsQuery) -> Sequence[RunRow]:
        return await self._store.runs_where(query)

    async def find(self, principal: Principal, ref: str, thread_id: str | None = None) -> RunRow:
        """The caller's own run, or for an administrator any of the workspace. Raises NOT_FOUND."""
        if principal.role == "admin":
            run = await self._store.run(ref)
            there = run is not None and thread_id in {None, run.session_id}
            if run is not None and there and run.workspace_id == principal.workspace_id:
                if run.user_id != principal.user_id:
                    self._note(_looked(principal, run, self._clock()))
                return run
        return await self._view.find(principal, ref, thread_id)

    async def story(self, principal: Principal, run: RunRow) -> Story:
        admin = principal.role == "admin"
        facts, decisions, tools, models, files = await asyncio.gather(
            self._store.read(run.session_id, after=0, turn_id=run.run_id, limit=MAX_FACTS),
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
        return Story(run, grant, await self._view.usage(run), sorted(chapters, key=_when), cut)

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


def _looked(principal: Principal, run: RunRow, now: float) -> AuditRow:
    """An administrator looked at somebody else's run: allowed, and on record."""
    return AuditRow(
        time=now,
        workspace_id=principal.workspace_id,
        actor=f"user:{principal.user_id}",
        action="run.look",
        resource=run.run_id,
        scope=run.session_id,
        result="allowed",
        reason=f"role {principal.role}",
        session_id=run.session_id,
    )


def _when(chapter: Chapter) -> float:
    return chapter.time
