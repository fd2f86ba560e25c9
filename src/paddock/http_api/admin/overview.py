"""Looking over a workspace: runs, the story of one, why it may do something, the audit trail, usage and speed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, cast

import msgspec

from paddock.host.conversations.inbox import ThreadNames
from paddock.host.people.overview import Overview
from paddock.host.people.principals import Principal
from paddock.host.runs.lookup import Explanations
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.operations import Operations, operation
from paddock.http_api.edge.shapes import Answer, Count, Json, Moment, Query, about, invalid, iso, seen
from paddock.http_api.native.runs import ONE, RUNS, Run, RunName, RunQuery, Usage, run_fields
from paddock.rules.access.explain import coded
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.people import MAX_LISTED, AuditEntry, AuditQuery, Pace, RunsQuery, Spender, UsageLine, known_cost
from paddock.rules.rows.rows import RUN_STATUSES, RunRow
from paddock.rules.run.story import Chapter

SPANS: Mapping[str, tuple[int, int]] = {"day": (86_400, 3_600), "week": (604_800, 21_600), "month": (2_592_000, 86_400)}
"""How far back, and in steps of how many seconds."""
Scope = Annotated[
    Literal["mine", "workspace"], about("`mine` (the default), or `workspace` for administrators.", example="mine")
]
Limit = Annotated[int, about("At most so many; 50 by default.", ge=1, le=MAX_LISTED)]


def _is_moment(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


MomentAsked = Annotated[
    str,
    about(
        must="be a moment with its offset, such as 2026-03-16T16:12:33Z",
        check=_is_moment,
        schema={"format": "date-time"},
    ),
]


class RunEntry(Run, kw_only=True):
    """A run, and whose it is."""

    user_id: str
    runner_id: str | None = None


class RunList(Answer):
    runs: list[RunEntry]
    next: str | None


class RunsAsked(Query):
    thread_id: Annotated[str, about("Runs that said something in this thread.")] | None = None
    status: Annotated[str, about("One or several statuses, separated by commas.", example="queued,running")] = ""
    agent: Annotated[str, about("Runs of this agent.", example="echo")] | None = None
    before: (
        Annotated[str, about("`next` of the page before.", example="0199a8c4-5b1e-7c3a-9d2f-0123456789ab")] | None
    ) = None
    scope: Scope = "mine"
    limit: Limit = 50


class StoryEntry(Answer):
    time: Moment
    kind: Annotated[
        Literal["event", "process", "state", "decision", "tool", "model", "artifact"], about(example="decision")
    ]
    name: Annotated[str, about(example="history.page")]
    detail: Annotated[Json, about(example={"actor": "run", "resource": "history"})]
    result: Annotated[str, about(example="allowed")] | None = None
    until: Moment | None = None


class Story(Answer):
    run: RunEntry
    grant: Json
    entries: list[StoryEntry]
    truncated: bool


class ExplainQuery(RunQuery):
    action: Annotated[str, about("The host call, such as history.page.", example="history.page")] = ""
    resource: Annotated[str, about("The model, tool or base it is about.", example="demo")] = ""


class ExplainParameters(RunQuery, kw_only=True):
    action: Annotated[str, about("The host call, such as history.page.", example="history.page")]
    resource: Annotated[str, about("The model, tool or base it is about.", example="demo")] = ""


class Reason(Answer):
    code: Annotated[str, about(example="granted")]
    params: dict[str, str]


class Explanation(Answer):
    """Which layer decided, in words, and how often the call was made and how it was answered."""

    task_id: str
    agent_id: str
    runner_id: str
    action: Annotated[str, about(example="history.page")]
    resource: str
    granted: bool
    allowed: bool
    layer: Annotated[str, about(example="grant")]
    because: list[str]
    reasons: list[Reason]
    decisions: Annotated[dict[str, int], about(example={"allowed": 2})]


class AuditAsked(Query):
    actor: Annotated[str, about("Who asked.", example="run")] | None = None
    action: (
        Annotated[str, about("What for; `history.*` is every action that begins so.", example="history.page")] | None
    ) = None
    result: Annotated[str, about("`allowed`, or the code of the refusal.", example="allowed")] | None = None
    run: (
        Annotated[str, about("Decisions about this run (a taskId).", example="0199a8c4-5b1e-7c3a-9d2f-0123456789ab")]
        | None
    ) = None
    thread_id: Annotated[str, about("Decisions about this thread.")] | None = None
    since: Annotated[MomentAsked, about("Not before this moment.")] | None = None
    until: Annotated[MomentAsked, about("Before this moment.")] | None = None
    before: (
        Annotated[int, about("`next` of the page before.", must="be `next` of the page before", example=7)] | None
    ) = None
    limit: Limit = 50


class AuditedDecision(Answer):
    number: Count
    time: Moment
    actor: Annotated[str, about(example="run")]
    action: Annotated[str, about(example="history.page")]
    resource: Annotated[str, about(example="history")]
    scope: str
    result: Annotated[str, about(example="allowed")]
    reason: Annotated[str, about(example="granted")]
    reason_code: str | None = None
    reason_params: dict[str, str] | None = None
    task_id: str | None = None
    runner_id: str | None = None
    thread_id: str | None = None


class DecisionList(Answer):
    decisions: list[AuditedDecision]
    next: str | None


class UsageAsked(Query):
    span: Annotated[Literal["day", "week", "month"], about("How far back; `day` by default.")] = "day"
    scope: Scope = "mine"


class UsageEntry(Usage, kw_only=True):
    """The model calls of one agent with one model in one span of time."""

    start: Moment
    agent_id: str
    model_id: Annotated[str, about(example="demo")]


class PersonUsage(Answer):
    user_id: str
    model_calls: Count
    total_tokens: Count
    cost: float | None
    unpriced_calls: Count | None = None


class RunCount(Answer):
    """Runs, and how long they took. Times are left out where no run completed: nobody knows them."""

    runs: Count
    completed: Count
    failed: Count
    cancelled: Count
    median_seconds: float | None = None
    p95_seconds: float | None = msgspec.field(name="p95Seconds", default=None)


class RunCountOfSpan(RunCount, kw_only=True):
    start: Moment


class UsageReport(Answer):
    since: Moment
    every_seconds: Count
    usage: list[UsageEntry]
    runs: list[RunCountOfSpan]
    total: RunCount
    people: Annotated[list[PersonUsage], about("Of the workspace, for administrators.")] | None = None


@dataclass(frozen=True, kw_only=True)
class OverviewDoor(Operations):
    group = "Overview"
    auth: Auth
    names: ThreadNames
    overview: Overview
    explanations: Explanations

    @operation("GET", RUNS, {200: "The one begun last first."}, errors=(403, 404))
    async def runs(self, who: Principal, query: RunsAsked) -> RunList:
        """List runs"""
        statuses = tuple(filter(None, query.status.split(",")))
        if any(one not in RUN_STATUSES for one in statuses):
            raise invalid(f"status must be of {', '.join(RUN_STATUSES)}")
        asked = RunsQuery(
            who.workspace_id,
            _of_whom(who, query.scope),
            None if query.thread_id is None else await self.names.find(who, query.thread_id),
            query.agent,
            statuses,
            query.before,
            query.limit,
        )
        found = await self.overview.runs(asked)
        return RunList([_entry(run) for run in found], found[-1].run_id if len(found) == query.limit else None)

    @operation("GET", f"{ONE}/story", {200: "In order of time."}, errors=(404, 409))
    async def story(self, who: Principal, run: RunName, query: RunQuery) -> Story:
        """Tell all that is on record about a run

        For its owner, and for administrators of the workspace, whose look is itself on record. Why something was
        decided (`detail.reason`) is told to administrators."""
        found = await self._find(who, run, query)
        story = await self.overview.story(who, found)
        entry = _entry(found, story.usage)
        return Story(entry, dict(story.grant), [_chapter(one) for one in story.chapters], story.cut)

    @operation(
        "GET",
        f"{ONE}/explain",
        {200: "Which layer decided, in words."},
        errors=(404, 409),
        parameters=ExplainParameters,
    )
    async def explain(self, who: Principal, run: RunName, query: ExplainQuery) -> Explanation:
        """Explain why a run may, or may not, make a host call

        Asked by its owner, or by an administrator of the workspace."""
        found = await self._find(who, run, query)
        if not query.action:
            raise invalid("say which host call: ?action=history.page")
        told, decisions = await self.explanations.explain(found, query.action, query.resource)
        return seen(
            Explanation,
            told,
            task_id=found.run_id,
            agent_id=found.agent_id,
            runner_id=found.runner_id,
            reasons=[Reason(one.code, dict(one.params)) for one in told.reasons],
            decisions=decisions,
        )

    @operation("GET", "/api/v1/audit", {200: "The newest first."}, role="admin")
    async def audit(self, who: Principal, query: AuditAsked) -> DecisionList:
        """Search the audit trail"""
        asked = AuditQuery(
            who.workspace_id,
            query.actor,
            query.action,
            query.result,
            query.run,
            query.thread_id,
            _seconds(query.since),
            _seconds(query.until),
            query.before,
            query.limit,
            who.operator,
        )
        found = await self.overview.decisions(who, asked)
        more = str(found[-1].number) if len(found) == query.limit else None
        return DecisionList([_decision(one) for one in found], more)

    @operation("GET", "/api/v1/usage", {200: "By span of time, the oldest first."}, errors=(403,))
    async def usage(self, who: Principal, query: UsageAsked) -> UsageReport:
        """Report what was used, and how long runs took"""
        seconds, every = SPANS[query.span]
        user_id = _of_whom(who, query.scope)
        found = await self.overview.spending(who, user_id, seconds=seconds, every=every)
        return UsageReport(
            since=iso(found.since),
            every_seconds=found.every,
            usage=[_usage(line) for line in found.usage],
            runs=[RunCountOfSpan(**_counted(pace), start=iso(pace.start)) for pace in found.paces],
            total=RunCount(**_counted(found.whole)),
            people=[_spender(one) for one in found.people] if user_id is None else None,
        )

    async def _find(self, who: Principal, run: str, query: RunQuery) -> RunRow:
        name = query.thread_id
        return await self.overview.find(who, run, None if name is None else await self.names.find(who, name))


def _of_whom(who: Principal, scope: str) -> str | None:
    """Return the user to look at, or None for the whole workspace, which only administrators may see."""
    if scope == "workspace" and who.role != "admin":
        raise HostError(ErrorCode.UNAUTHORIZED, "to look over the workspace takes a key with the role admin")
    return None if scope == "workspace" else who.user_id


def _seconds(moment: str | None) -> float | None:
    return None if moment is None else datetime.fromisoformat(moment).timestamp()


def _entry(run: RunRow, usage: Mapping[str, Any] | None = None) -> RunEntry:
    return seen(RunEntry, run, **run_fields(run, usage), runner_id=run.runner_id or None)


def _chapter(one: Chapter) -> StoryEntry:
    detail = {name: value for name, value in one.detail.items() if value is not None}
    kind = cast("Any", one.kind)
    return StoryEntry(iso(one.time), kind, one.name, detail, one.result, iso(one.until))


def _decision(entry: AuditEntry) -> AuditedDecision:
    row, why = entry.row, coded(entry.row.reason)
    return seen(
        AuditedDecision,
        row,
        number=entry.number,
        reason_code=why and why.code,
        reason_params=why and why.params,
        task_id=row.run_id,
        thread_id=row.session_id,
    )


def _usage(line: UsageLine) -> UsageEntry:
    cost = known_cost(line.cost, line.unpriced)
    return seen(UsageEntry, line, model_calls=line.calls, cost=cost, unpriced_calls=line.unpriced or None)


def _spender(one: Spender) -> PersonUsage:
    cost = known_cost(one.cost, one.unpriced)
    return PersonUsage(one.user_id, one.calls, one.total_tokens, cost, one.unpriced or None)


def _counted(pace: Pace) -> Json:
    counts = {name: getattr(pace, name) for name in ("runs", "completed", "failed", "cancelled")}
    return {**counts, "median_seconds": pace.median, "p95_seconds": pace.slowest_twentieth}
