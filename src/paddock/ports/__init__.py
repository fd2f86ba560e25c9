"""Ports: small Protocols for what the host needs from the world. Nothing here says how it is done.

A module is one concern: the log, what is on record of conversations, people, calls and so on, runners, models, tools,
knowledge. Whoever needs something of the store takes the one port that has it (`CallRecords`, `KeptRecords`), and
`Store`, which is all of them, is for whoever puts the host together. What never lives here: SQL, processes, HTTP, or a
decision. The one working part is `places`, where workspaces take turns.
"""

from paddock.ports.artifacts import KeptRecords, ScopeState
from paddock.ports.automations import AutomationRecords, CalendarRecords
from paddock.ports.calls import CallRecords, Spent
from paddock.ports.conversations import ConversationRecords, DayRecords, SessionRecords
from paddock.ports.definitions import AgentRecords, ApiKeyRow, ApiKeys, PluginRecords, SecretRecords
from paddock.ports.keeping import KeepingRecords
from paddock.ports.log import Batch, Claim, EventLog, Rows
from paddock.ports.overview import OverviewRecords
from paddock.ports.people import PeopleRecords
from paddock.ports.platforms import DeliveryRecords
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
from paddock.ports.store import Store

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
