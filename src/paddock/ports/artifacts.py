"""Artifacts and state: bytes under their hash, the rows that say whose they are, and small values.

Bytes come before their row and go after it, so a crash in between leaves bytes nobody needs and never a row without
bytes; what nobody needs is found and removed later.
"""

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from paddock.ports.log import Rows
from paddock.rules.access.permissions import Grant
from paddock.rules.rows.rows import ArtifactRow, StorageRow
from paddock.rules.values import Value
from paddock_sdk.protocol.artifacts import ArtifactMetadata


class Blob(Value, frozen=True):
    """Bytes that are kept: their hash, how many, and how they begin."""

    sha256: str
    size: int
    head: bytes


class Blobs(Protocol):
    """Bytes by content, durably. The same bytes are kept once, whoever brings them."""

    async def open(self) -> None: ...
    async def close(self) -> None: ...
    def keep(self, pieces: AsyncIterable[bytes], *, max_bytes: int) -> AbstractAsyncContextManager[Blob]:
        """Write the pieces; inside the block they are safe from `remove`, so that a row can be written for them.

        Raises HostError(PAYLOAD_TOO_LARGE) past `max_bytes`, StorageUnavailableError when the disk refuses.
        """
        ...

    async def read(self, sha256: str, offset: int, length: int) -> bytes:
        """At most `length` bytes from `offset`. Raises HostError(RUNTIME_ERROR) for bytes that are lost or damaged."""
        ...

    async def remove(self, sha256: str, *, needed: Callable[[], Awaitable[bool]]) -> bool:
        """Forget bytes, unless somebody keeps them at this very moment or `needed`, asked last of all, says so."""
        ...

    def older_than(self, seconds: float) -> AsyncIterator[Sequence[str]]:
        """All hashes kept, in groups, but those somebody kept (again) within the last `seconds`."""
        ...


class RawContent(Value, frozen=True):
    """A large payload of the log, read like an artifact."""

    metadata: ArtifactMetadata
    content: bytes


RawReader = Callable[[Grant, str], Awaitable[RawContent | None]]


class ScopeState(Value, frozen=True):
    """The state of one scope: how many bytes all its values have, and as many of them as were asked for."""

    size: int
    values: Mapping[str, bytes]
    left_out: tuple[str, ...] = ()
    """The keys whose values were more than was asked for."""


class KeptRecords(Rows, Protocol):
    async def artifact(self, artifact_id: str) -> ArtifactRow | None: ...
    async def artifacts_of(self, session_id: str, *, limit: int = 500) -> Sequence[ArtifactRow]:
        """Artifacts of a conversation, in order of id."""
        ...

    async def expired_artifacts(self, now: float, *, limit: int = 500) -> Sequence[ArtifactRow]:
        """Artifacts whose time is over, longest over first."""
        ...

    async def artifact_bytes(self, workspace_id: str) -> int: ...
    async def blobs_in_use(self, hashes: Sequence[str]) -> frozenset[str]:
        """Those of these hashes that an artifact or a storage area needs."""
        ...

    async def stored(self, area_key: str, key: str) -> StorageRow | None: ...
    async def stored_keys(self, area_key: str, *, prefix: str = "", after: str = "", limit: int = 100) -> Sequence[str]:
        """Keys that begin with `prefix` and come after `after`, in order of their code points."""
        ...

    async def stored_bytes(self, area_key: str) -> int: ...
    async def stored_before(self, key_prefix: str, time: float, *, limit: int = 500) -> Sequence[StorageRow]:
        """Rows of areas whose area key begins so, last written before `time`: what was begun and never finished."""
        ...

    async def state(self, scope_key: str, key: str) -> bytes | None: ...
    async def state_snapshot(self, scope_keys: Sequence[str], *, max_bytes: int) -> Mapping[str, ScopeState]:
        """Each of these scopes as it is now; of its values those that fit into `max_bytes`, in order of their keys."""
        ...

    async def state_size(self, scope_key: str) -> int: ...
