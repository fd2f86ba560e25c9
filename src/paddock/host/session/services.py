"""Services that all sessions of a host share: the log and its readers, runs, the manager of agents, the audit."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from paddock.host.agents.agents import Agents
from paddock.host.audit import Audit
from paddock.host.outage import Outage
from paddock.host.session.draft import InvariantWatch
from paddock.host.session.word_quota import Words
from paddock.host.streams.tails import Tails
from paddock.ports import EventLog
from paddock.rules.session.commands import ChainCommand, RunCommand

if TYPE_CHECKING:
    from paddock.host.session.loop import SessionLoop


class Performer(Protocol):
    """Performs commands about runs."""

    def perform(self, session: "SessionLoop", command: RunCommand) -> None: ...
    def steers(self, run_id: str) -> bool:
        """Tell whether the runner of this live run takes input while it works."""
        ...

    def consumed(self, run_id: str, count: int) -> None: ...
    def abandon(self, run_id: str) -> None:
        """Stop a run whose session can no longer record what it says."""
        ...


class Manager(Protocol):
    """Looks agents up for a session, and keeps the time of its transactions."""

    def perform(self, session: "SessionLoop", command: ChainCommand) -> None: ...
    def over(self, tx_id: str) -> None:
        """Stop the timer of a transaction that has ended."""
        ...


@dataclass(frozen=True, slots=True)
class SessionServices:
    """The services that a session's loop works with."""

    log: EventLog
    outage: Outage
    tails: Tails
    words: Words
    audit: Audit
    authorise: "Callable[[SessionLoop, str, str, float], Mapping[str, Any]]"
    """Freezes what a run of an agent may do; the result is recorded with its dispatch."""
    performer: Performer
    manager: Manager
    agents: Agents
    clock: Callable[[], float]
    spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    deliveries_wait: Callable[[], None] = lambda: None
    """Called when a delivery to a platform is on record."""
    watch: InvariantWatch = field(default_factory=InvariantWatch)
