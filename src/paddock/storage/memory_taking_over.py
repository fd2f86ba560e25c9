"""The part of the memory store that gives what one user has to another."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.automation import AutomationRow
from paddock.rules.rows.calendar import CalendarEventRow
from paddock.rules.rows.calls import ApprovalRow, ModelUsageRow, ToolCallRow
from paddock.rules.rows.rows import AgentRow, ArtifactRow, RunRow
from paddock.rules.rows.taking_over import MOVED_ON, BelongingsMoved, Moving, SessionMoved, SessionSettled, StateMoved
from paddock.rules.values import replace
from paddock.storage.memory_kept import MemoryKept
from paddock.storage.memory_overview import MemoryOverview
from paddock.storage.memory_state import MemoryState
from paddock.storage.memory_transcripts import MemoryTranscripts

Owned = TypeVar("Owned", RunRow, ToolCallRow, ModelUsageRow, ApprovalRow, ArtifactRow, AutomationRow, CalendarEventRow)


class MemoryTakingOver(MemoryKept, MemoryTranscripts, MemoryState, MemoryOverview):
    def __init__(self) -> None:
        super().__init__()
        self._agents: dict[tuple[str, str], AgentRow] = {}
        self._labels: dict[tuple[str, str, str, str], str] = {}

    async def count_sessions(self, workspace_id: str, user_id: str) -> int:
        rows = (log.row for log in self._sessions.values())
        return sum((row.workspace_id, row.user_id) == (workspace_id, user_id) for row in rows)

    def _check_moving(self, rows: Sequence[Any]) -> None:
        """Before anything is written."""
        for row in rows:
            if isinstance(row, SessionMoved):
                log = self._sessions.get(row.session_id)
                owner = None if log is None else (log.row.workspace_id, log.row.user_id)
                if log is None or owner != (row.workspace_id, row.from_user) or log.epoch > row.epoch:
                    raise HostError(ErrorCode.CONFLICT, MOVED_ON)

    def _move(self, row: Moving) -> None:
        match row:
            case SessionMoved():
                self._move_session(row)
            case StateMoved():
                self._move_state(row)
            case BelongingsMoved():
                self._move_belongings(row)
            case SessionSettled():
                pass  # there is no index here

    def _move_session(self, row: SessionMoved) -> None:
        log = self._sessions[row.session_id]
        log.row = replace(log.row, user_id=row.to_user)
        runs = {run.run_id for run in self._runs.values() if run.session_id == row.session_id}
        _give(self._runs, row, lambda one: one.run_id in runs)
        _give(self._tool_calls, row, lambda one: one.run_id in runs)
        _give(self._model_usage, row, lambda one: one.run_id in runs)
        _give(self._approvals, row, lambda one: one.run_id in runs)
        _give(self._artifacts, row, lambda one: one.conversation_id == row.session_id)
        _give(self._jobs, row, lambda one: one.thread_id == row.session_id)
        for workspace, user, name in [key for key, held in self._names.items() if held == row.session_id]:
            if user == row.from_user:
                del self._names[workspace, user, name]
                self._names.setdefault((workspace, row.to_user, name), row.session_id)
        self._label_again()

    def _move_state(self, row: StateMoved) -> None:
        for scope, key in [place for place in self._state if place[0] == row.old_key]:
            value = self._state.pop((scope, key))
            self._state.setdefault((row.new_key, key), replace(value, scope_key=row.new_key))

    def _move_belongings(self, row: BelongingsMoved) -> None:
        _give(self._runs, row)
        _give(self._tool_calls, row)
        _give(self._model_usage, row)
        _give(self._approvals, row)
        _give(self._artifacts, row)
        _give(self._jobs, row)
        _give(self._calendar, row)
        before, after = (row.workspace_id, row.from_user), (row.workspace_id, row.to_user)
        if (turns := self._calendar_turns.get(before)) is not None:
            self._calendar_turns[after] = self._calendar_turns.get(after, turns) + 1
        if (profile := self._users.get(before)) is not None:
            self._users.setdefault(after, replace(profile, user_id=row.to_user))
        for place, agent in self._agents.items():
            if (agent.workspace_id, agent.updated_by) == before:
                self._agents[place] = replace(agent, updated_by=row.to_user)
        self._label_again()

    def _label_again(self) -> None:
        self._labels = {label_of(run): run.run_id for run in self._runs.values() if run.client_run_id}


def label_of(run: RunRow) -> tuple[str, str, str, str]:
    return run.workspace_id, run.user_id, run.client_run_id, run.session_id


def _give(
    table: dict[str, Owned], row: SessionMoved | BelongingsMoved, fits: Callable[[Owned], bool] | None = None
) -> None:
    """The rows of a table that are `from_user`'s and fit belong to `to_user`."""
    for key, one in table.items():
        theirs = (one.workspace_id, one.user_id) == (row.workspace_id, row.from_user)
        if theirs and (fits is None or fits(one)):
            table[key] = replace(one, user_id=row.to_user)
