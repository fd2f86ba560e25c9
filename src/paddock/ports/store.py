"""All of what a storage plug offers. Only whoever opens and closes it takes it whole."""

from typing import Protocol

from paddock.ports.artifacts import KeptRecords
from paddock.ports.automations import AutomationRecords, CalendarRecords
from paddock.ports.calls import CallRecords
from paddock.ports.conversations import ConversationRecords, DayRecords, SessionRecords
from paddock.ports.definitions import AgentRecords, ApiKeys, PluginRecords, SecretRecords
from paddock.ports.keeping import KeepingRecords
from paddock.ports.log import EventLog
from paddock.ports.overview import OverviewRecords
from paddock.ports.people import PeopleRecords
from paddock.ports.platforms import DeliveryRecords


class Store(
    EventLog,
    ConversationRecords,
    SessionRecords,
    DayRecords,
    PeopleRecords,
    KeptRecords,
    CallRecords,
    AutomationRecords,
    CalendarRecords,
    DeliveryRecords,
    AgentRecords,
    PluginRecords,
    ApiKeys,
    SecretRecords,
    KeepingRecords,
    OverviewRecords,
    Protocol,
):
    """One storage plug offers all of it over one set of committed data."""

    async def open(self) -> None: ...
    async def close(self) -> None:
        """Finish what was queued, then let go. Later appends raise StorageUnavailableError."""
        ...
