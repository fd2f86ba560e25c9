"""Base class of values: a frozen record that compares by its fields. A msgspec struct, because a frozen dataclass
costs twenty times as much to make and a short run makes some sixty of them."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import msgspec

T = TypeVar("T")


class Value(msgspec.Struct, frozen=True, gc=False):
    """A frozen record. Never part of a cycle, so the garbage collector need not look at it."""


replace = msgspec.structs.replace
"""A copy with some fields changed."""


nothing: Any = msgspec.field(default_factory=cast("Callable[[], Any]", dict))  # dict[str, Any] would be slower
"""The default of a mapping nobody filled."""


def refusing(problem: str, fits: Callable[[T], object]) -> Callable[[T], T]:
    """A check that gives the value back, or raises with the problem."""

    def check(value: T) -> T:
        if not fits(value):
            raise ValueError(problem)
        return value

    return check
