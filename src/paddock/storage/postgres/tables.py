"""How rows of one type become part of the group's one statement: their columns as arrays, and what is done with them.

Each family of rows describes itself with a `Table` in its own module. Values are always bound; texts are made storable
here, for every table, so that no family can forget it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from paddock.storage.postgres.texts import escaped_column

# ruff: noqa: S608 - the names are our own, values are always bound
Values = tuple[Any, ...]
Reads = Callable[[Any], Values]

TYPES = {"text": "text", "int": "bigint", "float": "double precision", "bytes": "bytea", "bool": "boolean"}


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """`columns` is `name type, ...` in the order of the values. In `parts`, each a statement under a name, `{rows}`
    stands for the group's rows that may be written: their columns, and `n` for their order; those that belong to
    a session also have its `session_no`. `{columns}` stands for the names.
    """

    name: str
    columns: str
    parts: Mapping[str, str]
    types: Sequence[str] = field(init=False)
    names: Sequence[str] = field(init=False)
    read: Reads = field(init=False)
    """A row's values in the order of the columns."""

    def __post_init__(self) -> None:
        pairs = [column.rsplit(" ", 1) for column in self.columns.split(", ")]
        object.__setattr__(self, "names", [name for name, _ in pairs])
        object.__setattr__(self, "types", [TYPES[kind] for _, kind in pairs])
        object.__setattr__(self, "read", attrgetter(*(name.strip('"') for name, _ in pairs)))

    def arrays(self, rows: Sequence[Values]) -> Iterator[Sequence[Any]]:
        """Turn rows into columns; the first is the place of the batch in its group."""
        batches, *columns = zip(*rows, strict=True)
        yield batches
        for kind, column in zip(self.types, columns, strict=True):
            yield escaped_column(column) if kind == "text" else column

    def sql(self, first: int) -> str:
        """The parts as common table expressions whose arrays begin at parameter number `first`."""
        arrays = ", ".join(f"${first + index}::{kind}[]" for index, kind in enumerate(["int", *self.types]))
        names = ", ".join(self.names)
        given = f"unnest({arrays}) with ordinality as given (b, {names}, n)"
        rows = f"(select passed.session_no, given.* from {given} join passed using (b)) as r"
        return ",\n".join(f"{name} as ({part.format(rows=rows, columns=names)})" for name, part in self.parts.items())


def insert(name: str, columns: str, *, session: bool = False, on_conflict: str = "", order: str = "n") -> Table:
    """A table whose rows are only ever added, or changed when they exist."""
    first = "session_no, " if session else ""
    statement = f"insert into {name} ({first}{{columns}}) select {first}{{columns}} from {{rows}} order by {order}"
    return Table(name, columns, {f"w_{name}": f"{statement} {on_conflict}"})


def last_word(name: str, columns: str, *, key: Sequence[str], gone: str) -> Table:
    """A table of which only the last row on each key counts; one for which `gone` holds takes what is there away."""
    keys, table = ", ".join(key), Table(name, columns, {})
    same = " and ".join(f"{name}.{column} = last.{column}" for column in key)
    changed = ", ".join(f"{column} = excluded.{column}" for column in table.names if column not in key)
    parts = {
        f"last_{name}": f"select distinct on ({keys}) {{columns}} from {{rows}} order by {keys}, n desc",
        f"d_{name}": f"delete from {name} using last_{name} as last where {same} and last.{gone}",
        f"w_{name}": f"insert into {name} ({{columns}}) select {{columns}} from last_{name} where not ({gone}) "
        f"order by {keys} on conflict ({keys}) do update set {changed}",
    }
    return Table(name, columns, parts)
