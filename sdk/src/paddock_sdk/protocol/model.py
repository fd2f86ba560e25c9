"""How every wire shape behaves: listen kindly, speak exactly. No shapes here, only their common manners."""

from collections.abc import Iterable
from typing import Any, Self, cast

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticUndefined

EpochSeconds = int | float
"""A moment in seconds since 1970 UTC. Whole or fractional, and kept as it came."""


class WireModel(BaseModel):
    """A frozen shape. Unknown fields are kept; a shape is compiled when it is first used, not when it is imported."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Every instance gets an empty list or object of its own, made by its type. Left to itself pydantic deep-copies
        the default, which was a quarter of what a short run costs its runner."""
        for field in cls.__pydantic_fields__.values():
            if field.default in ([], {}):
                field.default_factory = type(field.default)
                field.default = PydanticUndefined

    @classmethod
    def from_wire(cls, raw: object) -> Self:
        """Read what the other side said; null where a field has a default means the default.

        Raises pydantic.ValidationError.
        """
        try:
            return cls.model_validate(raw)
        except ValidationError as problem:
            found = problem.errors(include_url=False)
            nulls = [error["loc"] for error in found if error["loc"] and error["input"] is None]
            if not nulls:
                raise
        return cls.model_validate(_without(raw, nulls))

    def to_wire(self) -> dict[str, Any]:
        """Say it in plain JSON values; a field that is null is left out."""
        return self.model_dump(mode="json", exclude_none=True)


def _without(raw: object, places: Iterable[tuple[int | str, ...]]) -> object:
    """A copy of `raw` without the fields at `places`; whatever holds them must be an object."""
    inside: dict[int | str, list[tuple[int | str, ...]]] = {}
    for first, *rest in places:
        inside.setdefault(first, []).append(tuple(rest))
    if isinstance(raw, dict):
        held = cast("dict[str, object]", raw)
        return {
            name: _without(value, inside[name]) if name in inside else value
            for name, value in held.items()
            if () not in inside.get(name, ())
        }
    if isinstance(raw, list):
        items = cast("list[object]", raw)
        deeper = {number: [rest for rest in found if rest] for number, found in inside.items()}
        return [_without(item, deeper[number]) if number in deeper else item for number, item in enumerate(items)]
    return raw
