"""`paddock admin`, beside a host that runs: verify, compare, back up, restore elsewhere, erase, delete."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from walk.hosts import HostProcess, text_of
from warm import Command

SECRET = "zanzibarquux"
ECHO = 'default_agent: echo\nagents:\n  echo: {runner: "plugin:paddock/echo/default"}\n'


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Callable[[str], HostProcess]]:
    made: list[HostProcess] = []

    def start(name: str) -> HostProcess:
        made.append(HostProcess(tmp_path / name, agents=ECHO))
        return made[-1].start()

    yield start
    for host in made:
        if host.process is not None and host.process.poll() is None:
            host.kill()


def test_an_operator_backs_up_a_running_host_and_starts_another_from_it(
    hosts: Callable[[str], HostProcess], paddock: Command, tmp_path: Path
) -> None:
    first, thread = hosts("first"), str(uuid.uuid4())
    task = first.post("hello there", thread=thread).json()["taskId"]
    assert first.finished(task)["status"] == "completed"

    verified = paddock("admin", "verify", "--data", first.data)
    assert (verified.returncode, verified.stdout) == (
        0,
        "Looked at 1 conversation and 0 stored files: everything is as it was written.\n",
    )
    assert paddock("admin", "rebuild", "--check", "--data", first.data).returncode == 0
    refused = paddock("admin", "rebuild", "--data", first.data)
    assert refused.returncode == 2
    assert "is in use by process" in refused.stderr
    assert "Stop that host first, or only compare, with --check." in refused.stderr

    backup = tmp_path / "today.tar"
    told = paddock("admin", "backup", backup, "--data", first.data).stdout
    assert told.startswith(
        f"Backed up 1 file in {backup}.\nNot in it: the cluster's secret ({first.data}/cluster-secret)"
    )
    into_old = paddock("admin", "restore", backup, "--data", first.data)
    assert (into_old.returncode, "is not empty" in into_old.stderr) == (1, True)
    assert paddock("admin", "restore", backup).returncode == 2
    assert paddock("admin", "restore", backup, "--data", tmp_path / "second").returncode == 0
    assert first.stop() == 0

    second = hosts("second")
    assert "hello there" in text_of(second.events(task))
    assert second.stop() == 0
    assert paddock("admin", "rebuild", "--data", second.data).stdout == "Runs and transcripts are what the log says.\n"


def test_an_operator_erases_a_message_and_deletes_its_conversation(
    hosts: Callable[[str], HostProcess], paddock: Command
) -> None:
    host, thread = hosts("data"), str(uuid.uuid4())
    task = host.post(f"call me {SECRET}", thread=thread).json()["taskId"]
    host.finished(task)
    for item in (f"{task}.0", f"{task}.1"):
        done = paddock("admin", "erase", thread, item, "--data", host.data)
        assert (done.returncode, done.stdout) == (0, f"Message {item} of conversation {thread} is erased.\n")
    assert [
        name for name in ("paddock.db", "paddock.db-wal") if SECRET.encode() in (host.data / name).read_bytes()
    ] == []
    unknown = paddock("admin", "erase", thread, f"{task}.7", "--data", host.data)
    assert (unknown.returncode, "there is no such message" in unknown.stderr) == (1, True)

    assert paddock("admin", "delete-thread", thread, "--data", host.data).returncode == 0
    again = paddock("admin", "delete-thread", thread, "--data", host.data)
    assert (again.returncode, "there is no such thread" in again.stderr) == (1, True)
    assert host.post("hello", thread=thread).status_code == 404


def test_a_directory_without_data_is_named(paddock: Command, tmp_path: Path) -> None:
    for words in (("verify",), ("rebuild",), ("backup", "x")):
        answer = paddock("admin", *words, "--data", tmp_path / "nothing")
        assert answer.returncode in (1, 2)
        assert "holds no data of a host" in answer.stderr
        assert not (tmp_path / "nothing").exists()
