"""From one machine to many: an embedded installation moves into PostgreSQL and a bucket, and nothing of it is lost."""

import base64
import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.conftest import Command, clean_env, paddock  # noqa: F401 - fixtures
from contracts.builders import Owner, a_run, a_value, an_item, said
from contracts.test_postgres import read_by
from paddock.rules.errors import StorageUnavailableError
from paddock.rules.rows.rows import AuditRow
from paddock.storage.importing import COUNT_TOKENS, import_directory
from paddock.storage.postgres import PostgresStore
from paddock.storage.postgres.connection import connect
from paddock.storage.postgres.migrate import bring_up_to_date
from paddock.storage.sqlite import SqliteStore
from postgres_server import database_of, new_server, shared_server
from s3_server import an_imitation_of_s3
from walk.hosts import HostProcess, text_of, wait_until

S3 = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
A_PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
ECHO = 'default_agent: echo\nagents:\n  echo: {runner: "plugin:paddock/echo/default"}\n'


@pytest.fixture
def bucket() -> Iterator[str]:
    with an_imitation_of_s3() as address:
        yield address


def test_an_embedded_installation_moves_into_the_cluster_without_loss(
    tmp_path: Path,
    database: str,
    bucket: str,
    paddock: Command,  # noqa: F811
) -> None:
    before, thread = HostProcess(tmp_path / "alone", agents=ECHO).start(), str(uuid.uuid4())
    task = before.post("words that last", thread=thread).json()["taskId"]
    told = before.events(task)
    env = {"PADDOCK_STORE": database, "PADDOCK_ARTIFACTS": bucket, **S3}
    refused = paddock("admin", "import", before.data, env=env)
    assert (refused.returncode, "Stop that host first" in refused.stderr) == (2, True)
    before.stop()

    done = paddock("admin", "import", before.data, env=env)
    assert done.returncode == 0, done.stderr
    assert "Everything of" in done.stdout
    again = paddock("admin", "import", before.data, env=env)
    assert (again.returncode, "holds data already" in again.stderr) == (1, True)

    after = HostProcess(tmp_path / "many", agents=ECHO, env=env).start()
    try:
        assert [(one.id, one.data) for one in after.events(task)] == [(one.id, one.data) for one in told]
        assert "and on" in text_of(after.events(after.post("and on", thread=thread).json()["taskId"]))
    finally:
        assert after.stop() == 0


def test_plugins_installed_in_it_are_moved_too_unless_they_were_changed(
    tmp_path: Path,
    database: str,
    paddock: Command,  # noqa: F811
) -> None:
    shared_server().empty(database)
    alone = HostProcess(tmp_path / "alone", agents=ECHO).start()
    alone.stop()
    for name in ("hello", "meddled"):
        assert paddock("runner", "new", name, "--author", "me", cwd=tmp_path).returncode == 0
        put = paddock("runner", "install", tmp_path / name, "--yes", "--data", alone.data)
        assert put.returncode == 0, put.stderr
    with (alone.data / "plugins" / "me" / "meddled" / "runner.py").open("a") as file:
        file.write("# not what was agreed to\n")

    env = {"PADDOCK_STORE": database, "PADDOCK_ARTIFACTS": "embedded"}
    done = paddock("admin", "import", alone.data, "--data", tmp_path / "many", env=env)
    assert done.returncode == 0, done.stderr
    assert "1  plugins" in done.stdout
    assert "me/meddled was changed after it was installed" in done.stdout

    agents = 'default_agent: hello\nagents:\n  hello: {runner: "plugin:me/hello/default"}\n'
    after = HostProcess(tmp_path / "many", agents=agents, env=env).start()
    try:
        wait_until(lambda: "me/hello" in after.client().get("/api/v1/runners").text, 30, "it being put in place")
        assert "Hello!" in text_of(after.events(after.post("hi").json()["taskId"]))
    finally:
        assert after.stop() == 0


@pytest.mark.long
def test_a_cluster_is_backed_up_while_it_works_and_goes_on_elsewhere(
    tmp_path: Path,
    database: str,
    bucket: str,
    paddock: Command,  # noqa: F811
) -> None:
    shared_server().empty(database)
    env = {"PADDOCK_STORE": database, "PADDOCK_ARTIFACTS": bucket, **S3}
    here, thread = HostProcess(tmp_path / "here", agents=ECHO, env=env).start(), str(uuid.uuid4())
    try:
        with here.client() as client:
            sent = client.post("/api/v1/agent/attachments", files={"file": ("a.png", A_PIXEL, "image/png")})
            assert sent.status_code == 201, sent.text
        task = here.post("words that last", thread=thread).json()["taskId"]
        told = here.events(task)
        made = paddock("admin", "backup", tmp_path / "all.tar", env=env)
        assert made.returncode == 0, made.stderr
    finally:
        here.stop()
    with an_imitation_of_s3() as other_bucket:
        elsewhere = shared_server().new_database()
        env = {"PADDOCK_STORE": elsewhere, "PADDOCK_ARTIFACTS": other_bucket, **S3}
        restored = paddock("admin", "restore", tmp_path / "all.tar", env=env)
        assert restored.returncode == 0, restored.stderr
        assert " and 0 stored files" not in restored.stdout
        again = paddock("admin", "restore", tmp_path / "all.tar", env=env)
        assert (again.returncode, "holds data already" in again.stderr) == (1, True)
        assert "everything is as it was written" in paddock("admin", "verify", env=env).stdout
        there = HostProcess(tmp_path / "there", agents=ECHO, env=env).start()
        try:
            assert [(one.id, one.data) for one in there.events(task)] == [(one.id, one.data) for one in told]
            assert "and on" in text_of(there.events(there.post("and on", thread=thread).json()["taskId"]))
        finally:
            assert there.stop() == 0
            shared_server().drop_database(elsewhere)


@pytest.mark.anyio
async def test_every_row_is_moved_as_it_was(tmp_path: Path, database: str) -> None:
    shared_server().empty(database)
    source = SqliteStore(tmp_path / "data")
    await source.open()
    owner = await Owner.of(source, "strange \x00 session")
    await owner.write(said("nul \x00 and sub \x1a"), rows=[an_item(1, "strange \x00 session", "a\x00b")])
    await source.write([a_value("k", b"\x00\xff"), AuditRow(1.5, "w", "a", "b", "c", "d", "e", "f\x00")])
    await source.close()
    moved = await import_directory(tmp_path / "data", database)
    assert (moved["sessions"], moved["facts"], moved["state"]) == (1, 1, 1)
    target = PostgresStore(database)
    await target.open()
    assert await target.check("strange \x00 session") is None
    assert [fact.read_payload() for fact in await target.read("strange \x00 session")] == [
        {"text": "nul \x00 and sub \x1a"}
    ]
    assert (await target.transcript("strange \x00 session"))[0].content == "a\x00b"
    assert await target.state("scope", "k") == b"\x00\xff"
    new = await Owner.of(target, "another")
    await new.write(said("numbers go on"))
    await target.close()


@pytest.mark.anyio
async def test_nothing_is_moved_into_a_database_that_a_host_serves(tmp_path: Path, database: str) -> None:
    shared_server().empty(database)
    source = SqliteStore(tmp_path / "data")
    await source.open()
    await (await Owner.of(source)).write(said("going on"), rows=[a_run()])
    await source.close()
    host = PostgresStore(database, host_id="here", url="http://here")
    await host.open()
    try:
        with pytest.raises(StorageUnavailableError, match="serve this database"):  # who would end what was going on?
            await import_directory(tmp_path / "data", database)
        assert await host.unfinished_runs() == []
    finally:
        assert host.hosts is not None
        await host.hosts.leave("host_shutdown")
        await host.close()
    assert (await import_directory(tmp_path / "data", database))["runs"] == 1


@pytest.mark.anyio
async def test_the_words_of_many_documents_are_counted_in_one_go(database: str) -> None:
    shared_server().empty(database)
    await bring_up_to_date(database)
    connection = await connect(database)
    documents, passages = 40, 25
    await connection.execute(f"""
insert into knowledge_documents (kb_no, document_id, name, media_type, content_hash, size_bytes, created_at, metadata)
select 1, n, n, '', n, 1, 1, '' from generate_series(0, {documents}) as n""")
    await connection.execute(f"""
insert into knowledge_chunks (kb_no, document_no, position, text, start, "end", heading, vector)
select 1, document_no, n, '', 0, 1, '', '' from knowledge_documents, generate_series(1, {passages}) as n
 where document_id <> '0'""")
    await connection.execute("insert into knowledge_words select chunk_no, document_no, 3, '' from knowledge_chunks")
    [[plan]] = await connection.fetch(f"explain (analyze, timing off, format json) {COUNT_TOKENS}")
    counted = await connection.fetch("select token_count, count(*) from knowledge_documents group by 1 order by 1")
    connection.terminate()
    assert [tuple(row) for row in counted] == [(0, 1), (3 * passages, documents)]
    assert read_by(json.loads(plan)[0]["Plan"]) <= documents * passages


def test_migrate_says_what_is_to_come_and_does_it(paddock: Command) -> None:  # noqa: F811
    server = new_server()
    try:
        server.sql("create database fresh")
        env = {"PADDOCK_STORE": server.url("fresh")}
        assert paddock("admin", "migrate", "--check", env=env).returncode == 1
        assert paddock("admin", "migrate", env=env).returncode == 0
        checked = paddock("admin", "migrate", "--check", env=env)
        assert (checked.returncode, "schema up to date" in checked.stdout) == (0, True)
        assert database_of(env["PADDOCK_STORE"]) == "fresh"
        server.stop()
        away = paddock("admin", "migrate", "--check", env=env)
        assert (away.returncode, "cannot be reached" in away.stderr) == (2, True)  # which is not: steps are to come
    finally:
        server.let_go()
    assert paddock("admin", "migrate").returncode == 2
