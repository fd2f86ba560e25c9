"""How rows of one type are kept in a table, stated once: each database's way to write many of them follows from it.

Rows of these types are gathered and written together with whatever else waits for a commit. Rows whose order or
condition matters are written one by one instead (`statements.Write`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec
from msgspec.structs import astuple

from paddock.storage.tables.statements import Values, quoted

KINDS: Mapping[type, str] = {
    str: "text",
    int: "bigint",
    float: "double precision",
    bytes: "bytea",
    bool: "boolean",
}


class Gone(NamedTuple):
    """A row with this value in this column takes away what is there."""

    column: str
    value: bytes | None

    def of(self, row: object) -> bool:
        return getattr(row, self.column) == self.value

    @property
    def sql(self) -> str:
        return f"{self.column} is null" if self.value is None else f"{self.column} = ''"


class LookedUp(NamedTuple):
    """A further column whose value the database looks up: `{}` in the SQL stands for that field of the row."""

    column: str
    sql: str
    field: str


@dataclass(frozen=True, eq=False)
class Table:
    """Columns are the fields of `row`, in order, but those that are `left_out` at its beginning or end.

    `of_session`: the number of the session stands before them, in the place of its id. A row that exists is an error,
    or stays as it is (`first`), or has the columns `again` written again where `unless` does not hold. `order`: by
    which column rows are written, so that two writers never wait for each other in a circle.
    """

    name: str
    row: Any
    key: Sequence[str] = ()
    again: Sequence[str] = ()
    only_where: str = ""
    first: bool = False
    of_session: bool = False
    left_out: Sequence[str] = ()
    looked_up: LookedUp | None = None
    gone: Gone | None = None
    order: str = "n"
    merged: Callable[[Any, Any], Any] | None = None
    """What is left of two writes of one row; for rows that one statement may write only once."""
    names: Sequence[str] = field(init=False)
    kinds: Sequence[str] = field(init=False)
    read: Callable[[Any], Values] = field(init=False)
    """A row's values in the order of the columns."""

    def __post_init__(self) -> None:
        fields = [one.name for one in msgspec.structs.fields(self.row)]
        kept = [name for name in fields if name not in self.left_out and not (self.of_session and name == "session_id")]
        hints = get_type_hints(self.row)
        start = fields.index(kept[0])
        assert kept == fields[start : start + len(kept)], "columns follow each other"
        object.__setattr__(self, "names", [quoted(name) for name in kept])
        object.__setattr__(self, "kinds", [_kind(hints[name]) for name in kept])
        object.__setattr__(self, "read", _reader(start, len(kept), len(fields)))

    @property
    def columns(self) -> str:
        return ", ".join(self.names)

    def of(self, alias: str) -> str:
        return ", ".join(f"{alias}.{name}" for name in self.names)

    @property
    def on_conflict(self) -> str:
        if self.first:
            return "on conflict do nothing"
        if not self.again:
            return ""
        changed = ", ".join(f"{name} = excluded.{name}" for name in map(quoted, self.again))
        where = f" where {self.only_where}" if self.only_where else ""
        return f"on conflict ({', '.join(self.key)}) do update set {changed}{where}"

    def key_of(self, row: object) -> Values:
        return tuple(getattr(row, name) for name in self.key)


def _reader(start: int, count: int, whole: int) -> Callable[[Any], Values]:
    """All fields at once and then a part of them: a row costs a sixth of what it costs field by field."""
    if count == whole:
        return astuple
    end = start + count
    return lambda row: astuple(row)[start:end]


def _kind(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return "text"
    if isinstance(hint, UnionType):
        [hint] = [one for one in get_args(hint) if one is not NoneType]
    return KINDS[hint]
