"""Output of a harness in words that fit every harness. Values only; `narration` decides what becomes of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

WHERE_KEYS_ARE = "see config.api_key, or log in where its home directory is"
"""For whoever set up an agent that its provider does not let in."""
WHICH_VERSION = "`paddock harness doctor` says whether its version is one that was tried"
"""For whoever set up an agent whose program does not understand how it is started."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The next words of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Whole:
    """A finished stretch of text; its pieces may have come before."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolBegan:
    call_id: str
    name: str
    parameters: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ToolEnded:
    call_id: str
    name: str = ""
    result: Any = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """The harness's own name for this conversation, to be kept at once."""

    session_id: str


@dataclass(frozen=True, slots=True)
class Used:
    """Usage so far. `totals` count from the session's beginning, `turn` from this turn's."""

    turn: Mapping[str, int] = field(default_factory=dict[str, int])
    totals: Mapping[str, float] = field(default_factory=dict[str, float])

    def joined(self, later: "Used") -> "Used":
        return Used({**self.turn, **later.turn}, {**self.totals, **later.totals})


@dataclass(frozen=True, slots=True)
class Permission:
    """The harness asks before it does something. `key` is for the answer, on the harness's own wire."""

    key: Any
    call_id: str
    name: str
    parameters: Mapping[str, Any]
    options: tuple[Mapping[str, Any], ...] = ()
    exact: bool = True
    """Whether name and parameters say what exactly will be done; else a person's yes would be for anything."""
    own: bool = False
    """A tool of the run's own endpoint, where the host itself decides at each call."""
    obeyed: bool = False
    """It would write what the harness then obeys without asking: settings, hooks, programs of git."""


@dataclass(frozen=True, slots=True)
class Question:
    """The harness wants to know something of the person, and does not go on before."""

    asked: Permission
    words: str
    choices: tuple[str, ...] = ()
    """What one of them is the answer, where there is only one thing to choose."""


@dataclass(frozen=True, slots=True)
class Unreachable:
    """A further MCP server that the agent lists, and the turn goes on without."""

    server: str


@dataclass(frozen=True, slots=True)
class Over:
    """The harness's own word that the turn is over. Nothing else is: no silence, no exit status."""

    code: str | None = None
    """None: it went well."""
    message: str = ""
    retryable: bool = False


@dataclass(frozen=True, slots=True)
class Gone:
    """The process ended, or said something that is no line of this wire, without that word."""

    how: str


Heard = Piece | Whole | ToolBegan | ToolEnded | Session | Used | Permission | Question | Unreachable | Over | Gone


class LostSessionError(Exception):
    """The harness does not know the session it was asked to go on with."""


class HarnessError(Exception):
    """The turn cannot go on; `code` and the text are for the person who waits."""

    def __init__(self, code: str, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.retryable = retryable
