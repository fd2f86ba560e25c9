"""What the host needs from the world, as small Protocols in the host's own words. Nothing here says how it is done."""

from paddock.ports.calls import CallRecords, Spent
from paddock.ports.log import ApiKeyRow, ApiKeys, Batch, Claim, EventLog, Records, ScopeState, Store
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
    "ApiKeyRow",
    "ApiKeys",
    "Batch",
    "CallRecords",
    "Caller",
    "Claim",
    "EventLog",
    "HostCallHandler",
    "Overloaded",
    "Placement",
    "Records",
    "RunHandle",
    "RunListener",
    "RunnerGateway",
    "RunnerStatus",
    "ScopeState",
    "Spent",
    "Store",
    "Unreadable",
]
