"""The log of every session: what is not in it did not happen. And the rows that are written beside it.

Every port for records is a `Rows`: what is looked up there is written by `write`, or with a session's facts.
"""

from collections.abc import Awaitable, Sequence
from typing import Protocol

from paddock.rules.log.chain import Head, StoredFact
from paddock.rules.rows.rows import Apart, Row, SessionRow
from paddock.rules.values import Value


class Claim(Value, frozen=True):
    """The right to write a session, and all that is needed to go on from where the last owner stopped."""

    session_id: str
    epoch: int
    head: Head
    session: SessionRow | None
    snapshot: bytes
    """Bytes of the state at `snapshot_seq`; empty when there is none."""
    snapshot_seq: int
    facts: tuple[StoredFact, ...]
    """Facts after the snapshot, deltas included, in order of number."""
    deleted: bool = False
    """Somebody deleted the session of this id, so there is none, and it is not opened again."""
    left: str = ""
    """Why the host that had something going on in it is gone, where another one had."""


class Batch(Value, frozen=True):
    """One append: facts and the rows that follow from them, all or none, fenced by the owner's epoch."""

    session_id: str
    epoch: int
    before: Head
    after: Head
    facts: Sequence[StoredFact]
    rows: Sequence[Row]
    snapshot: bytes = b""
    """When not empty: the state after these facts."""
    compacted: Sequence[tuple[str, int, int]] = ()
    """(turn_id, first, last): deltas that a fact of this batch replaces; those in this very batch are never written."""
    rests: bool = False
    """Nothing goes on in the session after these facts, so any host may go on with it."""


class EventLog(Protocol):
    """The append-only record of a session. What is not here did not happen."""

    async def claim(self, session_id: str) -> Claim:
        """Become the owner. Every earlier claim is stale from now on. Writes no facts by itself.

        Raises OwnedElsewhereError while another host has something going on in it.
        """
        ...

    async def look(self, session_id: str) -> Claim:
        """Read what a claim would return, without becoming the owner: its epoch writes nothing."""
        ...

    def append(self, batch: Batch) -> Awaitable[None]:
        """Write all or none, durably, in order. Raises StaleOwnerError or StorageUnavailableError.

        Batches queued while a commit runs share the next one; one stale batch never fails its neighbours. A batch
        that the store cannot hold raises HostError, CONFLICT or INVALID_ARGUMENT, and fails alone. After
        StorageUnavailableError it may be on record all the same: `took` tells.
        """
        ...

    async def took(self, batch: Batch) -> bool:
        """Find out if a batch was written whose append failed with StorageUnavailableError.

        True: the log ends with it. False: the log ends where it did before it, and the very same batch may be appended
        again, also when the lost attempt should be taken after all: one of the two is then refused. Raises
        StaleOwnerError when the log is another's or went on, or StorageUnavailableError.
        """
        ...

    async def read(
        self, session_id: str, *, after: int = 0, run_id: str | None = None, limit: int = 256
    ) -> Sequence[StoredFact]:
        """Facts with number > `after`, in order of (position, seq); of one run when `run_id` is given.

        The next page is read after the last one's position: a finished message around that place then comes again.
        """
        ...


class Rows(Protocol):
    """Writes rows that belong to no session's facts."""

    async def write(self, rows: Sequence[Apart]) -> None:
        """Write rows that belong to no session's facts, all or none, durably, in one commit with whatever else waits.

        Raises HostError: CONFLICT when a value was expected to be another, PAYLOAD_TOO_LARGE over a cap.
        """
        ...

    def healthy(self) -> bool:
        """False from a failed commit until one succeeds again."""
        ...
