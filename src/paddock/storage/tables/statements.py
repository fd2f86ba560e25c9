"""SQL that is written once for both databases, with named values.

`:name` is a value, `:name::text` one whose type PostgreSQL cannot find out by itself. `{columns}` stands for the
columns of a row type, which are its fields.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any, Generic, Protocol, TypeVar, get_type_hints

import msgspec

from paddock.rules.errors import ErrorCode, HostError

Row = TypeVar("Row")
Values = tuple[Any, ...]
_VALUE = re.compile(r"(?<!:):([a-z_][a-z0-9_]*)(::(?:double precision|[a-z]+)(?:\[\])?)?")
_RESERVED = frozenset({"grant"})


def columns_of(row: type, prefix: str = "") -> str:
    """The columns of a row type, in the order of its fields."""
    names = [field.name for field in msgspec.structs.fields(row)]
    return ", ".join(prefix + (f'"{name}"' if name in _RESERVED else name) for name in names)


class Query(Generic[Row]):
    """A question whose answer is rows of one type."""

    def __init__(self, row: Callable[..., Row], sql: str) -> None:
        self.row = row
        self.sql = sql.replace("{columns}", columns_of(row)) if isinstance(row, type) else sql

    @cached_property
    def truths(self) -> Sequence[int]:
        """The places of columns that are true or false. SQLite keeps them as numbers."""
        if not isinstance(self.row, type):
            return ()
        kinds = get_type_hints(self.row)
        fields = msgspec.structs.fields(self.row)
        return [place for place, field in enumerate(fields) if kinds[field.name] is bool]


@dataclass(frozen=True, eq=False)
class Change:
    """A statement that writes one row; its values are the row's fields.

    With `refused` it must answer with something (`returning 1`): when it does not, the row is refused with this
    sentence and nothing of its commit is written.
    """

    sql: str
    refused: str = ""

    def check(self, answer: object) -> None:
        if self.refused and not answer:
            raise HostError(ErrorCode.CONFLICT, self.refused)


def put(table: str, row: type, *, key: str, again: Sequence[str]) -> Change:
    """Write a row whole; of one that exists, the columns `again` are written again."""
    values = ", ".join(f":{field.name}" for field in msgspec.structs.fields(row))
    changed = ", ".join(f"{name} = excluded.{name}" for name in again)
    sql = f"insert into {table} ({columns_of(row)}) values ({values}) on conflict ({key}) do update set {changed}"  # noqa: S608 - our own names
    return Change(sql)


@dataclass(frozen=True)
class Bound:
    """A statement as one database takes it, and the names of its values in order."""

    sql: str
    names: Sequence[str]

    def values_in(self, given: Mapping[str, Any]) -> Values:
        return tuple(given[name] for name in self.names)

    @cached_property
    def values_of(self) -> Callable[[Any], Values]:
        """The values of a row."""
        if len(self.names) == 1:
            name = self.names[0]
            return lambda row: (getattr(row, name),)
        return attrgetter(*self.names)


def bind(sql: str, *, mark: str, typed: bool) -> Bound:
    """Number the values: `mark` and a number stand for each. `typed`: this database reads `::type`."""
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        name = found[1]
        if name not in names:
            names.append(name)
        kind = (found[2] or "") if typed else ""
        return f"{mark}{names.index(name) + 1}{kind}"

    return Bound(_VALUE.sub(number, sql), names)


class Engine(Protocol):
    """Asks a database. Every read is of committed data."""

    async def one(self, query: Query[Row], **given: Any) -> Row | None:
        """The first row, or None."""
        ...

    async def all(self, query: Query[Row], **given: Any) -> Sequence[Row]: ...


class HasEngine(Protocol):
    """A part of a store that asks."""

    engine: Engine
