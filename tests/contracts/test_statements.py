"""Statements that are written once: how each database's form follows from them."""

import pytest

from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.calendar import CalendarEventRow
from paddock.rules.rows.rows import RunRow
from paddock.storage.tables.statements import Change, Query, bind, columns_of, put


def test_a_value_has_one_number_however_often_it_is_used() -> None:
    bound = bind("a = :first and b = :second1 and c = :first", mark="$", typed=True)
    assert bound.sql == "a = $1 and b = $2 and c = $1"
    assert bound.values_in({"second1": 2, "first": 1}) == (1, 2)


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
