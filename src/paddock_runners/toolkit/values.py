"""JSON values from outside, read as what they should be: an object or an empty one, a list or an empty one."""

from collections.abc import Mapping
from typing import Any, cast


def mapping(value: object) -> dict[str, Any]:
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}


def listing(value: object) -> list[Any]:
    return list(cast("list[Any]", value)) if isinstance(value, list | tuple) else []
