"""Who acts: everyone at a door is somebody."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Principal:
    workspace_id: str
    user_id: str
    role: Literal["user", "admin"] = "user"
    operator: bool = False
    """Runs this host: may act for every workspace. No key makes anybody one."""


DEV = Principal("default", "dev", "admin", operator=True)
"""Who acts on loopback while no key is configured, and who holds the token in the data directory."""
