"""`paddock approvals` and `paddock explain` beside a real host."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from walk.hosts import HostProcess
from warm import Command


@pytest.fixture
def host(tmp_path: Path) -> Iterator[HostProcess]:
    host = HostProcess(tmp_path / "data").start()
    yield host
    host.stop()


def test_a_run_is_explained_in_words_and_as_json(paddock: Command, host: HostProcess) -> None:
    said = paddock("chat", "--data", host.data, "--agent", "echo", "--json", "hi")
    run = next(event["runId"] for line in said.stdout.splitlines() if "runId" in (event := json.loads(line)))
    told = paddock("explain", "--data", host.data, run, "history.page")
    assert told.returncode == 0
    assert told.stdout.splitlines()[0] == "history.page: not granted, refused now"
    assert "The runner's manifest does not ask for it." in told.stdout
    story = json.loads(paddock("explain", "--data", host.data, "--json", run, "history.page").stdout)
    assert (story["granted"], story["layer"]) == (False, "manifest")
    slip = paddock("explain", "--data", host.data, run, "history.pag")
    assert (slip.returncode, slip.stdout) == (1, "")
    assert "did you mean history.page?" in slip.stderr
    assert "there is no such run" in paddock("explain", "--data", host.data, "nobody", "history.page").stderr


@pytest.mark.spec("http/explain")
def test_an_administrator_has_the_run_of_somebody_else_explained_and_it_is_on_record(
    paddock: Command, host: HostProcess
) -> None:
    def key_for(user: str, *more: str) -> dict[str, str]:
        made = paddock("keys", "create", "--data", host.data, "--user", user, *more)
        return {"PADDOCK_API_KEY": made.stdout.strip()}

    ann, eve = key_for("ann"), key_for("eve", "--role", "admin")
    bob, stranger = key_for("bob"), key_for("sam", "--role", "admin", "--workspace", "other")

    def run_of(who: dict[str, str]) -> str:
        paddock("chat", "--url", host.url, "--agent", "echo", "hi", env=who)
        with host.client(headers={"Authorization": f"Bearer {who['PADDOCK_API_KEY']}"}) as client:
            return client.get("/api/v1/agent/runs").json()["runs"][0]["taskId"]

    run, other = run_of(ann), run_of(stranger)

    def explained(env: dict[str, str]) -> tuple[int, bool]:
        told = paddock("explain", "--url", host.url, run, "history.page", env=env)
        return told.returncode, "there is no such run" in told.stderr

    assert [explained(who) for who in (ann, eve, bob, stranger)] == [(0, False), (0, False), (1, True), (1, True)]
    # the local token is of whoever runs the host, in the workspace `default`: no way into another one
    assert paddock("explain", "--data", host.data, run, "history.page").returncode == 0
    assert "there is no such run" in paddock("explain", "--data", host.data, other, "history.page").stderr
    headers = {"Authorization": f"Bearer {eve['PADDOCK_API_KEY']}"}
    with host.client(headers=headers) as client:
        looked = client.get("/api/v1/audit", params={"action": "run.look"}).json()["decisions"]
    assert {(row["actor"], row["resource"]) for row in looked} == {("user:eve", run), ("user:dev", run)}


def test_nothing_waits_and_what_is_not_there_cannot_be_decided(paddock: Command, host: HostProcess) -> None:
    listed = paddock("approvals", "list", "--data", host.data)
    assert (listed.returncode, listed.stdout) == (0, "Nothing waits for approval.\n")
    assert json.loads(paddock("approvals", "list", "--data", host.data, "--json").stdout) == []
    for decision in ("grant", "deny"):
        refused = paddock("approvals", decision, "--data", host.data, "ap_none")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "there is no such approval" in refused.stderr
