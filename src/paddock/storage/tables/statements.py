"""SQL that is written once for every database, with named values.

- `:name` is a value; `:name::text` one whose type PostgreSQL cannot find out by itself. Types are dropped for SQLite.
- `{columns}` stands for the columns of a row type, which are its fields.
- `= any(:names::text[])` takes a list of values, and `from each(:numbers::bigint[])` makes rows of one, with the column
  `value`.
- `greatest(a, b)` and `no_bytes()` (an empty value of bytes) have another name in each database.
- `/*sqlite ...*/` and `/*postgres ...*/` are read by that database alone: a hint, a lock.

A `Work` is several statements, each asked after the answer to the one before: a generator that yields what it asks and
is sent the rows. It knows no database and no way to wait, so every engine runs the same one.
"""

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from operator import attrgetter, itemgetter
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar, get_type_hints, overload

import msgspec

from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import AuditRow

Row = TypeVar("Row")
Answer = TypeVar("Answer")
Values = tuple[Any, ...]
_VALUE = re.compile(r"(?<!:):([a-z_][a-z0-9_]*)(::(?:double precision|[a-z]+)(?:\[\])?)?")
_TYPE = re.compile(r"::(?:double precision|[a-z0-9]+)(?:\[\])?")
_HINT = re.compile(r"/\*(sqlite|postgres)\s(.*?)\*/", re.DOTALL)
_RESERVED = frozenset({"grant"})


def columns_of(row: type, prefix: str = "") -> str:
    return ", ".join(prefix + quoted(field.name) for field in msgspec.structs.fields(row))


def quoted(name: str) -> str:
    return f'"{name}"' if name in _RESERVED else name


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

    @cached_property
    def names(self) -> Sequence[str]:
        return bind(self.sql, mark="$", typed=True).names

    def read(self, found: Sequence[Any]) -> Row:
        """Make one answer of the columns that were found."""
        if not self.truths:
            return self.row(*found)
        values = list(found)
        for place in self.truths:
            values[place] = bool(values[place])
        return self.row(*values)

    def __call__(self, **given: Any) -> "Ask":
        """Ask it within a work, where the answer is plain columns."""
        return Ask(self.sql, given)


def is_there(*_found: Any) -> bool:
    """The row of a query that asks only whether there is one."""
    return True


def value(found: Any) -> Any:
    """The row of a query with one column."""
    return found


def several(*found: Any) -> Values:
    """The row of a query whose columns are taken as they are."""
    return found


class Ask(NamedTuple):
    """One step of a work: a statement, and its values by name or as the fields of a row."""

    sql: str
    given: Any


Work = Generator[Ask, Sequence[Any], Answer]
Write = Callable[[Any], Work[None]]
"""How a row is written whose order or condition matters."""


def ask(sql: str, **given: Any) -> Ask:
    return Ask(sql, given)


def just(asked: Ask) -> Work[None]:
    """Ask one thing, whatever the answer."""
    yield asked


@dataclass(frozen=True, eq=False)
class Change:
    """A statement that writes one row; its values are the row's fields.

    With `refused` it must answer with something (`returning 1`): when it does not, the row is refused with this
    sentence and nothing of its commit is written. With `when` it is skipped for rows that do not fit.
    """

    sql: str
    refused: str = ""
    when: Callable[[Any], bool] | None = None

    def check(self, answer: object) -> None:
        if self.refused and not answer:
            raise HostError(ErrorCode.CONFLICT, self.refused)


def in_turn(*changes: Change) -> Write:
    """Write a row by these statements, one after the other."""
    return partial(_write, changes)


def _write(changes: Sequence[Change], row: Any) -> Work[None]:
    for change in changes:
        if change.when is None or change.when(row):
            change.check((yield Ask(change.sql, row)))


def put(
    table: str,
    row: type,
    *,
    key: str,
    again: Sequence[str] = (),
    also: str = "",
    left_out: Sequence[str] = (),
    when: Callable[[Any], bool] | None = None,
) -> Change:
    """Write a row whole; of one that exists, the columns `again` are written again, or nothing when there are none.

    `also`: what else is set in a row that exists. `left_out`: fields that are no columns.
    """
    names = [field.name for field in msgspec.structs.fields(row) if field.name not in left_out]
    columns, values = ", ".join(map(quoted, names)), ", ".join(f":{name}" for name in names)
    changed = ", ".join(filter(None, (*(f"{name} = excluded.{name}" for name in again), also)))
    then = f"update set {changed}" if changed else "nothing"
    sql = f"insert into {table} ({columns}) values ({values}) on conflict ({key}) do {then}"  # noqa: S608 - our own names
    return Change(sql, when=when)


@dataclass(frozen=True)
class Bound:
    """A statement as one database takes it, and the names of its values in order."""

    sql: str
    names: Sequence[str]
    lists: Mapping[int, str]
    """The places of values that are lists, and the type of what is in them."""

    @cached_property
    def _of_mapping(self) -> Callable[[Any], Values]:
        return _picking(self.names, itemgetter)

    @cached_property
    def _of_row(self) -> Callable[[Any], Values]:
        return _picking(self.names, attrgetter)

    def values(self, given: Any) -> Values:
        return self._of_row(given) if isinstance(given, msgspec.Struct) else self._of_mapping(given)


def _picking(names: Sequence[str], getter: Callable[..., Callable[[Any], Any]]) -> Callable[[Any], Values]:
    if len(names) == 1:
        pick = getter(names[0])
        return lambda given: (pick(given),)
    return getter(*names) if names else lambda _: ()


def bind(sql: str, *, mark: str, typed: bool) -> Bound:
    """Number the values: `mark` and a number stand for each. `typed`: this database reads `::type`."""
    names: list[str] = []
    lists: dict[int, str] = {}

    def number(found: re.Match[str]) -> str:
        name, kind = found[1], found[2] or ""
        if name not in names:
            names.append(name)
        if kind.endswith("[]"):
            lists[names.index(name)] = kind[2:-2]
        return f"{mark}{names.index(name) + 1}{kind if typed else ''}"

    bound = _VALUE.sub(number, sql)
    return Bound(bound if typed else _TYPE.sub("", bound), names, lists)


def in_dialect(sql: str, dialect: str, words: Mapping[str, str]) -> str:
    """Keep the hints of one database, drop those of others, and say its own words for those that differ."""
    sql = _HINT.sub(lambda found: found[2] if found[1] == dialect else "", sql)
    for word, own in words.items():
        sql = sql.replace(word, own)
    return sql


class Engine(Protocol):
    """Asks a database. Every read is of committed data."""

    async def one(self, query: Query[Row], **given: Any) -> Row | None:
        """The first row, or None."""
        ...

    async def all(self, query: Query[Row], **given: Any) -> Sequence[Row]: ...
    async def long(self, query: Query[Row], **given: Any) -> Sequence[Row]:
        """Ask a query that may take a while. Raises HostError(DEADLINE_EXCEEDED) when it takes too long."""
        ...

    async def ask(self, work: Callable[[], Work[Answer]]) -> Answer:
        """The answer to a work that only reads. Raises HostError(DEADLINE_EXCEEDED) when it takes too long."""
        ...

    async def do(
        self, work: Callable[[], Work[Answer]], rows: Sequence[AuditRow] = (), *, durably: bool = True
    ) -> Answer:
        """Do a work in one commit, together with these rows. Not `durably`: a crash of the database may forget it."""
        ...


class HasEngine(Protocol):
    engine: Engine


# Their parameters are the values of the query, in order; those with a default may be left out. What they mean and what
# is promised stands in the port.
if TYPE_CHECKING:
    LookUp = Callable[..., CoroutineType[Any, Any, Answer]]


@overload
def one(row: Callable[..., Row], sql: str, *, otherwise: Row, **defaults: Any) -> "LookUp[Row]": ...
@overload
def one(row: Callable[..., Row], sql: str, **defaults: Any) -> "LookUp[Row | None]": ...
def one(row: Callable[..., Any], sql: str, *, otherwise: Any = None, **defaults: Any) -> "LookUp[Any]":
    """Look up the first row; without one, `otherwise`."""
    return _look_up(Query(row, sql), "one", defaults, otherwise)


def many(row: Callable[..., Row], sql: str, **defaults: Any) -> "LookUp[Sequence[Row]]":
    return _look_up(Query(row, sql), "all", defaults)


def long(row: Callable[..., Row], sql: str, **defaults: Any) -> "LookUp[Sequence[Row]]":
    """Look up all rows, in a query that may take a while."""
    return _look_up(Query(row, sql), "long", defaults)


def _look_up(query: Query[Any], way: str, defaults: Mapping[str, Any], otherwise: Any = None) -> "LookUp[Any]":
    async def look_up(self: HasEngine, *values: Any, **named: Any) -> Any:
        given = {**defaults, **dict(zip(query.names, values, strict=False)), **named}
        found = await getattr(self.engine, way)(query, **given)
        return otherwise if found is None else found

    return look_up
