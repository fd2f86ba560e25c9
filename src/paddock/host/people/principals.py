"""Principals: the person or program behind every request, and the API keys they come with."""

import secrets
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Protocol

from paddock.ports import ApiKeyRow
from paddock.ports.definitions import PersonRole
from paddock.rules.access.signatures import HOST, KEYLESS, Credential
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import AuditRow

KEY = "key:"
HOME = "default"
"""The workspace of every new installation."""


class Owned(Protocol):
    """A row that belongs to one user of one workspace."""

    @property
    def workspace_id(self) -> str: ...
    @property
    def user_id(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Principal:
    workspace_id: str
    user_id: str
    role: PersonRole = "user"
    operator: bool = False
    """Runs this host: may act for every workspace and sees what belongs to none. No role of a workspace gives this; it
    takes the local token, this machine while no key exists, or a name in the setting `operators`."""
    credential: Credential = field(default=HOST, compare=False)
    """The credential of this request. Streams and attached runners end when it is revoked."""

    def owns(self, row: Owned) -> bool:
        return (row.workspace_id, row.user_id) == (self.workspace_id, self.user_id)

    def audit(
        self,
        action: str,
        resource: str,
        *,
        at: float,
        scope: str | None = None,
        reason: str | None = None,
        error: HostError | None = None,
        run_id: str | None = None,
        session_id: str | None = None,
    ) -> AuditRow:
        """The audit row of an action of this principal: allowed, or refused with `error`."""
        return AuditRow(
            time=at,
            workspace_id=self.workspace_id,
            actor=f"user:{self.user_id}",
            action=action,
            resource=resource,
            scope=self.workspace_id if scope is None else scope,
            result="allowed" if error is None else str(error.code),
            reason=(reason or f"role {self.role}") if error is None else error.message[:500],
            run_id=run_id,
            session_id=session_id,
        )


DEV = Principal(HOME, "dev", "admin", operator=True)
"""Acts on loopback while no key is configured, and with the token in the data directory."""
KEYLESS_DEV = replace(DEV, credential=KEYLESS)
"""`DEV` on loopback while no key is configured."""


@dataclass(frozen=True, slots=True)
class Operators:
    """The names in the setting `operators`: keys by their id, and people by user and workspace."""

    keys: frozenset[str] = frozenset()
    people: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def named(cls, names: Iterable[str]) -> "Operators":
        """Read names like `key:ID` and `user@workspace`. A user's name may contain an `@`, a workspace's may not."""
        names = tuple(names)
        keys = frozenset(name.removeprefix(KEY) for name in names if name.startswith(KEY))
        people = (name.rpartition("@") for name in names if not name.startswith(KEY))
        return cls(keys, frozenset((workspace, user) for user, _, workspace in people))

    def recognise(self, principal: Principal, key: ApiKeyRow | None = None) -> Principal:
        """Make the principal an operator, and an administrator of their workspace, if they are named.

        A key for a person who is named counts if whoever runs the host made it: an administrator of their workspace
        may have made one before they were named. Without a key an issuer says who they are."""
        person = self.names(principal.workspace_id, principal.user_id) and (key is None or key.by_operator)
        if not person and (key is None or key.key_id not in self.keys):
            return principal
        return replace(principal, role="admin", operator=True)

    def names(self, workspace: str, user: str) -> bool:
        return (workspace, user) in self.people


NO_OPERATORS = Operators()


def no_such_thread() -> HostError:
    """The error for a thread that does not exist, and for a thread of another user."""
    return HostError(ErrorCode.NOT_FOUND, "there is no such thread")


PREFIX = "pdk_"
"""Lets secret scanners recognise a key."""


def new_key(workspace_id: str, user_id: str, role: PersonRole, *, by_operator: bool = False) -> tuple[str, ApiKeyRow]:
    """Make a random key of 256 bits, and the row that recognises it later; only its hash is stored."""
    key = PREFIX + secrets.token_urlsafe(32)
    return key, ApiKeyRow(
        key_id=str(uuid.uuid4()),
        key_hash=sha256(key.encode()).digest(),
        workspace_id=workspace_id,
        user_id=user_id,
        role=role,
        created_at=time.time(),
        by_operator=by_operator,
    )
