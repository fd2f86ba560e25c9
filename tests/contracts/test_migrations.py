"""A schema moves forward one whole step at a time, and a database that is not ours is left alone."""

from pathlib import Path

import apsw
import pytest

from contracts.builders import Owner, said
from paddock.rules.errors import StorageUnavailableError
from paddock.rules.rows.migrations import Migration, Refusal, pending
from paddock.storage.sqlite import SqliteStore
from paddock.storage.sqlite.commands import migrate
from paddock.storage.sqlite.connection import FILE_NAME, open_writer
from paddock.storage.tables.schema import shipped_migrations

FIRST_RELEASE = 22
"""Up to this step hosts were never together with others of another release."""
STOPPED_FOR = {"salted_digests"}
"""Steps for which all hosts are stopped; they are refused while one serves the database."""
ONE, TWO = Migration(1, "one", "create table one (a)"), Migration(2, "two", "create table two (b)")


def test_only_the_missing_steps_are_pending_in_order() -> None:
    assert pending([TWO, ONE], {}) == [ONE, TWO]
    assert pending([ONE, TWO], {1: ONE.checksum}) == [TWO]
    assert pending([ONE, TWO], {1: ONE.checksum, 2: TWO.checksum}) == []


def test_a_database_from_the_future_is_refused() -> None:
    refusal = pending([ONE], {1: ONE.checksum, 2: TWO.checksum})
    assert isinstance(refusal, Refusal)
    assert "schema 2" in refusal.sentence
    assert "newer Paddock" in refusal.sentence


def test_a_database_one_release_ahead_is_used_when_its_steps_say_so() -> None:
    applied = {1: ONE.checksum, 2: TWO.checksum}
    assert pending([ONE], applied, {2: 1}) == []
    assert isinstance(pending([ONE], applied, {2: 2}), Refusal)
    assert isinstance(pending([ONE], {**applied, 3: "x"}, {2: 1, 3: 2}), Refusal)


def test_a_step_says_in_its_first_line_which_hosts_may_stay() -> None:
    assert Migration(7, "more", "-- Hosts that know step 5 may stay.\ncreate table more (a)").goes_with == 5
    assert TWO.goes_with == 2


def test_every_new_step_of_the_shared_store_lets_hosts_of_the_release_before_stay() -> None:
    new = [step for step in shipped_migrations("postgres") if step.number > FIRST_RELEASE]
    assert {step.name for step in new if step.goes_with >= step.number} == STOPPED_FOR


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_no_two_steps_have_one_number(dialect: str) -> None:
    numbers = [step.number for step in shipped_migrations(dialect)]
    assert numbers == sorted(set(numbers))


def test_a_step_that_is_not_the_one_we_know_is_refused() -> None:
    assert isinstance(pending([ONE, TWO], {1: "other"}), Refusal)


def test_a_step_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    connection = open_writer(tmp_path)
    broken = Migration(2, "broken", "create table two (b); create table one (a)")
    with pytest.raises(apsw.SQLError):
        migrate(connection, [ONE, broken])
    assert [name for (name,) in connection.execute("select name from schema_version")] == ["one"]
    migrate(connection, [ONE, TWO])
    assert connection.execute("select max(number) from schema_version").fetchone() == (2,)


def test_the_shipped_steps_have_numbers_of_their_own_in_order() -> None:
    numbers = [step.number for step in shipped_migrations("sqlite")]
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 1


def test_of_older_keys_those_that_were_made_over_the_api_run_no_host_by_a_name(tmp_path: Path) -> None:
    connection = open_writer(tmp_path)
    step = next(one for one in shipped_migrations("sqlite") if one.name == "keys_of_operators")
    migrate(connection, [one for one in shipped_migrations("sqlite") if one.number < step.number])
    for user in ("ann", "ops"):
        connection.execute(
            "insert into api_keys values (?, ?, 'acme', ?, 'admin', 0, null)", (user, user.encode(), user)
        )
    made = ("acme", "user:ann", "api_keys.create", "acme/ops", "acme", "allowed", "role admin")
    columns = "time, workspace_id, actor, action, resource, scope, result, reason"
    connection.execute(f"insert into audit ({columns}) values (0, ?, ?, ?, ?, ?, ?, ?)", made)
    migrate(connection, shipped_migrations("sqlite"))
    found = connection.execute("select user_id, by_operator from api_keys order by 1")
    assert list(found) == [("ann", 1), ("ops", 0)]


@pytest.mark.anyio
async def test_a_store_from_the_future_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    await store.open()
    await (await Owner.of(store)).write(said("hi"))
    await store.close()
    with apsw.Connection(str(tmp_path / FILE_NAME)) as future:
        future.execute("insert into schema_version values (99, 'later', 'x', 'then')")
    with pytest.raises(StorageUnavailableError, match="schema 99"):
        await store.open()
    with apsw.Connection(str(tmp_path / FILE_NAME)) as future:
        future.execute("delete from schema_version where number = 99")
    await store.open()
    await store.close()
