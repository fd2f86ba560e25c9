"""A PostgreSQL database as files and back: every row as it was, numbers go on, and nothing over what is there."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.builders import Owner, a_value, an_item, said
from paddock.rules.errors import StorageUnavailableError
from paddock.storage.files import ABOUT
from paddock.storage.postgres import PostgresStore, copying
from paddock.storage.postgres.copying import TABLES, copy_in, copy_out
from postgres_server import a_database

pytestmark = pytest.mark.anyio
STRANGE = "strange \x00 session"


@pytest.fixture
def addresses() -> Iterator[tuple[str, str]]:
    with a_database() as one, a_database() as other:
        yield one, other


@pytest.fixture(params=["text", "binary, as it used to be"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    form: str = request.param.partition(",")[0]
    monkeypatch.setattr(copying, "TEXT", form)
    return form


async def test_every_row_comes_back_as_it_was_and_numbers_go_on(
    addresses: tuple[str, str], tmp_path: Path, form: str
) -> None:
    source, target = PostgresStore(addresses[0]), PostgresStore(addresses[1])
    await source.open()
    owner = await Owner.of(source, STRANGE)
    await owner.write(said("nul \x00"), rows=[an_item(1, STRANGE, "a\x00b\t\\N\r\n 你好")])
    await source.write([a_value("k", b"\x00\xff")])
    assert await copy_out(addresses[0], tmp_path) == []
    if form == "binary":
        without(tmp_path / ABOUT, "format")  # nobody said so then
    else:
        assert "你好" in (tmp_path / TABLES / "transcript.copy").read_text(encoding="utf-8")
    await owner.write(said("after that moment"))
    await source.close()

    written = await copy_in(addresses[1], tmp_path)
    assert (written["sessions"], written["facts"], written["transcript"], written["state"]) == (1, 1, 1, 1)
    await target.open()
    assert await target.check(STRANGE) is None
    assert (await target.transcript(STRANGE))[0].content == "a\x00b\t\\N\r\n 你好"
    assert await target.state("scope", "k") == b"\x00\xff"
    again = await Owner.of(target, STRANGE)
    assert again.claim.epoch > owner.claim.epoch
    await again.write(said("goes on"))
    await (await Owner.of(target, "another")).write(said("numbers go on"))
    await target.close()
    with pytest.raises(StorageUnavailableError, match="holds data already"):
        await copy_in(addresses[1], tmp_path)


def without(about: Path, name: str) -> None:
    told = json.loads(about.read_text())
    del told[name]
    about.write_text(json.dumps(told))


async def test_a_copy_of_another_schema_is_refused(addresses: tuple[str, str], tmp_path: Path) -> None:
    await copy_out(addresses[0], tmp_path)
    about = tmp_path / ABOUT
    about.write_text(about.read_text().replace('"step": ', '"step": 9'))
    with pytest.raises(StorageUnavailableError, match="with the version that made it"):
        await copy_in(addresses[1], tmp_path)
