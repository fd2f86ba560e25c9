"""Blobs of plugins, through the gate: kept apart, in parts, listed, capped, freed."""

import uuid
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from host.calling import a_gateway, a_run, ask, encoded, refusal
from host.scripted import AtRunner, SmallHouse, small_house
from paddock.host.keeping.sweeping import UPLOAD_SECONDS, Sweeper
from paddock.rules.access.permissions import area_key
from paddock.rules.errors import ErrorCode
from paddock.rules.rows.rows import StorageRow
from paddock.storage.files.local import FileBlobs

pytestmark = pytest.mark.anyio

POLICY = "storage: [plugin, workspace, binding]"
AGENTS = f"""
default_agent: one
agents:
  one: {{runner: "plugin:test/one/default", {POLICY}}}
  two: {{runner: "plugin:test/one/other", {POLICY}}}
  three: {{runner: "plugin:test/three/default", {POLICY}}}
  narrow: {{runner: "plugin:test/one/default"}}
"""
PART = 2 * 1024 * 1024


def a_house(**more: Any) -> Any:
    return small_house(gateway=a_gateway(), agents=AGENTS, **more)


async def put(house: SmallHouse, run: AtRunner, key: str, value: bytes, area: str = "plugin", **more: Any) -> None:
    assert await ask(house, run, "storage.set", area=area, key=key, value_base64=encoded(value), **more) == {"ok": True}


async def got(house: SmallHouse, run: AtRunner, key: str, area: str = "plugin") -> bytes | None:
    said = await ask(house, run, "storage.get", area=area, key=key)
    return b64decode(said["value_base64"]) if said["found"] else None


async def test_a_blob_is_kept_read_listed_and_deleted() -> None:
    async with a_house() as house:
        run = await a_run(house)
        await put(house, run, "a/1", b"\x00one")
        await put(house, run, "a/1", b"two")
        assert (await got(house, run, "a/1"), await got(house, run, "b")) == (b"two", None)
        assert await ask(house, run, "storage.list", area="plugin", prefix="a/") == {"keys": ["a/1"], "has_more": False}
        assert await ask(house, run, "storage.delete", area="plugin", key="a/1") == {"deleted": True}
        assert await ask(house, run, "storage.delete", area="plugin", key="a/1") == {"deleted": False}
        actions = [row.action for row in await house.store.audit() if row.action.startswith("storage.")]
        assert actions.count("storage.set") == 2
        assert actions.count("storage.delete") == 2


@pytest.mark.parametrize(
    ("area", "meets"),
    [
        ("plugin", {"one": True, "two": True, "three": False}),
        ("workspace", {"one": True, "two": True, "three": True}),
        ("binding", {"one": True, "two": False, "three": False}),
    ],
)
async def test_an_area_is_shared_by_those_it_is_for_and_nobody_else(area: str, meets: dict[str, bool]) -> None:
    async with a_house() as house:
        await put(house, await a_run(house, agent_id="one"), "k", b"mine", area)
        seen = {agent: await got(house, await a_run(house, agent_id=agent), "k", area) is not None for agent in meets}
        assert seen == meets


async def test_an_area_that_was_not_granted_is_refused() -> None:
    async with a_house() as house:
        run = await a_run(house, agent_id="narrow")
        await put(house, run, "k", b"x")
        for area in ("workspace", "binding", "", "elsewhere"):
            code, _ = await refusal(house, run, "storage.get", area=area, key="k")
            assert code is ErrorCode.UNAUTHORIZED


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"key": "k", "value_base64": "?"}, ErrorCode.INVALID_ARGUMENT),
        ({"key": "", "value_base64": ""}, ErrorCode.INVALID_ARGUMENT),
        ({"key": "a\x00b", "value_base64": ""}, ErrorCode.INVALID_ARGUMENT),
        ({"key": "k" * 257, "value_base64": ""}, ErrorCode.PAYLOAD_TOO_LARGE),
        ({"key": "k", "value_base64": encoded(b"x" * (PART + 1))}, ErrorCode.PAYLOAD_TOO_LARGE),
        ({"key": "k", "value_base64": "", "offset": 5}, ErrorCode.INVALID_ARGUMENT),
        ({"key": "k", "value_base64": "", "offset": -5}, ErrorCode.INVALID_ARGUMENT),
    ],
)
async def test_bad_keys_values_and_offsets_are_refused_and_nothing_is_kept(params: Any, code: ErrorCode) -> None:
    async with a_house() as house:
        run = await a_run(house)
        assert (await refusal(house, run, "storage.set", area="plugin", **params))[0] is code
        assert (await ask(house, run, "storage.list", area="plugin"))["keys"] == []


async def test_a_value_larger_than_a_call_is_written_and_read_in_parts_and_seen_only_whole() -> None:
    value = bytes(range(256)) * (5 * PART // 512)
    async with a_house() as house:
        run = await a_run(house)
        await put(house, run, "k", b"old")
        await put(house, run, "k", value[:PART], offset=0, more=True)
        assert await got(house, run, "k") == b"old"
        await put(house, run, "k", value[PART : 2 * PART], offset=PART, more=True)
        await put(house, run, "k", value[2 * PART :], offset=2 * PART)
        read, versions = b"", set()
        while True:
            said = await ask(house, run, "storage.get", area="plugin", key="k", offset=len(read))
            read += b64decode(said["value_base64"])
            versions.add((said["version"], said["size_bytes"]))
            if not said["has_more"]:
                break
        assert read == value
        assert len(versions) == 1


async def test_a_value_ends_at_ten_mebibytes_whatever_its_parts() -> None:
    async with a_house() as house:
        run = await a_run(house)
        for number in range(5):
            await put(house, run, "k", b"x" * PART, offset=number * PART, more=True)
        code, _ = await refusal(
            house, run, "storage.set", area="plugin", key="k", value_base64=encoded(b"x"), offset=5 * PART
        )
        assert code is ErrorCode.PAYLOAD_TOO_LARGE
        await put(house, run, "k", b"", offset=5 * PART)
        said = await ask(house, run, "storage.get", area="plugin", key="k")
        assert said["size_bytes"] == 10 * 1024 * 1024


async def test_parts_of_one_run_are_not_another_runs() -> None:
    thread = str(uuid.uuid4())
    async with a_house() as house:
        first, second = await a_run(house, thread), await a_run(house)
        await put(house, first, "k", b"abc", offset=0, more=True)
        code, _ = await refusal(house, second, "storage.set", area="plugin", key="k", value_base64="", offset=3)
        assert code is ErrorCode.INVALID_ARGUMENT


async def test_an_area_that_is_full_takes_no_more_until_something_is_deleted() -> None:
    async with a_house(area_bytes=10) as house:
        run = await a_run(house)
        await put(house, run, "a", b"x" * 8)
        code, text = await refusal(house, run, "storage.set", area="plugin", key="b", value_base64=encoded(b"xyz"))
        assert code is ErrorCode.PAYLOAD_TOO_LARGE
        assert "10 bytes" in text
        assert await got(house, run, "b") is None
        await put(house, run, "c", b"x" * 10, "workspace")
        await ask(house, run, "storage.delete", area="plugin", key="a")
        await put(house, run, "b", b"xyz")


async def test_a_list_comes_in_pages_and_a_prefix_is_taken_literally() -> None:
    now = [1000.0]
    async with a_house(clock=lambda: now[0]) as house:
        run = await a_run(house)
        grant = house.runs.live.find(run.run_id).grant
        rows = [f"k/{number:04}" for number in range(1001)]
        area = str(area_key("plugin", grant))
        await house.store.write([StorageRow(area, key, "ab" * 32, 1, 1.0) for key in [*rows, "k%", "kx"]])
        first = await ask(house, run, "storage.list", area="plugin", prefix="k/")
        assert (first["keys"], first["has_more"]) == (rows[:1000], True)
        rest = await ask(house, run, "storage.list", area="plugin", prefix="k/", after=first["keys"][-1])
        assert rest == {"keys": rows[1000:], "has_more": False}
        assert (await ask(house, run, "storage.list", area="plugin", prefix="k%"))["keys"] == ["k%"]


async def test_replaced_deleted_and_unfinished_values_free_their_bytes(tmp_path: Path) -> None:
    now, blobs = [1000.0], FileBlobs(tmp_path)
    await blobs.open()

    def files() -> int:
        return sum(path.is_file() for path in tmp_path.rglob("*"))

    async with a_house(blobs=blobs, clock=lambda: now[0]) as house:
        run = await a_run(house)
        await put(house, run, "a", b"one")
        await put(house, run, "b", b"one")
        await put(house, run, "a", b"two")
        assert files() == 2
        await ask(house, run, "storage.delete", area="plugin", key="a")
        await ask(house, run, "storage.delete", area="plugin", key="b")
        assert files() == 0
        await put(house, run, "c", b"part", offset=0, more=True)
        await put(house, run, "c", b"begun anew", offset=0, more=True)
        assert files() == 1
        sweeper = Sweeper(house.store, blobs, clock=lambda: now[0])
        assert await sweeper.sweep() == 0
        now[0] += UPLOAD_SECONDS + 1
        assert await sweeper.sweep() == 1
        assert files() == 0
