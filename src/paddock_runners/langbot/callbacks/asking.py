"""The run that makes a call, with what it was given, and how the fields of a call are read."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from paddock_runners.langbot.context import whole_seconds
from paddock_runners.langbot.refusal import RefusedError
from paddock_runners.toolkit.values import listing, mapping
from paddock_sdk import HostApi, Result, RunContext
from paddock_sdk.protocol.model import WireModel

Data = dict[str, Any]


@dataclass(slots=True)
class Asking:
    """One run. Built when it begins; its calls are answered until it has ended."""

    ctx: RunContext
    api: HostApi
    say: Callable[[Iterable[Result]], Awaitable[None]]
    """Puts results among those of the run."""
    known_keys: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """State keys by scope: those it began with, and what it changed since."""
    cancel_requested_at: int | None = None
    replies: dict[str, str] = field(default_factory=dict[str, str])
    """Explicit replies that are being streamed, and what was shown of each."""


Work = Callable[[Asking, Data], Awaitable[Data]]


def text(data: Data, name: str) -> str:
    value = data.get(name)
    if not isinstance(value, str) or not value:
        raise RefusedError("invalid_argument", f"{name} must be a text")
    return value


def number(data: Data, name: str) -> int | None:
    value = data.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise RefusedError("invalid_argument", f"{name} must be a whole number")
    return value


def filled(data: Data, name: str) -> Data | None:
    """An object that says something; LangBot's SDK sends an empty one for none."""
    return mapping(data.get(name)) or None


def messages(data: Data) -> list[Data]:
    """Messages without their empty fields."""
    return [_without_nulls(one) for one in listing(data.get("messages"))]


def _without_nulls(value: object) -> Any:
    if isinstance(value, Mapping):
        told = mapping(cast("object", value))
        return {key: _without_nulls(one) for key, one in told.items() if one is not None}
    return [_without_nulls(one) for one in cast("list[object]", value)] if isinstance(value, list) else value


def wires(found: Iterable[WireModel]) -> list[Data]:
    return [one.to_wire() for one in found]


def page_of(page: WireModel) -> Data:
    """A page of items, their moments whole."""
    told = page.to_wire()
    return {**told, "items": [whole_seconds(one) for one in told.get("items", [])]}
