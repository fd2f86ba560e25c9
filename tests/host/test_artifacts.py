"""Files by reference, through the gate: kept, read, scoped, capped, expired, announced."""

import asyncio
import os
import uuid
from base64 import b64decode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from host.calling import AGENTS, a_gateway, a_run, ask, created, encoded, ended, refusal, streamed
from host.scripted import AtRunner, SmallHouse, small_house
from paddock.host.calls.artifacts import ArtifactLimits
from paddock.host.keeping.sweeping import GRACE_SECONDS, Sweeper
from paddock.rules.access.artifacts import NewArtifact
from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError
from paddock.storage.files.local import FileBlobs
from paddock.storage.sqlite import SqliteStore
from stores import QuickBlobs

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + b"\x00" * 30
NOT_FOUND = (ErrorCode.NOT_FOUND, "there is no such artifact")


async def test_a_file_that_a_run_makes_can_be_described_and_read_by_it() -> None:
    async with small_house(gateway=a_gateway()) as house:
        run = await a_run(house)
        made = await created(house, run, b"0123456789", name="dir/../notes.txt", metadata={"page": 1})
        assert (made["name"], made["size_bytes"], made["mime_type"]) == ("notes.txt", 10, "text/plain")
        assert (made["source"], made["run_id"], made["metadata"]) == ("runner", run.run_id, {"page": 1})
        about = await ask(house, run, "artifacts.metadata", artifact_id=made["artifact_id"])
        assert about == made
        part = await ask(house, run, "artifacts.read_range", artifact_id=made["artifact_id"], offset=2, length=3)
        assert (b64decode(part["content_base64"]), part["length"], part["has_more"]) == (b"234", 3, True)
        rest = await ask(house, run, "artifacts.read_range", artifact_id=made["artifact_id"], offset=5)
        assert (b64decode(rest["content_base64"]), rest["has_more"]) == (b"56789", False)
        past = await ask(house, run, "artifacts.read_range", artifact_id=made["artifact_id"], offset=99)
        assert (past["content_base64"], past["has_more"]) == ("", False)


async def test_a_stream_comes_in_pieces_of_64_kib() -> None:
    content = bytes(range(256)) * 700
    async with small_house(gateway=a_gateway()) as house:
        run = await a_run(house)
        made = await created(house, run, content)
        pieces = await streamed(house, run, made["artifact_id"])
        assert [len(piece) for piece in pieces] == [65536, 65536, len(content) - 2 * 65536]
        assert b"".join(pieces) == content


async def test_what_a_file_is_follows_from_its_bytes_and_not_from_what_is_said() -> None:
    async with small_house(gateway=a_gateway()) as house:
        run = await a_run(house)
        lying = await created(house, run, PNG, name="page.html", mime_type="text/html")
        assert lying["mime_type"] == "image/png"
        script = await created(house, run, b"<html><script>1</script>", mime_type="text/plain")
        assert script["mime_type"] == "text/html"
        table = await created(house, run, b"a,b\n1,2\n", mime_type="text/csv")
        assert table["mime_type"] == "text/csv"


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"content_base64": "not base64!"}, ErrorCode.INVALID_ARGUMENT),
        ({"content_base64": "aGVsbG8"}, ErrorCode.INVALID_ARGUMENT),
        ({"content_base64": encoded(b"x" * (1024 * 1024 + 1))}, ErrorCode.PAYLOAD_TOO_LARGE),
        ({"content_base64": "", "metadata": {"x": "y" * 20_000}}, ErrorCode.PAYLOAD_TOO_LARGE),
    ],
)
async def test_bad_or_too_large_content_is_refused_and_nothing_is_kept(params: dict[str, Any], code: ErrorCode) -> None:
    async with small_house(gateway=a_gateway()) as house:
        run = await a_run(house)
        assert (await refusal(house, run, "artifacts.create", artifact_type="file", **params))[0] is code
        assert await house.store.artifact_bytes("default") == 0


async def test_a_file_of_exactly_the_cap_is_kept() -> None:
    async with small_house(gateway=a_gateway()) as house:
        run = await a_run(house)
        assert (await created(house, run, b"x" * 1024 * 1024))["size_bytes"] == 1024 * 1024


@pytest.mark.parametrize("asked", [{"offset": -1}, {"length": -1}])
async def test_a_negative_range_is_an_invalid_argument(asked: dict[str, int]) -> None:
    async with small_house(gateway=a_gateway()) as house:
        run = await a_run(house)
        made = await created(house, run)
        code, _ = await refusal(house, run, "artifacts.read_range", artifact_id=made["artifact_id"], **asked)
        assert code is ErrorCode.INVALID_ARGUMENT


async def test_a_range_over_the_cap_is_refused_and_names_it() -> None:
    async with small_house(gateway=a_gateway()) as house:
        run = await a_run(house)
        made = await created(house, run)
        code, text = await refusal(
            house, run, "artifacts.read_range", artifact_id=made["artifact_id"], length=1024 * 1024 + 1
        )
        assert code is ErrorCode.PAYLOAD_TOO_LARGE
        assert "1048576" in text


# --- who may read what -----------------------------------------------------------------------------------------------

READS = ("artifacts.metadata", "artifacts.read_range", "artifacts.open_stream")


async def can_read(house: SmallHouse, run: AtRunner, artifact_id: str) -> bool:
    """All three ways to read agree; a refusal is the one for an invented id."""
    try:
        await ask(house, run, "artifacts.metadata", artifact_id=artifact_id)
    except HostError:
        for method in READS:
            assert await refusal(house, run, method, artifact_id=artifact_id) == NOT_FOUND
        return False
    await ask(house, run, "artifacts.read_range", artifact_id=artifact_id)
    return True


async def test_a_file_is_read_in_its_conversation_by_the_agent_that_made_it_until_it_is_published() -> None:
    thread = str(uuid.uuid4())
    async with small_house(gateway=a_gateway(), agents=AGENTS) as house:
        maker = await a_run(house, thread, agent_id="one")
        secret = (await created(house, maker, b"secret"))["artifact_id"]
        shown = (await created(house, maker, b"shown"))["artifact_id"]
        maker.say("artifact.created", artifact_type="file", artifact_id=shown)
        await ended(house, maker, thread)
        later = await a_run(house, thread, agent_id="one")
        assert await can_read(house, later, secret)
        elsewhere = await a_run(house, agent_id="one")
        assert not await can_read(house, elsewhere, secret)
        assert not await can_read(house, elsewhere, shown)
        await ended(house, later, thread)
        other = await a_run(house, thread, agent_id="two")
        assert not await can_read(house, other, secret)
        assert await can_read(house, other, shown)
        assert await refusal(house, other, "artifacts.metadata", artifact_id="art_invented") == NOT_FOUND


async def test_what_one_agent_may_not_read_it_cannot_publish_either() -> None:
    thread = str(uuid.uuid4())
    async with small_house(gateway=a_gateway(), agents=AGENTS) as house:
        maker = await a_run(house, thread, agent_id="one")
        secret = (await created(house, maker, b"secret"))["artifact_id"]
        await ended(house, maker, thread)
        other = await a_run(house, thread, agent_id="two")
        other.say("artifact.created", artifact_type="file", artifact_id=secret)
        await ended(house, other, thread)
        row = await house.store.artifact(secret)
        assert row is not None
        assert not row.published
        audit = await house.store.audit(run_id=other.run_id)
        assert [(r.result, r.reason) for r in audit if r.action == "artifact.created"] == [("refused", NOT_FOUND[1])]


async def test_an_expired_file_is_like_one_that_never_was() -> None:
    now = [1000.0]
    async with small_house(gateway=a_gateway(), clock=lambda: now[0], limits=ArtifactLimits(keep_seconds=30)) as house:
        run = await a_run(house)
        made = await created(house, run)
        assert made["expires_at"] == 1030
        now[0] += 31
        assert not await can_read(house, run, made["artifact_id"])


async def test_a_workspace_that_is_full_takes_no_more() -> None:
    async with small_house(gateway=a_gateway(), limits=ArtifactLimits(workspace_bytes=10)) as house:
        run = await a_run(house)
        await created(house, run, b"12345678")
        code, text = await refusal(house, run, "artifacts.create", artifact_type="file", content_base64=encoded(b"123"))
        assert code is ErrorCode.PAYLOAD_TOO_LARGE
        assert "10 bytes" in text
        assert await house.store.artifact_bytes("default") == 8


async def test_without_the_permission_nothing_is_made() -> None:
    async with small_house(gateway=a_gateway(artifacts=["metadata"])) as house:
        run = await a_run(house)
        code, _ = await refusal(house, run, "artifacts.create", artifact_type="file", content_base64="")
        assert code is ErrorCode.UNAUTHORIZED
        code, _ = await refusal(house, run, "artifacts.read_range", artifact_id="art_x")
        assert code is ErrorCode.UNAUTHORIZED


async def test_making_a_file_leaves_one_audit_row_in_the_same_commit() -> None:
    async with small_house(gateway=a_gateway()) as house:
        run = await a_run(house)
        await created(house, run)
        assert [row.result for row in await house.store.audit() if row.action == "artifacts.create"] == ["allowed"]


# --- files that come with a result -----------------------------------------------------------------------------------


async def test_an_announced_file_is_kept_published_and_part_of_the_conversation_in_order() -> None:
    thread = str(uuid.uuid4())
    async with small_house(gateway=a_gateway()) as house:
        run = await a_run(house, thread)
        run.message("before")
        run.say(
            "artifact.created", artifact_type="image", name="plot.png", content_base64=encoded(PNG), mime_type="text/x"
        )
        run.message("after")
        await ended(house, run, thread)
        row = await house.store.run(run.run_id)
        assert row is not None
        said = [entry.fact for entry in await house.story(row) if entry.fact.kind == "AGENT_OUTPUT:MESSAGE"]
        assert [fact.read_payload()["type"] for fact in said] == [
            "message.completed",
            "artifact.created",
            "message.completed",
        ]
        about = said[1].read_payload()["data"]
        assert "content_base64" not in about
        assert (about["mime_type"], about["size_bytes"], about["name"]) == ("image/png", len(PNG), "plot.png")
        next_run = await a_run(house, thread)
        assert b"".join(await streamed(house, next_run, about["artifact_id"])) == PNG
        page = await ask(house, next_run, "history.page", include_artifacts=True)
        refs = [item["attachment_refs"] for item in page["items"] if item["attachment_refs"]]
        assert [[ref["artifact_id"] for ref in each] for each in refs] == [[about["artifact_id"]]]


@pytest.mark.parametrize(
    "data",
    [
        {"content_base64": "!"},
        {"content_base64": 7},
        {},
        {"content_base64": encoded(b"x"), "sha256": "0" * 64},
        {"content_base64": encoded(b"x"), "metadata": []},
        {"content_base64": encoded(b"x" * (1024 * 1024 + 1))},
    ],
)
async def test_a_malformed_announcement_fails_the_run(data: dict[str, Any]) -> None:
    async with small_house(gateway=a_gateway()) as house:
        accepted = await house.say(thread=str(uuid.uuid4()))
        run = await house.gateway.next()
        run.say("artifact.created", artifact_type="file", **data)
        await house.story(accepted)
        assert (await house.run(accepted)).code == "runner.protocol_error"
        assert await house.store.artifact_bytes("default") == 0


async def test_a_file_for_which_there_is_no_room_is_refused_and_the_run_goes_on() -> None:
    async with small_house(gateway=a_gateway(), limits=ArtifactLimits(workspace_bytes=1)) as house:
        accepted = await house.say(thread=str(uuid.uuid4()))
        run = await house.gateway.next()
        run.say("artifact.created", artifact_type="file", content_base64=encoded(b"too much"))
        run.message("still here")
        run.say("run.completed")
        await house.story(accepted)
        assert (await house.run(accepted)).status == "completed"
        audit = [row for row in await house.store.audit(run_id=run.run_id) if row.action == "artifact.created"]
        assert [row.result for row in audit] == ["refused"]
        assert "1 bytes" in audit[0].reason


class StuckBlobs(QuickBlobs):
    """Bytes that are never written until the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()

    async def stuck(self, pieces: Any) -> AsyncIterator[bytes]:
        self.asked.set()
        await self.go_on.wait()
        async for piece in pieces:
            yield piece

    def keep(self, pieces: Any, *, max_bytes: int) -> Any:
        return super().keep(self.stuck(pieces), max_bytes=max_bytes)


async def test_a_crash_is_told_after_all_that_was_said_before_it() -> None:
    blobs = StuckBlobs()
    async with small_house(gateway=a_gateway(), blobs=blobs) as house:
        accepted = await house.say(thread=str(uuid.uuid4()))
        run = await house.gateway.next()
        run.say("artifact.created", artifact_type="file", content_base64=encoded(b"x"))
        run.listener.lost("runner.crashed", "gone")
        await blobs.asked.wait()
        blobs.go_on.set()
        kinds = [
            entry.fact.read_payload()["type"] for entry in await house.story(accepted) if "MESSAGE" in entry.fact.kind
        ]
        assert kinds == ["artifact.created"]
        assert (await house.run(accepted)).code == "runner.crashed"


async def test_a_deadline_does_not_wait_for_a_disk_that_hangs() -> None:
    blobs = StuckBlobs()
    agents = AGENTS.replace(
        'one: {runner: "plugin:test/one/default"}', 'one: {runner: "plugin:test/one/default", deadline_seconds: 0.2}'
    )
    async with small_house(gateway=a_gateway(), blobs=blobs, agents=agents) as house:
        accepted = await house.say(thread=str(uuid.uuid4()))
        run = await house.gateway.next()
        run.may_stop.set()
        run.say("artifact.created", artifact_type="file", content_base64=encoded(b"x"))
        await house.story(accepted)
        assert (await house.run(accepted)).code == "deadline_exceeded"


# --- for other rooms -------------------------------------------------------------------------------------------------


async def grant_of(house: SmallHouse, run: AtRunner) -> Any:
    live = house.runs.live.find(run.run_id)
    assert live is not None
    return live.grant


async def test_a_large_result_becomes_an_artifact_with_a_preview() -> None:
    async with small_house(gateway=a_gateway()) as house:
        run = await a_run(house)
        grant = await grant_of(house, run)
        assert await house.artifacts.keep_large(grant, {"a": 1}, name="t") == ({"a": 1}, None)
        preview, ref = await house.artifacts.keep_large(grant, {"rows": ["x" * 100] * 1000}, name="query")
        assert ref is not None
        assert (ref.mime_type, ref.source) == ("application/json", "tool")
        assert preview.startswith('{"rows":["xxx')
        assert len(preview) == 2000
        assert len(b"".join(await streamed(house, run, ref.artifact_id))) == ref.size


async def test_an_upload_is_streamed_in_and_becomes_part_of_any_conversation_it_is_attached_to() -> None:
    async def upload() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b"x" * 65536

    async with small_house(gateway=a_gateway()) as house:
        kept = await house.artifacts.keep(NewArtifact("default", "platform", name="big.txt", user_id="ann"), upload())
        assert kept.size == 40 * 65536
        run = await a_run(house, first := str(uuid.uuid4()))
        assert not await can_read(house, run, kept.artifact_id)
        here = await house.artifacts.attach(kept, first)
        assert here.artifact_id == kept.artifact_id
        assert await can_read(house, run, kept.artifact_id)
        run = await a_run(house, second := str(uuid.uuid4()))
        there = await house.artifacts.attach(here, second)
        assert there.artifact_id != kept.artifact_id
        assert await can_read(house, run, there.artifact_id)
        assert not await can_read(house, run, here.artifact_id)
        assert await house.artifacts.find("elsewhere", here.artifact_id) is None


# --- forgetting ------------------------------------------------------------------------------------------------------


class House:
    """Rows in SQLite, bytes in files: what a crash leaves is left there."""

    def __init__(self, directory: Path) -> None:
        self.store, self.blobs = SqliteStore(directory), FileBlobs(directory / "blobs")
        self.directory = directory

    def files(self) -> int:
        return sum(path.is_file() for path in (self.directory / "blobs").rglob("*"))


async def test_what_is_past_its_time_is_swept_with_its_bytes_but_not_bytes_that_others_need(tmp_path: Path) -> None:
    disk, now = House(tmp_path), [1000.0]
    limits = ArtifactLimits(keep_seconds=30)
    async with small_house(
        disk.store, gateway=a_gateway(), blobs=disk.blobs, clock=lambda: now[0], limits=limits
    ) as house:
        await disk.blobs.open()
        run = await a_run(house)
        old = await created(house, run, b"shared")
        await created(house, run, b"alone")
        now[0] += 25
        young = await created(house, run, b"shared")
        sweeper = Sweeper(disk.store, disk.blobs, clock=lambda: now[0])
        now[0] += 10 + GRACE_SECONDS
        assert await sweeper.sweep() == 2
        assert disk.files() == 1
        assert await disk.store.artifact(old["artifact_id"]) is None
        forgotten = [row.resource for row in await disk.store.audit() if row.action == "artifact.forget"]
        assert old["artifact_id"] in forgotten
        assert await disk.blobs.read(young["sha256"], 0, 10) == b"shared"
        now[0] += 30
        assert await sweeper.sweep() == 1
        assert disk.files() == 0


class BrokenRows(SqliteStore):
    """Refuses to write rows when told so: as if the host had died just before."""

    broken = False

    async def write(self, rows: Any) -> None:
        if self.broken:
            raise StorageUnavailableError("gone")
        await super().write(rows)


async def test_bytes_whose_row_was_never_written_are_found_and_removed_and_no_others(tmp_path: Path) -> None:
    disk = House(tmp_path)
    disk.store = store = BrokenRows(tmp_path)
    async with small_house(store, gateway=a_gateway(), blobs=disk.blobs) as house:
        await disk.blobs.open()
        run = await a_run(house)
        await created(house, run, b"good")
        store.broken = True
        with pytest.raises(StorageUnavailableError):
            await house.artifacts.keep(NewArtifact("default", "runner"), b"stray")
        store.broken = False
        assert disk.files() == 2
        sweeper = Sweeper(store, disk.blobs, clock=lambda: 0.0)
        assert await sweeper.remove_strays() == 0
        for path in (tmp_path / "blobs").rglob("*"):
            if path.is_file():
                os.utime(path, (1, 1))
        assert await sweeper.remove_strays() == 1
        assert disk.files() == 1


async def test_a_sweep_that_died_between_rows_and_bytes_is_finished_by_the_next_look_for_strays(tmp_path: Path) -> None:
    disk, now = House(tmp_path), [1000.0]

    class DiesOnRemove(FileBlobs):
        async def remove(self, sha256: str, *, needed: Any) -> bool:
            raise StorageUnavailableError("the host died here")

    limits = ArtifactLimits(keep_seconds=30)
    async with small_house(
        disk.store, gateway=a_gateway(), blobs=disk.blobs, clock=lambda: now[0], limits=limits
    ) as house:
        await disk.blobs.open()
        run = await a_run(house)
        made = await created(house, run, b"x")
        now[0] += 31 + GRACE_SECONDS
        with pytest.raises(StorageUnavailableError):
            await Sweeper(disk.store, DiesOnRemove(tmp_path / "blobs"), clock=lambda: now[0]).sweep()
        assert await disk.store.artifact(made["artifact_id"]) is None
        assert disk.files() == 1
        os.utime(next(path for path in (tmp_path / "blobs").rglob("*") if path.is_file()), (1, 1))
        assert await Sweeper(disk.store, disk.blobs, clock=lambda: now[0]).remove_strays() == 1
        assert disk.files() == 0
