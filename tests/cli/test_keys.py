"""`paddock keys create`: with a host and without, and that only a hash is kept."""

from pathlib import Path

import pytest

import loopback
from cli.terminals import CALLED
from walk.hosts import HostProcess
from warm import Command


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_a_key_made_beside_or_before_a_host_opens_it_and_closes_it_to_everybody_else(
    paddock: Command, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    before = paddock("keys", "create", "--data", data, "--workspace", "w1", "--user", "ann", "--role", "admin")
    assert before.returncode == 0
    assert "shown only now" in before.stderr
    host = HostProcess(data).start()
    try:
        beside = paddock("keys", "create", "--data", data, "--workspace", "w2", "--user", "bob")
        keys = [before.stdout.strip(), beside.stdout.strip()]
        assert all(key.startswith("pdk_") and len(key) == 47 for key in keys)
        assert loopback.get(f"{host.url}/api/v1/agents").status_code == 401
        assert [loopback.get(f"{host.url}/api/v1/agents", headers=bearer(key)).status_code for key in keys] == [
            200,
            200,
        ]
        roles = [
            loopback.post(f"{host.url}/api/v1/api-keys", headers=bearer(key), json={"user": "x"}).status_code
            for key in keys
        ]
        assert roles == [201, 403]
        assert (
            paddock("chat", "--url", host.url, "--agent", "echo", "hi", env={"PADDOCK_API_KEY": keys[1]}).stdout
            == "hi\n"
        )
    finally:
        host.stop()
    stored = b"".join(path.read_bytes() for path in data.rglob("*") if path.is_file())
    assert not [key for key in keys if key.encode() in stored]


def test_a_key_opens_the_default_workspace_unless_told_otherwise(paddock: Command, tmp_path: Path) -> None:
    made = paddock("keys", "create", "--data", tmp_path / "d", "--user", "ann")
    assert made.returncode == 0
    assert made.stderr.startswith("A key for user ann in workspace default with role user.")


@pytest.mark.parametrize("beside_a_host", [False, True])
def test_a_set_up_that_starts_again_makes_one_key_once(paddock: Command, tmp_path: Path, beside_a_host: bool) -> None:
    data = tmp_path / "d"
    host = HostProcess(data).start() if beside_a_host else None
    try:
        made, again = (
            paddock("keys", "create", "--data", data, "--user", "admin", "--role", "admin", "--if-none")
            for _ in range(2)
        )
        assert (made.returncode, again.returncode) == (0, 0)
        assert made.stdout.startswith("pdk_")
        assert (again.stdout, again.stderr) == ("", "There is a key already; none was made.\n")
    finally:
        if host is not None:
            host.stop()


FIRST = "This is the first key: from now on everybody needs one."
OURS = "What was said without a key belongs to user dev of workspace default; for a key to it: "


@pytest.mark.parametrize("beside_a_host", [False, True])
def test_the_first_key_says_what_it_changes_and_the_second_has_nothing_to_say(
    paddock: Command, tmp_path: Path, beside_a_host: bool
) -> None:
    data = tmp_path / "data"
    host = HostProcess(data).start() if beside_a_host else None
    try:
        first = paddock("keys", "create", "--data", data, "--user", "ann", "--workspace", "w1")
        second = paddock("keys", "create", "--data", data, "--user", "dev")
    finally:
        if host is not None:
            host.stop()
    assert FIRST in first.stderr
    assert f"{OURS}{CALLED} keys create --user dev --data {data}\n" in first.stderr
    assert first.stdout.count("\n") == 1, "standard output is the key alone"
    assert (FIRST in second.stderr, OURS in second.stderr) == (False, False)


def test_a_first_key_for_dev_need_not_say_how_to_get_one(paddock: Command, tmp_path: Path) -> None:
    made = paddock("keys", "create", "--data", tmp_path / "d", "--user", "dev")
    assert (FIRST in made.stderr, OURS in made.stderr) == (True, False)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--workspace", "", "--user", "u"], "workspace = '' (from --workspace) is not allowed"),
        (["--workspace", "w", "--user", "a\nb"], "user = 'a\\nb' (from --user) is not allowed"),
        (["--workspace", "w", "--user", "u", "--role", "king"], "it must be user or admin"),
    ],
)
def test_a_wrong_name_is_one_sentence(paddock: Command, arguments: list[str], sentence: str) -> None:
    refused = paddock("keys", "create", *arguments)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert sentence in refused.stderr


def test_a_key_is_listed_and_revoked_and_lets_nobody_in_after_that(paddock: Command, tmp_path: Path) -> None:
    data = tmp_path / "data"
    host = HostProcess(data).start()
    try:
        key = paddock("keys", "create", "--data", data, "--user", "ann").stdout.strip()
        [line] = paddock("keys", "list", "--data", data).stdout.splitlines()
        assert "default/ann  user" in line
        assert line.endswith("in force")
        assert loopback.get(f"{host.url}/api/v1/users/me", headers=bearer(key)).status_code == 200
        assert paddock("keys", "revoke", line.split()[0], "--data", data).returncode == 0
        assert loopback.get(f"{host.url}/api/v1/users/me", headers=bearer(key)).status_code == 401
        assert "revoked" in paddock("keys", "list", "--data", data).stdout
        unknown = paddock("keys", "revoke", "nobody", "--data", data)
        assert (unknown.returncode, "there is no such key" in unknown.stderr) == (1, True)
    finally:
        host.stop()


@pytest.mark.spec("http/take-over")
def test_what_was_said_without_a_key_is_handed_to_a_user(paddock: Command, tmp_path: Path) -> None:
    data = tmp_path / "data"
    host = HostProcess(data).start()
    try:
        for text in ("one", "two"):
            paddock("chat", "--data", data, "--agent", "echo", text)
        key = paddock("keys", "create", "--data", data, "--user", "ann")
        assert f"keys take-over --user ann --data {data}" in key.stderr
        taken = paddock("keys", "take-over", "--data", data, "--user", "ann")
        assert (taken.returncode, taken.stdout, taken.stderr) == (0, "2 conversations of dev are ann's now.\n", "")
        listed = loopback.get(f"{host.url}/api/v1/agent/sessions", headers=bearer(key.stdout.strip())).json()
        assert len(listed["sessions"]) == 2
        wrong = paddock("keys", "take-over", "--data", data, "--user", "dev")
        assert (wrong.returncode, wrong.stdout) == (1, "")
        assert "user must not be dev: it is the owner already" in wrong.stderr
        barred = paddock(
            "keys", "take-over", "--url", host.url, "--user", "eve", env={"PADDOCK_API_KEY": key.stdout.strip()}
        )
        assert (barred.returncode, barred.stdout) == (1, "")
    finally:
        host.stop()
