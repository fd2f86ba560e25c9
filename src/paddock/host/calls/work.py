"""How a host call is done once the gate has let it pass. Every room that offers calls has a `work` table of these."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import BaseModel

from paddock.rules.access.permissions import Grant
from paddock.rules.rows.rows import AuditRow


class Chunks(Protocol):
    """An answer in pieces: what each notification holds, then the response that ends them."""

    def __aiter__(self) -> AsyncIterator[Mapping[str, Any]]: ...
    @property
    def result(self) -> Mapping[str, Any]:
        """The response, known when the last piece is out."""
        ...


Reader = Callable[[Grant, Any], Awaitable[BaseModel]]
Writer = Callable[[Grant, Any, AuditRow], Awaitable[BaseModel]]
Streamer = Callable[[Grant, Any], Chunks | Awaitable[Chunks]]
"""May have to look first whether there is anything to stream; what it raises then is the answer."""


@dataclass(frozen=True, slots=True)
class CallHandler:
    """One of three: a read is audited shortly after, a write together with its effect, a stream when it begins."""

    read: Reader | None = None
    write: Writer | None = None
    stream: Streamer | None = None
