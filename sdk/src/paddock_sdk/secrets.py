"""Secrets of a run: their values are hidden from prints and logs and are in no context and no store."""

from collections.abc import Iterator, Mapping
from typing import cast


class Secrets(Mapping[str, str]):
    """Names and values; showing it shows the names only."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)

    @classmethod
    def from_wire(cls, said: object) -> "Secrets":
        """Whatever a frame holds: what is not a name with a text is not a secret."""
        if said is None:
            return NO_SECRETS
        given = cast("Mapping[object, object]", said if isinstance(said, Mapping) else {})
        return cls({key: text for key, text in given.items() if isinstance(key, str) and isinstance(text, str)})

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Secrets({', '.join(f'{name}=***' for name in self._values)})"


NO_SECRETS = Secrets({})
