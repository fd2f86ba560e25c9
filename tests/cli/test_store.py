"""Choosing the store from outside: what a wrong address says, what keys and doctor do with a right one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.conftest import Command
from nats_server import NatsServer
from paddock.rules.agents.addresses import place_of, without_secrets
from paddock.settings import Settings, SettingsError, load
from postgres_server import Server, a_database, new_server
from s3_server import an_imitation_of_s3

SECRET = "s3cret"
NOBODY_THERE = f"postgresql://ann:{SECRET}@127.0.0.1:1/paddock"


@pytest.fixture
def address() -> Iterator[str]:
    with a_database() as address:
        yield address


@pytest.mark.parametrize("how", ["flag", "environment", "file"])
def test_a_database_that_is_not_there_is_one_sentence_without_the_password(
    paddock: Command, tmp_path: Path, how: str
) -> None:
    (tmp_path / "paddock.toml").write_text(f'store = "{NOBODY_THERE}"\n')
    arguments = {"flag": ["--store", NOBODY_THERE], "file": ["--config", "paddock.toml"]}.get(how, [])
    env = {"PADDOCK_STORE": NOBODY_THERE} if how == "environment" else {}
    seen = paddock("serve", "--data", "d", "--port", "0", *arguments, env=env)
    assert seen.returncode == 2, seen.stderr
    assert "store = postgresql://***@127.0.0.1:1/paddock cannot be used: the database at 127.0.0.1:1" in seen.stderr
    assert SECRET not in seen.stdout + seen.stderr
    assert "Traceback" not in seen.stderr


@pytest.mark.parametrize("wrong", [f"mysql://ann:{SECRET}@here/db", "postgresql://", "sqlite"])
def test_an_address_that_names_no_store_is_refused_with_what_is_allowed(wrong: str) -> None:
    with pytest.raises(SettingsError, match=r"it must be embedded .* or postgresql://") as refused:
        load({"store": wrong}, environ={})
    assert SECRET not in str(refused.value)


def test_settings_never_show_the_password() -> None:
    assert SECRET not in repr(Settings(store=NOBODY_THERE))
    assert SECRET not in Settings(store=NOBODY_THERE).shown_store


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://ann:{SECRET}@db.example:5432/paddock",
        f"postgresql://ann:{SECRET}/@{SECRET}@db.example/paddock",
        f"postgresql://db.example/paddock?user=ann&password={SECRET}",
        f"postgresql://ann@/paddock?host=/run/pg&password={SECRET}&port=5433",
    ],
)
def test_a_password_is_found_wherever_an_address_carries_it(address: str) -> None:
    assert SECRET not in without_secrets(f"cannot reach {address} now")
    assert SECRET not in place_of(address)
    assert "paddock" in place_of(address)


def test_a_key_is_made_in_the_store_that_is_set_and_opens_the_host_to_others(paddock: Command, address: str) -> None:
    env = {"PADDOCK_STORE": address}
    refused = paddock("serve", "--data", "d", "--port", "0", "--host", "0.0.0.0", env=env)
    assert (refused.returncode, "no API key exists yet" in refused.stderr) == (2, True)
    made = paddock("keys", "create", "--user", "ann", "--data", "d", env=env)
    assert made.returncode == 0, made.stderr
    assert not (Path("d") / "paddock.db").exists()
    wrong_port = paddock("serve", "--data", "d", "--port", "0", "--host", "203.0.113.1", env=env)
    assert "no API key exists yet" not in wrong_port.stderr


def test_doctor_says_which_store_and_whether_it_is_there(paddock: Command, tmp_path: Path, address: str) -> None:
    embedded = paddock("doctor", "--data", tmp_path / "d")
    assert "store          embedded: SQLite" in embedded.stdout
    there = paddock("doctor", "--data", tmp_path / "d", env={"PADDOCK_STORE": address})
    assert "store          PostgreSQL 16" in there.stdout
    assert "schema up to date; it may lose what it confirmed" in there.stdout  # the tests' server runs without fsync
    away = paddock("doctor", "--data", tmp_path / "d", env={"PADDOCK_STORE": NOBODY_THERE})
    assert away.returncode == 1
    assert "FAIL  store          the database at 127.0.0.1:1/paddock cannot be reached" in away.stdout
    assert SECRET not in away.stdout + away.stderr


WRONG = {
    "another password": ("postgresql://ann:wrong@/postgres", "Look at the user and the password"),
    "no such database": ("postgresql://ann:right@/other", "Create it, with encoding 'UTF8'"),
}


@pytest.fixture(scope="module")
def guarded() -> Iterator[Server]:
    """A server that asks ann for a password."""
    server = new_server()
    try:
        server.sql("create role ann login password 'right'")
        (server.data / "pg_hba.conf").write_text("local all ann scram-sha-256\nlocal all all trust\n")
        server.sql("select pg_reload_conf()")
        yield server
    finally:
        server.let_go()


@pytest.mark.parametrize("what", WRONG)
def test_a_database_that_cannot_be_used_comes_with_what_to_do_about_it(
    paddock: Command, guarded: Server, what: str
) -> None:
    address, advice = WRONG[what]
    env = {"PADDOCK_STORE": f"{address}?host={guarded.home}"}
    for command in (["serve", "--data", "d", "--port", "0"], ["doctor"], ["admin", "migrate", "--check"]):
        seen = paddock(*command, env=env)
        assert seen.returncode, seen.stdout
        assert advice in seen.stdout + seen.stderr
        assert "Start the database" not in seen.stdout + seen.stderr


def test_a_database_that_nobody_used_yet_holds_nothing_to_verify(paddock: Command, guarded: Server) -> None:
    seen = paddock("admin", "verify", env={"PADDOCK_STORE": guarded.url("postgres")})
    assert (seen.returncode, "No host has used it yet" in seen.stderr) == (2, True), seen.stderr


def test_a_bus_without_a_shared_store_is_refused_with_what_to_do(paddock: Command) -> None:
    seen = paddock("serve", "--data", "d", "--port", "0", env={"PADDOCK_BUS": f"nats://ann:{SECRET}@127.0.0.1:4222"})
    assert seen.returncode == 2
    assert "Set store to postgresql://... as well, or leave bus out." in seen.stderr
    assert SECRET not in seen.stderr


AWAY = {"PADDOCK_BUS": "nats://ann:s3cret@127.0.0.1:1", "PADDOCK_ARTIFACTS": "s3://b/?endpoint=http://127.0.0.1:1"}
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


def test_doctor_says_whether_the_bus_and_the_bucket_are_there(paddock: Command, tmp_path: Path, address: str) -> None:
    embedded = paddock("doctor", "--data", tmp_path / "d")
    assert "ok    bus            embedded" in embedded.stdout
    assert f"ok    artifacts      embedded: files in {tmp_path / 'd' / 'blobs'}" in embedded.stdout
    away = paddock("doctor", "--data", tmp_path / "d", env={"PADDOCK_STORE": address, **AWAY, **KEYS})
    assert "FAIL  bus            nats://***@127.0.0.1:1 cannot be used: " in away.stdout
    assert "debug" not in away.stdout + away.stderr
    assert "FAIL  artifacts      s3://b/?endpoint=http://127.0.0.1:1: files cannot be stored or read" in away.stdout
    nats = NatsServer().start()
    try:
        with an_imitation_of_s3() as bucket:
            there = {"PADDOCK_STORE": address, "PADDOCK_BUS": nats.url, "PADDOCK_ARTIFACTS": bucket, **KEYS}
            seen = paddock("doctor", "--data", tmp_path / "d", env=there)
    finally:
        nats.kill()
    assert f"ok    bus            NATS at {nats.url}" in seen.stdout
    assert f"ok    artifacts      {bucket} can be read" in seen.stdout
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize(
    ("bucket", "keys", "says"),
    [
        ("other", KEYS, "there is no such bucket; make it, or name another."),
        ("paddock", {"AWS_SECRET_ACCESS_KEY": "test"}, "there are no keys to it; look at AWS_ACCESS_KEY_ID"),
    ],
    ids=["no bucket", "half of the keys"],
)
def test_what_is_wrong_with_a_bucket_is_one_sentence(
    paddock: Command, bucket: str, keys: dict[str, str], says: str
) -> None:
    with an_imitation_of_s3() as there:
        env = {"PADDOCK_ARTIFACTS": there.replace("//paddock", f"//{bucket}"), **keys}
        started, looked = paddock("serve", "--data", "d", "--port", "0", env=env), paddock("doctor", env=env)
    assert started.returncode == 2, started.stderr
    assert started.stderr.startswith(f"paddock: artifacts = s3://{bucket}/")
    assert (says in started.stderr, started.stderr.count("\n")) == (True, 1)
    assert f"FAIL  artifacts      s3://{bucket}/" in looked.stdout
    assert says.rstrip(".") in looked.stdout


def test_a_bucket_that_is_not_there_is_named_and_not_the_store(paddock: Command, address: str) -> None:
    env = {"PADDOCK_STORE": address, "PADDOCK_ARTIFACTS": AWAY["PADDOCK_ARTIFACTS"], **KEYS}
    for command in (["serve", "--data", "d", "--port", "0"], ["admin", "verify"]):
        seen = paddock(*command, env=env)
        assert seen.returncode == 2
        assert "artifacts = s3://b/?endpoint=http://127.0.0.1:1" in seen.stderr
        assert "its server cannot be reached." in seen.stderr
        assert "store =" not in seen.stderr
