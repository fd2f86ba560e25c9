"""Principals: the person or program behind every request."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from paddock.rules.access.credentials import HOST, KEYLESS, Credential
from paddock.rules.errors import ErrorCode, HostError

KEY = "key:"
HOME = "default"
"""The workspace that an installation comes with."""


@dataclass(frozen=True, slots=True)
class Principal:
    workspace_id: str
    user_id: str
    role: Literal["user", "admin"] = "user"
    operator: bool = False
    """Runs this host: sees what is of no workspace, and may act for every one. No role of a workspace is one; it takes
    the local token, this machine while no key exists, or a name in the setting `operators`."""
    credential: Credential = field(default=HOST, compare=False)
    """What they were let in with: what they hold open ends with it."""


DEV = Principal(HOME, "dev", "admin", operator=True)
"""Who acts on loopback while no key is configured, and who holds the token in the data directory."""
KEYLESS_DEV = replace(DEV, credential=KEYLESS)
"""The first of the two."""


@dataclass(frozen=True, slots=True)
class Operators:
    """The names in the setting `operators`: keys by their id, and people by user and workspace."""

    keys: frozenset[str] = frozenset()
    people: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def named(cls, names: Iterable[str]) -> "Operators":
        """Of `key:ID` and `user@workspace`; a user's name may hold an `@`, a workspace's not."""
        names = tuple(names)
        keys = frozenset(name.removeprefix(KEY) for name in names if name.startswith(KEY))
        people = (name.rpartition("@") for name in names if not name.startswith(KEY))
        return cls(keys, frozenset((workspace, user) for user, _, workspace in people))

    def recognise(self, principal: Principal, key_id: str | None = None) -> Principal:
        """The caller, as one who runs the host if a name says so; they administer their own workspace too."""
        if key_id not in self.keys and not self.names(principal.workspace_id, principal.user_id):
            return principal
        return replace(principal, role="admin", operator=True)

    def names(self, workspace: str, user: str) -> bool:
        return (workspace, user) in self.people


NO_OPERATORS = Operators()


def no_such_thread() -> HostError:
    """A thread of somebody else's is told like one that is not there."""
    return HostError(ErrorCode.NOT_FOUND, "there is no such thread")
