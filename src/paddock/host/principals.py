"""Who acts: everyone at a door is somebody."""

from dataclasses import dataclass
from typing import Literal

from paddock.rules.errors import ErrorCode, HostError

HOME = "default"
"""The workspace that an installation comes with."""


@dataclass(frozen=True, slots=True)
class Principal:
    workspace_id: str
    user_id: str
    role: Literal["user", "admin"] = "user"
    operator: bool = False
    """Runs this host: may act for every workspace. No key makes anybody one."""

    @property
    def sees_hosts(self) -> bool:
        """Whether they may know what hosts decide for all workspaces: who runs one may, and whoever is of the workspace
        that an installation comes with."""
        return self.operator or self.workspace_id == HOME


DEV = Principal(HOME, "dev", "admin", operator=True)
"""Who acts on loopback while no key is configured, and who holds the token in the data directory."""


def no_such_thread() -> HostError:
    """A thread of somebody else's is told like one that is not there."""
    return HostError(ErrorCode.NOT_FOUND, "there is no such thread")
