"""Base class of values: a frozen record that compares by its fields. A msgspec struct, because a frozen dataclass
costs twenty times as much to make and a short run makes some sixty of them."""

from typing import Any

import msgspec


class Value(msgspec.Struct, frozen=True, gc=False):
    """A frozen record. Never part of a cycle, so the garbage collector need not look at it."""


replace = msgspec.structs.replace
"""A copy with some fields changed."""


def no_items() -> dict[str, Any]:
    """The default of a mapping nobody filled."""
    return {}


nothing: Any = msgspec.field(default_factory=no_items)
