"""Moves an embedded installation into a PostgreSQL database that holds nothing yet: every row, in one transaction.

Both schemas have the same tables and columns; what a plug derives for itself (search, words of knowledge) is made anew.
Bytes of files are moved by whoever asks, through the port for bytes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paddock.rules.errors import StorageUnavailableError
from paddock.rules.rows.rows import PluginRow
from paddock.rules.search.tokens import tokens_of
from paddock.storage.postgres.connection import Connection, connected, escaped_column, unescaped
from paddock.storage.postgres.hosts import refuse_while_served
from paddock.storage.postgres.migrate import bring_up_to_date
from paddock.storage.postgres.search import columns
from paddock.storage.sqlite import SqliteStore
from paddock.storage.sqlite.connection import Connection as SqliteConnection
from paddock.storage.sqlite.connection import open_reader

# ruff: noqa: S608 - the names are those of our own tables, values are always bound
DERIVED = frozenset(
    {
        *("search", "search_progress", "thread_search", "thread_search_progress"),
        *("knowledge_search", "knowledge_words", "model_spent"),
    }
)
OUR_OWN = frozenset({"schema_version", "hosts", "errands", "probes", "meta", "signing_keys", "cluster_secret"})
"""What belongs to a database or a directory, and not to what is kept in it."""
ROWS = 500
PATIENCE_SECONDS = 3600.0
"""How long one statement may take: some are about all rows of a table."""
STOP_THEM = "stop them first: they would not end what was going on when it was left"
_TABLES = """
select table_name, column_name, data_type, is_identity = 'YES' from information_schema.columns
 where table_schema = current_schema() order by table_name, ordinal_position"""
_ANYTHING = "select exists (select 1 from sessions) or exists (select 1 from api_keys) or exists (select 1 from audit)"
_WORDS = """
insert into knowledge_words (chunk_no, document_no, length, tokens)
select chunk_no, document_no, length, tokens::tsvector
  from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[]) as given (chunk_no, document_no, length, tokens)"""
_PLUGIN = """
insert into plugins (plugin, version, sha256, body, installed_at, installed_by) values ($1, $2, $3, $4, $5, $6)"""
COUNT_TOKENS = """
update knowledge_documents d set token_count = coalesce(w.tokens, 0)
  from knowledge_documents o
  left join (select document_no, sum(length)::bigint as tokens from knowledge_words group by 1) w using (document_no)
 where o.document_no = d.document_no"""
_CHUNKS = (
    "select chunk_no, document_no, kb_no, heading, text from knowledge_chunks where chunk_no > $1 order by 1 limit $2"
)


@dataclass(slots=True)
class Table:
    name: str
    columns: dict[str, str] = field(default_factory=dict[str, str])
    """Names and types, of those that both sides have."""
    identity: str | None = None

    def insert(self) -> str:
        names = ", ".join(f'"{name}"' for name in self.columns)
        arrays = ", ".join(f"${place}::{kind}[]" for place, kind in enumerate(self.columns.values(), 1))
        return f'insert into "{self.name}" ({names}) overriding system value select * from unnest({arrays})'


async def import_directory(directory: Path, address: str, plugins: Sequence[PluginRow] = ()) -> Mapping[str, int]:
    """How many rows of each table were moved, with those that say what is installed there. Nothing is taken away, but
    the schema of the directory is brought up to date. Raises StorageUnavailableError."""
    source = SqliteStore(directory)
    await source.open()  # brings its schema up to date
    await source.close()
    await bring_up_to_date(address)
    async with connected(address, patience=PATIENCE_SECONDS) as connection:
        with closing(open_reader(directory)) as sqlite:
            return await _move(sqlite, connection, plugins)


async def _move(sqlite: SqliteConnection, connection: Connection, plugins: Sequence[PluginRow]) -> Mapping[str, int]:
    async with connection.transaction():
        if await connection.fetchval(_ANYTHING):
            raise StorageUnavailableError("the database holds data already: import into one that is empty")
        await refuse_while_served(connection, STOP_THEM)
        moved = dict[str, int]()
        for table in await _common(sqlite, connection):
            moved[table.name] = await _copy(table, sqlite, connection)
        for one in plugins:
            await connection.execute(
                _PLUGIN, one.plugin, one.version, one.sha256, one.body, one.installed_at, one.installed_by
            )
        await _index_knowledge(connection)
        await refuse_while_served(connection, STOP_THEM)  # nor has one come meanwhile
    return moved | {"plugins": len(plugins)}


async def _common(sqlite: SqliteConnection, connection: Connection) -> Sequence[Table]:
    tables = dict[str, Table]()
    for name, column, kind, identity in await connection.fetch(_TABLES):
        if name in DERIVED | OUR_OWN:
            continue
        table = tables.setdefault(name, Table(name))
        if column in _columns(sqlite, name):
            table.columns[column] = kind
            table.identity = column if identity else table.identity
    return [table for table in tables.values() if table.columns]


def _columns(sqlite: SqliteConnection, table: str) -> set[str]:
    return {str(found[1]) for found in sqlite.execute(f'pragma table_info("{table}")')}


async def _copy(table: Table, sqlite: SqliteConnection, connection: Connection) -> int:
    names = ", ".join(f'"{name}"' for name in table.columns)
    statement, count = table.insert(), 0
    for rows in _parts(sqlite.execute(f'select {names} from "{table.name}"')):
        columns = list(zip(*rows, strict=True))
        await connection.fetch(statement, *map(_readable, columns, table.columns.values()))
        count += len(rows)
    if table.identity is not None:
        await connection.fetch(
            f"select setval(pg_get_serial_sequence('{table.name}', '{table.identity}'), "
            f'greatest(1, (select coalesce(max("{table.identity}"), 0) from "{table.name}")))'
        )
    stored = await connection.fetchval(f'select count(*) from "{table.name}"')
    if stored != count:
        raise StorageUnavailableError(f"{count} rows of {table.name} were moved and {stored} are there")
    return count


def _parts(rows: Iterable[Any]) -> Iterator[Sequence[Any]]:
    part = list[Any]()
    for row in rows:
        part.append(row)
        if len(part) == ROWS:
            yield part
            part = []
    if part:
        yield part


def _readable(column: Sequence[Any], kind: str) -> Sequence[Any]:
    match kind:
        case "text":
            return escaped_column(column)
        case "boolean":
            return [None if value is None else bool(value) for value in column]
        case "double precision":
            return [None if value is None else float(value) for value in column]
        case _:
            return column


async def _index_knowledge(connection: Connection) -> None:
    last = 0
    while rows := await connection.fetch(_CHUNKS, last, ROWS):
        numbers, documents = [row[0] for row in rows], [row[1] for row in rows]
        lengths, vectors = list[int](), list[str]()
        for _, _, kb_no, heading, text in rows:
            tokens = " ".join(tokens_of(f"{unescaped(heading)}\n{unescaped(text)}"))
            length, vector = columns(kb_no, [tokens])
            lengths += length
            vectors += vector
        await connection.fetch(_WORDS, numbers, documents, lengths, vectors)
        last = numbers[-1]
    await connection.fetch(COUNT_TOKENS)
