"""What a session's loop needs of the house around it, as small Protocols."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from paddock.host.cluster.outage import Outage
from paddock.host.keeping.audit import Audit
from paddock.host.session.invariant_watch import Watch
from paddock.host.session.word_quota import Words
from paddock.host.streams.tails import Tails
from paddock.ports import EventLog
from paddock.rules.session.commands import ChainCommand, RunCommand
from paddock.rules.session.messages import Agents

if TYPE_CHECKING:
    from paddock.host.session.loop import SessionLoop


class Performer(Protocol):
    """Who does what the session decided."""

    def authorise(self, session: "SessionLoop", turn_id: str, agent_id: str, at: float) -> Mapping[str, Any]:
        """What the run may do, to be recorded with its dispatch."""
        ...

    def perform(self, session: "SessionLoop", command: RunCommand) -> None: ...
    def steers(self, turn_id: str) -> bool:
        """Whether the runner of this live run takes input in the middle of it."""
        ...

    def consumed(self, turn_id: str, count: int) -> None: ...
    def abandon(self, turn_id: str) -> None:
        """Stop a run whose session can no longer record what it says."""
        ...


class Manager(Protocol):
    """Who does for a session what it must not do itself, and keeps the time of its transactions."""

    def perform(self, session: "SessionLoop", command: ChainCommand) -> None: ...
    def over(self, tx_id: str) -> None:
        """The transaction has ended: its timer need not ring."""
        ...


class House(Protocol):
    """What all sessions of a host share."""

    log: EventLog
    tails: Tails
    performer: Performer
    manager: Manager
    audit: Audit
    clock: Callable[[], float]
    watch: Watch
    outage: Outage
    words: Words
    spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    holds: bool

    def agents(self, workspace: str) -> Agents: ...
    def retired(self, session: "SessionLoop") -> None: ...
    def broken(self, session: "SessionLoop", cause: BaseException) -> None: ...
    def deliveries_wait(self) -> None: ...
