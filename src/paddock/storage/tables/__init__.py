"""Rows that every database keeps alike: each table, its changes and its questions, written once.

A module here has the tables of one concept and the part of the store that looks them up. A new table is one statement
and its queries: rows that only come and go with others are a `Table` in `TABLES`, rows whose order or condition matters
are a `Write` in `WRITES`, and what is looked up is a `Query`, or a method that is one (`run = one(RunRow, ...)`). How a
statement is bound and executed is the business of an engine (`storage/sqlite`, `storage/postgres`): a third database is
one more folder with an engine, its way to append to the log behind the fence, and its indexes of words. Those three are
never here.
"""

from collections.abc import Mapping

from paddock.ports import ApiKeyRow
from paddock.rules.rows.calls import ApprovalRow, ApprovalStepRow, ModelUsageRow, ToolCallRow
from paddock.rules.rows.rows import AgentRow, AuditRow, InboxRow, RunRow, StateRow, TranscriptRow
from paddock.storage.tables import (
    automations,
    calls,
    conversations,
    definitions,
    deliveries,
    forgetting,
    kept,
    log,
    overview,
    people,
    taking_over,
)
from paddock.storage.tables.statements import Write
from paddock.storage.tables.table import Table

TABLES: Mapping[type, Table] = {
    TranscriptRow: conversations.ITEMS,
    InboxRow: conversations.ORDERS,
    RunRow: conversations.RUNS,
    ToolCallRow: calls.TOOL_CALLS,
    ModelUsageRow: calls.USAGE,
    ApprovalRow: calls.ASKED,
    ApprovalStepRow: calls.STEPS,
    AuditRow: overview.AUDIT,
    StateRow: kept.STATE,
    AgentRow: definitions.AGENTS,
    ApiKeyRow: definitions.KEYS,
}
"""Rows that are written together, in the order in which their tables are written."""
WRITES: Mapping[type, Write] = {
    **automations.WRITES,
    **definitions.WRITES,
    **deliveries.WRITES,
    **forgetting.WRITES,
    **kept.WRITES,
    **people.WRITES,
    **conversations.WRITES,
    **taking_over.WRITES,
}
"""How each row is written whose order or condition matters. A condition that does not hold raises HostError, and what
was to be written with it is not written."""


def is_guarded(row: object) -> bool:
    """True if a row is written in its turn, by `WRITES`."""
    return row.expected is not None if isinstance(row, StateRow) else type(row) in WRITES


class Records(
    log.LogReads,
    conversations.ConversationReads,
    conversations.SessionReads,
    people.PeopleReads,
    kept.KeptReads,
    calls.CallReads,
    calls.ApprovalReads,
    automations.AutomationReads,
    deliveries.DeliveryReads,
    automations.CalendarReads,
    definitions.DefinitionReads,
    forgetting.ForgettingReads,
    taking_over.TakingOverReads,
    overview.OverviewReads,
):
    """All that can be looked up by tables alone, over whichever engine."""
