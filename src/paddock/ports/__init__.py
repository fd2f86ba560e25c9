"""Ports: small Protocols for what the host needs from the world. Nothing here says how it is done.

A module is one concern: the log, what is on record of conversations, people, calls and so on, runners, models, tools,
knowledge. A part of the host that needs something of the store takes the one port that has it (`CallRecords`,
`KeptRecords`). `Store`, which is all of them, is for the code that puts the host together. What never lives here: SQL,
processes, HTTP, or a decision. The one working part is `places`, where workspaces take turns.
"""

from paddock.ports.artifacts import KeptRecords as KeptRecords
from paddock.ports.artifacts import ScopeState as ScopeState
from paddock.ports.automations import AutomationRecords as AutomationRecords
from paddock.ports.automations import CalendarRecords as CalendarRecords
from paddock.ports.conversations import ConversationRecords as ConversationRecords
from paddock.ports.conversations import DayRecords as DayRecords
from paddock.ports.conversations import SessionRecords as SessionRecords
from paddock.ports.definitions import AgentRecords as AgentRecords
from paddock.ports.definitions import ApiKeyRow as ApiKeyRow
from paddock.ports.definitions import ApiKeys as ApiKeys
from paddock.ports.definitions import PluginRecords as PluginRecords
from paddock.ports.definitions import SecretRecords as SecretRecords
from paddock.ports.log import Batch as Batch
from paddock.ports.log import Claim as Claim
from paddock.ports.log import EventLog as EventLog
from paddock.ports.log import Rows as Rows
from paddock.ports.platforms import DeliveryRecords as DeliveryRecords
from paddock.ports.records import CallRecords as CallRecords
from paddock.ports.records import KeepingRecords as KeepingRecords
from paddock.ports.records import OverviewRecords as OverviewRecords
from paddock.ports.records import PeopleRecords as PeopleRecords
from paddock.ports.records import Spent as Spent
from paddock.ports.records import Store as Store
from paddock.ports.runners import ANYWHERE as ANYWHERE
from paddock.ports.runners import RUN_SOCKET as RUN_SOCKET
from paddock.ports.runners import Caller as Caller
from paddock.ports.runners import HostCallHandler as HostCallHandler
from paddock.ports.runners import Overloaded as Overloaded
from paddock.ports.runners import Placement as Placement
from paddock.ports.runners import RunHandle as RunHandle
from paddock.ports.runners import RunListener as RunListener
from paddock.ports.runners import RunnerGateway as RunnerGateway
from paddock.ports.runners import RunnerStatus as RunnerStatus
from paddock.ports.runners import Unreadable as Unreadable
