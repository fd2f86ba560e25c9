"""Records of an installation: API keys, agents made over the API, shared plugins, and sealed secrets."""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, Protocol

from paddock.ports.log import Rows
from paddock.rules.rows.rows import AgentRow, AuditRow, PluginRow
from paddock.rules.values import Value

Owner = Sequence[str | int]
"""To whom a secret belongs and which one it is. What was sealed for one owner opens for no other."""


PersonRole = Literal["user", "admin"]


class ApiKeyRow(Value, frozen=True):
    """A key somebody may act with. Only the hash is stored."""

    key_id: str
    key_hash: bytes
    workspace_id: str
    user_id: str
    role: PersonRole
    created_at: float
    revoked_at: float | None = None
    by_operator: bool = False
    """Whether whoever runs the host made it: no other key runs the host by the name of its user."""


class ApiKeys(Protocol):
    async def add_key(self, row: ApiKeyRow) -> None: ...
    async def find_key(self, key_hash: bytes) -> ApiKeyRow | None:
        """The key with this hash, unless it was revoked."""
        ...

    async def live_keys(self, key_ids: Sequence[str]) -> Collection[str]:
        """Those of these keys that were not revoked."""
        ...

    async def any_key(self) -> bool:
        """True if there ever was a key: a revoked one still tells that callers are known by key here."""
        ...

    async def api_keys(
        self, workspace_id: str | None, *, user_id: str | None = None, limit: int = 1000
    ) -> Sequence[ApiKeyRow]:
        """The keys of a workspace, or of all, and of one user of it; revoked ones too, the newest first."""
        ...

    async def revoke_key(self, key_id: str, at: float, audit_row: AuditRow) -> None:
        """From now on nobody is let in with it. The first time counts."""
        ...


class AgentRecords(Rows, Protocol):
    """One with an empty body is taken away."""

    async def stored_agents(self) -> Sequence[AgentRow]:
        """All of them, of every workspace, in order of workspace and name."""
        ...

    async def stored_agent(self, workspace_id: str, agent_id: str) -> AgentRow | None: ...


class PluginRecords(Rows, Protocol):
    """One with an empty body is taken away."""

    async def shared_plugins(self) -> Mapping[str, str]:
        """The hash of each, by author/name."""
        ...

    async def shared_plugin(self, plugin: str) -> PluginRow | None: ...


class Sealing(Protocol):
    """Closes and opens texts with the cluster's secret."""

    def seal(self, text: str, owner: Owner) -> str: ...

    def opened(self, sealed: str, owner: Owner) -> str | None:
        """Return what was sealed, or None when it was sealed with another secret, or for another owner."""
        ...

    def is_sealed(self, text: str) -> bool: ...

    def is_current(self, sealed: str) -> bool:
        """True if it was sealed with the newest secret."""
        ...


class SecretRecords(Protocol):
    """Remembers by its mark which secret an installation was last used with."""

    async def secret_mark(self) -> str | None: ...

    async def set_secret_mark(self, mark: str) -> None: ...
