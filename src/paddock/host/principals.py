"""Who acts: everyone at a door is somebody."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Principal:
    workspace_id: str
    user_id: str
    role: Literal["user", "admin"] = "user"


DEV = Principal("default", "dev", "admin")
"""Who acts on loopback while no key is configured."""
