"""Ports: small Protocols for what the host needs from the world. Nothing here says how it is done.

A module is one concern: the log, what is on record of conversations, people, calls and so on, runners, models, tools,
knowledge. A part of the host that needs something of the store takes the one port that has it (`CallRecords`,
`KeptRecords`). `Store`, which is all of them, is for the code that puts the host together. What never lives here: SQL,
processes, HTTP, or a decision. The one working part is `places`, where workspaces take turns.
"""

from paddock.ports.artifacts import KeptRecords, ScopeState
from paddock.ports.automations import AutomationRecords, CalendarRecords
from paddock.ports.conversations import ConversationRecords, DayRecords, SessionRecords
from paddock.ports.definitions import AgentRecords, ApiKeyRow, ApiKeys, PluginRecords, SecretRecords
from paddock.ports.log import Batch, Claim, EventLog, Rows
from paddock.ports.platforms import DeliveryRecords
from paddock.ports.records import CallRecords, KeepingRecords, OverviewRecords, PeopleRecords, Spent, Store
from paddock.ports.runners import (
    ANYWHERE,
    RUN_SOCKET,
    Caller,
    HostCallHandler,
    Overloaded,
    Placement,
    RunHandle,
    RunListener,
    RunnerGateway,
    RunnerStatus,
    Unreadable,
)

__all__ = [
    "ANYWHERE",
    "RUN_SOCKET",
    "AgentRecords",
    "ApiKeyRow",
    "ApiKeys",
    "AutomationRecords",
    "Batch",
    "CalendarRecords",
    "CallRecords",
    "Caller",
    "Claim",
    "ConversationRecords",
    "DayRecords",
    "DeliveryRecords",
    "EventLog",
    "HostCallHandler",
    "KeepingRecords",
    "KeptRecords",
    "Overloaded",
    "OverviewRecords",
    "PeopleRecords",
    "Placement",
    "PluginRecords",
    "Rows",
    "RunHandle",
    "RunListener",
    "RunnerGateway",
    "RunnerStatus",
    "ScopeState",
    "SecretRecords",
    "SessionRecords",
    "Spent",
    "Store",
    "Unreadable",
]
