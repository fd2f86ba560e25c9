"""Statements that are written once: how each database's form follows from them."""

from collections.abc import Iterator
from importlib import import_module
from inspect import getclosurevars, getmro, signature
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, cast, get_args

import pytest

from paddock.ports import Store
from paddock.ports.knowledge import KnowledgeStore
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.automation import CalendarEventRow
from paddock.rules.rows.rows import Row, RunRow, SessionRow
from paddock.storage import tables
from paddock.storage.postgres import engine as postgres
from paddock.storage.postgres.connection import connect
from paddock.storage.sqlite import engine as sqlite
from paddock.storage.sqlite.commands import migrate
from paddock.storage.sqlite.connection import open_writer
from paddock.storage.tables.conversations import RUNS
from paddock.storage.tables.knowledge import KnowledgeTables, Words
from paddock.storage.tables.statements import Change, Engine, Query, Work, ask, bind, columns_of, in_dialect, put
from postgres_server import a_database


def test_every_row_that_may_be_written_has_a_statement_that_writes_it() -> None:
    fenced = {SessionRow}  # by the append itself
    assert set(get_args(Row)) - {*tables.TABLES, *tables.WRITES} == fenced


def test_a_value_has_one_number_however_often_it_is_used() -> None:
    bound = bind("a = :first and b = :second1 and c = :first", mark="$", typed=True)
    assert bound.sql == "a = $1 and b = $2 and c = $1"
    assert bound.values({"second1": 2, "first": 1}) == (1, 2)


def test_only_a_database_that_reads_types_is_told_them() -> None:
    sql = "(:status::text is null or n = any(:numbers::bigint[]))"
    assert bind(sql, mark="$", typed=True).sql == "($1::text is null or n = any($2::bigint[]))"
    assert bind(sql, mark="?", typed=False).sql == "(?1 is null or n = any(?2))"


def test_a_cast_is_not_a_value() -> None:
    assert bind("count(*)::bigint", mark="$", typed=True).names == []


def test_columns_are_the_fields_of_the_row_and_reserved_words_are_quoted() -> None:
    assert columns_of(RunRow).startswith("run_id, session_id, workspace_id")
    assert '"grant"' in columns_of(RunRow)


def test_a_row_that_exists_keeps_the_columns_that_are_not_written_again() -> None:
    sql = put("calendar_events", CalendarEventRow, key="event_id", again=("body", "ends_at")).sql
    assert sql.endswith("on conflict (event_id) do update set body = excluded.body, ends_at = excluded.ends_at")


def test_truths_are_found_by_the_types_of_the_row() -> None:
    assert Query(CalendarEventRow, "select {columns} from calendar_events").truths == [4]


def test_a_change_that_must_answer_is_refused_with_its_sentence() -> None:
    change = Change("update t set n = n + 1 returning 1", refused="it was changed meanwhile")
    change.check([1])
    with pytest.raises(HostError, match="it was changed meanwhile") as refusal:
        change.check([])
    assert refusal.value.code is ErrorCode.CONFLICT


def test_a_hint_is_read_by_its_own_database_alone() -> None:
    sql = "select 1 from facts /*sqlite indexed by facts_moved*/ where n = :n /*postgres for update*/"
    assert in_dialect(sql, "sqlite", {}) == "select 1 from facts indexed by facts_moved where n = :n "
    assert in_dialect(sql, "postgres", {}) == "select 1 from facts  where n = :n for update"


def test_a_list_is_bound_as_each_database_takes_it() -> None:
    sql = "select 1 from runs where run_id = any(:names::text[])"
    there, here = postgres.bound(sql), sqlite.bound(sql)
    assert there.sql.endswith("run_id = any($1::text[])")
    assert here.sql.endswith("run_id in (select value from json_each(?1))")
    assert postgres.values_of(there, {"names": ("a", "b\0")}) == (["a", "b\x1a0"],)
    assert sqlite.values_of(here, {"names": ["a", "b"]}) == ('["a", "b"]',)


def test_words_that_differ_are_said_in_each_database_s_own() -> None:
    sql = "update t set a = greatest(a, 1), b = no_bytes()"
    assert sqlite.bound(sql).sql == "update t set a = max(a, 1), b = x''"
    assert postgres.bound(sql).sql == "update t set a = greatest(a, 1), b = ''::bytea"


def test_a_step_for_another_database_is_passed_over(tmp_path: Path) -> None:
    def work() -> Work[list[object]]:
        locked = yield ask("/*postgres select pg_advisory_xact_lock(:lock)*/", lock=1)
        [(found,)] = yield ask("select :number + 1", number=1)
        return [*locked, found]

    connection = open_writer(tmp_path)
    assert sqlite.run(connection, work()) == [2]
    connection.close()


def test_types_of_columns_follow_from_the_fields() -> None:
    kinds = dict(zip(RUNS.names, RUNS.kinds, strict=True))
    assert (kinds["run_id"], kinds["code"], kinds["first_seq"]) == ("text", "text", "bigint")
    assert (kinds["ended_at"], kinds['"grant"']) == ("double precision", "bytea")


def is_one_query(method: object) -> bool:
    return getattr(method, "__name__", "") == "look_up"


def every_query() -> Iterator[str]:
    for module in iter_modules(tables.__path__):
        for thing in vars(import_module(f"{tables.__name__}.{module.name}")).values():
            if isinstance(thing, Query):
                yield thing.sql
    for plug in (tables.Records, KnowledgeTables):
        for name in dir(plug):
            if is_one_query(method := getattr(plug, name)):
                yield getclosurevars(method).nonlocals["query"].sql


@pytest.mark.anyio
async def test_every_query_is_understood_by_both_databases(tmp_path: Path) -> None:
    connection = open_writer(tmp_path)
    migrate(connection)
    statements = [sqlite.bound(sql) for sql in every_query()]
    assert len(statements) > 60
    for statement in statements:
        connection.execute(f"explain {statement.sql}", (None,) * len(statement.names))
    connection.close()
    with a_database() as address:
        other = await connect(address)
        for sql in every_query():
            await other.execute(f"prepare once as {postgres.bound(sql).sql}; deallocate once")
        other.terminate()


class Noting:
    """An engine that answers with what it was asked."""

    async def one(self, _: Query[Any], **given: Any) -> Any:
        return given

    all = long = one


RECORDS = type("Noted", (tables.Records,), {"engine": Noting()})()
KNOWLEDGE = KnowledgeTables(cast("Engine", Noting()), cast("Words", None))
LOOKED_UP = [
    (plug, name, method)
    for plug, whole in ((RECORDS, Store), (KNOWLEDGE, KnowledgeStore))
    for port in getmro(whole)
    for name, method in vars(port).items()
    if is_one_query(getattr(type(plug), name, None))
]


@pytest.mark.anyio
@pytest.mark.parametrize(("plug", "name", "method"), LOOKED_UP)
async def test_a_method_that_asks_one_query_takes_what_its_port_says(plug: Any, name: str, method: Any) -> None:
    parameters = [one for one in signature(method).parameters.values() if one.name != "self"]
    named = {one.name: object() for one in parameters if one.kind is one.KEYWORD_ONLY}
    values = {one.name: object() for one in parameters if one.kind is not one.KEYWORD_ONLY}
    assert await getattr(plug, name)(*values.values(), **named) == values | named
    defaults = {one.name: one.default for one in parameters if one.default is not one.empty}
    needed = {one: given for one, given in (values | named).items() if one not in defaults}
    assert await getattr(plug, name)(**needed) == needed | defaults


def test_most_of_what_a_store_looks_up_is_one_query() -> None:
    assert len(LOOKED_UP) > 50
