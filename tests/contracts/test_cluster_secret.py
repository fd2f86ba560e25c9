"""The secret that all hosts share: where it comes from, how it is changed, and what is said when it is another one."""

import stat
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from paddock.host.cluster.secret import settle_secret
from paddock.ports import Store
from paddock.rules.cluster import ClusterSecret
from paddock.rules.errors import StorageUnavailableError
from paddock.storage.files.cluster_secret import FILE_NAME, VARIABLE, find, rotate

ONE, OTHER = "the secret of this installation now", "a secret that came later by rotation"


def test_without_one_in_the_environment_it_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    made = find(tmp_path / "data", {})
    path = tmp_path / "data" / FILE_NAME
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert find(tmp_path / "data", {}) == made
    assert find(tmp_path / "other", {}).parts != made.parts
    path.chmod(0o644)
    find(tmp_path / "data", {})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_environment_wins_and_nothing_is_written(tmp_path: Path) -> None:
    found = find(tmp_path, {VARIABLE: f"{OTHER}, {ONE}"})
    assert found == ClusterSecret((OTHER.encode(), ONE.encode()), VARIABLE)
    assert list(tmp_path.iterdir()) == []


def test_what_the_file_holds_can_be_put_into_the_environment(tmp_path: Path) -> None:
    made = rotate(tmp_path)
    assert find(tmp_path / "x", {VARIABLE: (tmp_path / FILE_NAME).read_text()}).parts == made.parts


@pytest.mark.parametrize("text", ["tiny-one", f"{ONE},tiny-one", f"{ONE},"])
def test_a_secret_that_is_too_short_is_refused_without_being_shown(tmp_path: Path, text: str) -> None:
    with pytest.raises(StorageUnavailableError, match="too short") as refused:
        find(tmp_path, {VARIABLE: text})
    assert not any(part in str(refused.value) for part in (ONE, "tiny-one"))


def test_a_rotation_keeps_those_before_for_reading(tmp_path: Path) -> None:
    first = find(tmp_path, {})
    second, third = rotate(tmp_path), rotate(tmp_path)
    assert third.parts[1:] == second.parts
    assert second.parts[1:] == first.parts
    assert find(tmp_path, {}) == third
    assert first.mark in third.marks
    assert first.key("names") != first.key("sealing") != second.key("sealing")


@pytest.mark.anyio
async def test_a_store_remembers_which_secret_it_is_used_with(store: Store) -> None:
    old, new = ClusterSecret((ONE.encode(),), "a"), ClusterSecret((OTHER.encode(), ONE.encode()), "b")
    assert await store.secret_mark() is None
    await settle_secret(store, old, shared=True)
    assert await store.secret_mark() == old.mark
    await settle_secret(store, new, shared=True)
    assert await store.secret_mark() == new.mark
    with pytest.raises(StorageUnavailableError, match="PADDOCK_SECRET to the same at every host"):
        await settle_secret(store, old, shared=True)
    with capture_logs() as logs:
        await settle_secret(store, old, shared=False)
    assert [line["action"] for line in logs] == ["secret.lost"]
    assert await store.secret_mark() == old.mark
