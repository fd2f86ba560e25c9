"""An agent as a person writes it in a Python file. Only words: what the host makes of them is in `agent_program.py`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent: what it is to do, and which functions are its tools (every public function of its file unless said)."""

    instructions: str = ""
    name: str = ""
    """What people call it; the file's name unless set."""
    model: str = "demo"
    tools: Sequence[Callable[..., Any]] | None = None
    approve: Sequence[str] = ()
    """Tools a person must agree to before each call."""
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further settings of the local agent."""
