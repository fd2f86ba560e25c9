"""Questions about a workspace as conditions of SQL, the same for both databases: text with `?`, and the values."""

from collections.abc import Sequence
from typing import Any

from paddock.rules.log.retention import first_id_after
from paddock.rules.people.overview import AuditQuery, RunsQuery

CLOCKS_APART = 3600.0
"""The clock that an id was made with and the one that wrote the row may differ by so many seconds."""
Condition = tuple[str, tuple[Any, ...]]


UNPRICED = "count(*) filter (where cost is null and total_tokens is not null)"
"""Calls that cost nobody knows how much. One that was never heard has no tokens, and cost nothing."""
PACES = """
with lap as (
  select {start} as start, status, case when status = 'completed' then ended_at - coalesce(started_at, created_at) end
         as took
    from runs where {where}),
ends as (
  select start, min(took) filter (where share >= 0.5) as median, min(took) filter (where share >= 0.95) as slow
    from (select start, took, cume_dist() over (partition by start order by took) as share
            from lap where took is not null) done
   group by start)
select lap.start, count(*), count(*) filter (where status = 'completed'), count(*) filter (where status = 'failed'),
       count(*) filter (where status = 'cancelled'), min(median), min(slow)
  from lap left join ends on ends.start = lap.start group by lap.start order by lap.start"""


def begun_since(workspace_id: str, user_id: str | None, since: float) -> Condition:
    """Runs that began since then. Their ids are in order of time, so only the newest part of the table is read."""
    asked: list[Condition] = [
        ("workspace_id = ?", (workspace_id,)),
        ("run_id >= ?", (first_id_after(since - CLOCKS_APART),)),
        ("created_at >= ?", (since,)),
    ]
    return _all([*asked, *_given({"user_id = ?": user_id})])


def of_runs(query: RunsQuery, items_of_session: str) -> Condition:
    """`items_of_session` finds the ids of a conversation's runs, so that only that conversation is read for them."""
    asked: list[Condition] = [("workspace_id = ?", (query.workspace_id,))]
    if query.session_id is not None:
        asked.append((f"run_id in ({items_of_session})", (query.session_id,)))
    if query.statuses:
        asked.append((f"status in ({', '.join('?' * len(query.statuses))})", query.statuses))
    asked += _given({"user_id = ?": query.user_id, "agent_id = ?": query.agent_id, "run_id < ?": query.before})
    return _all(asked)


def of_decisions(query: AuditQuery) -> Condition:
    exact, start = "action = ?", query.action
    if start is not None and start.endswith("*"):
        exact, start = "substr(action, 1, length(?)) = ?", start[:-1]
    whose = "workspace_id in (?, '')" if query.of_hosts else "workspace_id = ?"
    asked: list[Condition] = [(whose, (query.workspace_id,))]
    if start is not None:
        asked.append((exact, (start,) * exact.count("?")))
    asked += _given(
        {
            "actor = ?": query.actor,
            "result = ?": query.result,
            "run_id = ?": query.run_id,
            "session_id = ?": query.session_id,
            "time >= ?": query.since,
            "time < ?": query.until,
            "audit_no < ?": query.before,
        }
    )
    return _all(asked)


def _given(asked: dict[str, Any]) -> list[Condition]:
    return [(text, (value,)) for text, value in asked.items() if value is not None]


def _all(asked: Sequence[Condition]) -> Condition:
    return " and ".join(text for text, _ in asked), tuple(value for _, values in asked for value in values)
