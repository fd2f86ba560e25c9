"""The file of signing keys: private, made once, changed while in use, and honest about what it cannot read."""

import asyncio
import stat
from pathlib import Path

import pytest

from paddock.rules.access.signatures import is_signed, signed
from paddock.rules.errors import StorageUnavailableError
from paddock.storage.files.signing_keys import RETIRED_SECONDS, KeyFile, rotate
from paddock.storage.postgres.commands import agree
from paddock.storage.postgres.commands import rotate as rotate_for_all
from postgres_server import a_database


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


@pytest.mark.anyio
async def test_hosts_on_one_database_sign_with_the_same_keys_also_after_a_change(tmp_path: Path) -> None:
    here, there = tmp_path / "here" / "keys.json", tmp_path / "there" / "keys.json"
    assert KeyFile(here)() != KeyFile(there)()
    with a_database() as address:
        for path in (here, there):
            await agree(address, path)
        assert KeyFile(here)() == KeyFile(there)()
        key, signature = signed(KeyFile(here)(), ["x"])
        made = await rotate_for_all(address, 1000.0)
        await asyncio.gather(agree(address, there), agree(address, here))
    assert KeyFile(here, clock=lambda: 1000.0)() == KeyFile(there, clock=lambda: 1000.0)()
    assert KeyFile(there)().active == made != key
    assert is_signed(KeyFile(there, clock=lambda: 1000.0)(), key, signature, ["x"])


@pytest.mark.anyio
async def test_of_hosts_that_begin_at_once_all_sign_with_the_keys_of_one(tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.json" for number in range(8)]
    with a_database() as address:
        await asyncio.gather(*(agree(address, file) for file in files))
    assert len({KeyFile(file)().active for file in files}) == 1


def test_the_first_use_makes_a_key_that_only_its_owner_can_read(tmp_path: Path) -> None:
    path = tmp_path / "data" / "signing-keys.json"
    first, second = KeyFile(path)(), KeyFile(path)()
    assert first == second
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(first.secrets[first.active]) == 32


def test_a_running_host_signs_with_the_new_key_and_knows_the_old_one_until_it_is_over(tmp_path: Path) -> None:
    path, clock, ticks = tmp_path / "keys.json", Clock(), Clock()
    keys = KeyFile(path, clock=clock, now=ticks)
    key, signature = signed(keys(), ["x"])
    made = rotate(path, clock())
    ticks.time += 1.0
    assert keys().active == made != key
    assert is_signed(keys(), key, signature, ["x"])
    clock.time += RETIRED_SECONDS
    rotate(path, clock())
    ticks.time += 1.0
    assert set(keys().secrets) == {keys().active, made}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["keys.json"]


def test_a_damaged_file_is_said_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text('{"active": 5')
    for use in (KeyFile(path), lambda: rotate(path, 0.0)):
        with pytest.raises(StorageUnavailableError, match="cannot be read"):
            use()
    assert path.read_text() == '{"active": 5'
