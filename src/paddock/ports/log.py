"""The log of every session, what can be looked up beside it, and the store that offers both."""

from collections.abc import Awaitable, Collection, Mapping, Sequence
from typing import Literal, Protocol

from paddock.ports.agents import AgentRecords
from paddock.ports.approvals import ApprovalRecords
from paddock.ports.artifacts import ArtifactRecords, StorageRecords
from paddock.ports.automations import AutomationRecords
from paddock.ports.calendar import CalendarRecords
from paddock.ports.calls import CallRecords
from paddock.ports.days import DayRecords
from paddock.ports.deliveries import DeliveryRecords
from paddock.ports.events import EventRecords
from paddock.ports.keeping import KeepingRecords
from paddock.ports.overview import OverviewRecords
from paddock.ports.plugins import PluginRecords
from paddock.ports.secrets import SecretRecords
from paddock.ports.sessions import SessionRecords
from paddock.ports.users import UserRecords
from paddock.rules.log.chain import Head, StoredFact
from paddock.rules.rows.rows import WHOLE, Apart, AuditRow, InboxRow, Row, RunRow, SessionRow, TranscriptRow, View
from paddock.rules.search.history_search import TranscriptQuery
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
        """What a claim would tell, without becoming the owner: its epoch writes nothing."""
        ...

    def append(self, batch: Batch) -> Awaitable[None]:
        """Write all or none, durably, in order. Raises StaleOwnerError or StorageUnavailableError.

        Batches queued while a commit runs share the next one; one stale batch never fails its neighbours. A batch
        that the store cannot hold raises HostError, CONFLICT or INVALID_ARGUMENT, and fails alone. After
        StorageUnavailableError it may be on record all the same: `took` tells.
        """
        ...

    async def took(self, batch: Batch) -> bool:
        """What became of a batch with facts whose append failed with StorageUnavailableError.

        True: the log ends with it. False: the log ends where it did before it, and the very same batch may be appended
        again, also when the lost attempt should be taken after all: one of the two is then refused. Raises
        StaleOwnerError when the log is another's or went on, or StorageUnavailableError.
        """
        ...

    async def read(
        self, session_id: str, *, after: int = 0, turn_id: str | None = None, limit: int = 256
    ) -> Sequence[StoredFact]:
        """Facts with number > `after`, in order of (position, seq); of one turn when `turn_id` is given.

        The next page is read after the last one's position: a finished message around that place then comes again.
        """
        ...


class ScopeState(Value, frozen=True):
    """The state of one scope: how many bytes all its values have, and as many of them as were asked for."""

    size: int
    values: Mapping[str, bytes]
    left_out: tuple[str, ...] = ()
    """The keys whose values were more than was asked for."""


class Records(
    ArtifactRecords,
    StorageRecords,
    EventRecords,
    SessionRecords,
    KeepingRecords,
    DayRecords,
    UserRecords,
    AutomationRecords,
    DeliveryRecords,
    CalendarRecords,
    Protocol,
):
    """What can be looked up beside the log. Every read is of committed data."""

    async def session(self, session_id: str) -> SessionRow | None: ...
    async def inbox(self, session_id: str, key: str) -> InboxRow | None: ...
    async def run(self, run_id: str) -> RunRow | None: ...
    async def runs_by_label(
        self, workspace_id: str, user_id: str, client_run_id: str, *, limit: int = 2
    ) -> Sequence[RunRow]: ...
    async def unfinished_runs(self) -> Sequence[RunRow]:
        """Runs that are queued or running, oldest first: what a new owner of the store must bring to an end."""
        ...

    async def transcript(
        self,
        session_id: str,
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 50,
        newest_first: bool = True,
        room: int | None = None,
        view: View = WHOLE,
    ) -> Sequence[TranscriptRow]:
        """Items with before > seq > after, at most `limit`, from the newest or from the oldest end.

        With `room` the item whose bytes (`stored_bytes`) use it up is the last: a caller who can take no more than so
        much need not have huge items read for nothing.
        """
        ...

    async def search(self, session_id: str, query: TranscriptQuery) -> Sequence[TranscriptRow]:
        """The newest items of a conversation that answer the query, newest first: everything committed is seen."""
        ...

    async def transcript_count(self, session_id: str) -> int: ...
    async def state(self, scope_key: str, key: str) -> bytes | None: ...
    async def state_snapshot(self, scope_keys: Sequence[str], *, max_bytes: int) -> Mapping[str, ScopeState]:
        """Each of these scopes as it is now; of its values those that fit into `max_bytes`, in order of their keys."""
        ...

    async def state_size(self, scope_key: str) -> int: ...
    async def audit(self, *, run_id: str | None = None, limit: int = 100) -> Sequence[AuditRow]: ...
    async def write(self, rows: Sequence[Apart]) -> None:
        """Write rows that belong to no session's facts, all or none, durably, in one commit with whatever else waits.

        Raises HostError: CONFLICT when a value was expected to be another, PAYLOAD_TOO_LARGE over a cap.
        """
        ...


class ApiKeyRow(Value, frozen=True):
    """A key somebody may act with. Only the hash is stored."""

    key_id: str
    key_hash: bytes
    workspace_id: str
    user_id: str
    role: Literal["user", "admin"]
    created_at: float
    revoked_at: float | None = None


class ApiKeys(Protocol):
    async def add_key(self, row: ApiKeyRow) -> None: ...
    async def find_key(self, key_hash: bytes) -> ApiKeyRow | None:
        """The key with this hash, unless it was revoked."""
        ...

    async def live_keys(self, key_ids: Sequence[str]) -> Collection[str]:
        """Those of these keys that were not revoked."""
        ...

    async def any_key(self) -> bool:
        """Whether there ever was one: a revoked key still tells that callers are known by key here."""
        ...

    async def api_keys(self, workspace_id: str | None, *, limit: int = 1000) -> Sequence[ApiKeyRow]:
        """The keys of a workspace, or of all; revoked ones too, the newest first."""
        ...

    async def revoke_key(self, key_id: str, at: float, audit_row: AuditRow) -> None:
        """From now on nobody is let in with it. The first time counts."""
        ...


class Store(
    EventLog,
    Records,
    OverviewRecords,
    CallRecords,
    ApprovalRecords,
    AgentRecords,
    PluginRecords,
    ApiKeys,
    SecretRecords,
    Protocol,
):
    """One storage plug offers all of it over one set of committed data."""

    async def open(self) -> None: ...
    async def close(self) -> None:
        """Finish what was queued, then let go. Later appends raise StorageUnavailableError."""
        ...

    def healthy(self) -> bool:
        """False from a failed commit until one succeeds again."""
        ...
