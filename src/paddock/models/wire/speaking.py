"""What every provider's wire is to the one who speaks it."""

from collections.abc import Mapping
from typing import Any, Protocol, cast

from paddock.ports.models import ModelAnswer, ModelCall, ModelPiece
from paddock.rules.agents.model_specs import ModelSpec


class ServerSaidError(Exception):
    """The server reported an error in the middle of an answer. `status` is what it would have been as a response."""

    def __init__(self, message: str, status: int = 500) -> None:
        super().__init__(message)
        self.status = status


def reason_of(error: Any) -> str:
    """What a server's report of an error says, whatever its shape."""
    about = cast("dict[str, Any]", error) if isinstance(error, dict) else {"message": error}
    return str(about.get("message") or "the server gave no answer and no reason")


class Collector(Protocol):
    """Reads one streamed answer, event by event."""

    finished: bool
    """The server said that nothing follows."""

    @property
    def complete(self) -> bool:
        """The answer is whole, whether or not the server said goodbye."""
        ...

    def take(self, data: bytes) -> ModelPiece | None:
        """What this event adds to the answer, if anything. Raises ServerSaidError, msgspec.DecodeError."""
        ...

    def last(self) -> ModelPiece:
        """The final piece: tool calls whole, the reason it ended, usage."""
        ...


class Wire(Protocol):
    """One provider's API in values."""

    def request(self, call: ModelCall, spec: ModelSpec, *, stream: bool) -> Mapping[str, Any]:
        """The body of the request."""
        ...

    def collector(self) -> Collector: ...
    def answer(self, body: bytes) -> ModelAnswer:
        """A whole answer. Raises ServerSaidError, msgspec.DecodeError."""
        ...
