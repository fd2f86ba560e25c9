"""Shapes of the work behind the gate. Every module that offers calls has a `work` table of these."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import BaseModel

from paddock.rules.access.permissions import Grant
from paddock.rules.rows.rows import AuditRow


class Chunks(Protocol):
    """A streamed answer: the content of each notification, then the response."""

    def __aiter__(self) -> AsyncIterator[Mapping[str, Any]]: ...
    @property
    def result(self) -> Mapping[str, Any]:
        """The response; set when the last piece has been read."""
        ...


async def close(source: object) -> None:
    """Let an iterator clean up, if it has a way to."""
    aclose = getattr(source, "aclose", None)
    if aclose is not None:
        await aclose()


NOT_GRANTED = "this run may not do that"
"""One sentence for all that is not in a grant, and for unknown, ended and foreign runs: runners cannot tell them
apart."""
Reader = Callable[[Grant, Any], Awaitable[BaseModel]]
Writer = Callable[[Grant, Any, AuditRow], Awaitable[BaseModel]]
Streamer = Callable[[Grant, Any], Chunks | Awaitable[Chunks]]
"""Opens a stream. It may read first; an error it raises is the answer."""


@dataclass(frozen=True, slots=True)
class CallHandler:
    """A read is audited shortly after, a write together with its effect, a stream when it begins."""

    read: Reader | None = None
    write: Writer | None = None
    stream: Streamer | None = None
