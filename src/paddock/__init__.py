"""Paddock, an agent host. An agent written as a Python file needs one name from here: `from paddock import Agent`.

The name is loaded when it is first used: every command passes here, and most have no agent to write.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paddock.agent import Agent

__all__ = ["Agent"]


def __getattr__(name: str) -> object:
    if name != "Agent":
        raise AttributeError(f"module 'paddock' has no attribute {name!r}")
    from paddock.agent import Agent

    return Agent
