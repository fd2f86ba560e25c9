"""Memory of a session's owner between two takes. It is dropped when a take cannot be written."""

from collections import OrderedDict

from paddock.host.session.arrivals import Accepted
from paddock.ports import Claim
from paddock.rules.log.chain import Head
from paddock.rules.rows.projection import RunProjection
from paddock.rules.rows.rows import SessionRow
from paddock.rules.run.context import RunInput
from paddock.rules.run.events import RunEvent
from paddock.rules.run.outputs import Collected
from paddock.rules.session.state import SessionState


class SessionMemory:
    """One session in its owner's memory."""

    def __init__(self, claim: Claim, state: SessionState) -> None:
        self.session_id = claim.session_id
        self.epoch = claim.epoch
        self.head: Head = claim.head
        self.state = state
        self.projection = RunProjection(claim.session or SessionRow(claim.session_id, "", "", 0.0), {})
        self.exists = claim.session is not None
        self.since_snapshot = claim.head.seq - claim.snapshot_seq
        self.inputs: dict[str, tuple[RunInput, str]] = {}
        """The inputs of turns that have not ended, with their trace ids."""
        self.collected: Collected | None = None
        """What the live turn has said so far."""
        self.answers: OrderedDict[str, tuple[bytes, Accepted]] = OrderedDict()
        self.handing: dict[str, RunEvent] = {}
        """What turns that ask for another agent were asked, if by a platform: whoever takes over answers there, in the
        same of its threads, whatever else was said in between."""

    def hand(self, turn_id: str | None) -> None:
        """A turn asks for another agent: remember where it happens, also when it has ended."""
        given = self.inputs.get(turn_id or "")
        if given is not None and given[0].event is not None and given[0].event.delivery is not None:
            self.handing[turn_id or ""] = given[0].event
