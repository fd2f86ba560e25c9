"""Parts of the host that a session's loop works with."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from paddock.host.agents.agents import Agents
from paddock.host.cluster.outage import Outage
from paddock.host.keeping.audit import Audit
from paddock.host.session.invariant_watch import Watch
from paddock.host.session.word_quota import Words
from paddock.host.streams.tails import Tails
from paddock.ports import EventLog
from paddock.rules.session.commands import ChainCommand, RunCommand

if TYPE_CHECKING:
    from paddock.host.session.loop import SessionLoop


class Performer(Protocol):
    """Performs commands about runs."""

    def authorise(self, session: "SessionLoop", turn_id: str, agent_id: str, at: float) -> Mapping[str, Any]:
        """Return what the run may do, to be recorded with its dispatch."""
        ...

    def perform(self, session: "SessionLoop", command: RunCommand) -> None: ...
    def steers(self, turn_id: str) -> bool:
        """Tell whether the runner of this live run takes input in the middle of it."""
        ...

    def consumed(self, turn_id: str, count: int) -> None: ...
    def abandon(self, turn_id: str) -> None:
        """Stop a run whose session can no longer record what it says."""
        ...


class Manager(Protocol):
    """Does for a session what it must not do itself, and keeps the time of its transactions."""

    def perform(self, session: "SessionLoop", command: ChainCommand) -> None: ...
    def over(self, tx_id: str) -> None:
        """The transaction has ended: its timer need not ring."""
        ...


class Keeper(Protocol):
    """Keeps the loops of all sessions."""

    holds: bool
    """Nothing that waits begins any more."""

    def retired(self, session: "SessionLoop") -> None: ...
    def broken(self, session: "SessionLoop", cause: BaseException) -> None: ...


@dataclass(frozen=True, slots=True)
class SessionNeeds:
    """Parts that all sessions of a host share: the log and its readers, and who performs their commands."""

    log: EventLog
    outage: Outage
    tails: Tails
    words: Words
    audit: Audit
    performer: Performer
    manager: Manager
    agents: Agents
    clock: Callable[[], float]
    spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    deliveries_wait: Callable[[], None] = lambda: None
    """Told that something is on record which a platform has to hear."""
    watch: Watch = field(default_factory=Watch)
