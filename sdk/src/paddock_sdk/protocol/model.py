"""How every wire shape behaves: listen kindly, speak exactly. No shapes here, only their common manners."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict
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
        """Read what the other side said. Raises pydantic.ValidationError."""
        return cls.model_validate(raw)

    def to_wire(self) -> dict[str, Any]:
        """Say it in plain JSON values; a field that is null is left out."""
        return self.model_dump(mode="json", exclude_none=True)
