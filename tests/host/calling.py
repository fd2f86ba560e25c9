"""Host calls through the real gate, as a runner makes them, for the tests of the rooms behind it."""

import uuid
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, cast

import pytest

from host.scripted import AtRunner, ScriptedGateway, SmallHouse
from paddock.ports import Caller
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import AuditRow

HERE = Caller("test/one", "c1")
PERMISSIONS = {
    "history": ["page"],
    "events": ["get", "page"],
    "artifacts": ["metadata", "read", "create"],
    "storage": ["plugin", "workspace", "binding"],
}
AGENTS = """
default_agent: one
agents:
  one: {runner: "plugin:test/one/default"}
  two: {runner: "plugin:test/one/default"}
  three: {runner: "plugin:test/other/default"}
"""


def a_gateway(**permissions: list[str]) -> ScriptedGateway:
    return ScriptedGateway(PERMISSIONS | permissions)


def encoded(content: bytes) -> str:
    return b64encode(content).decode()


async def a_run(house: SmallHouse, thread: str | None = None, **more: Any) -> AtRunner:
    await house.say(thread=thread or str(uuid.uuid4()), **more)
    return await house.gateway.next()


async def ask(house: SmallHouse, run: AtRunner, method: str, **params: Any) -> Any:
    return await house.calls(HERE, method, {"run_id": run.run_id, **params}, 100)


async def refusal(house: SmallHouse, run: AtRunner, method: str, **params: Any) -> tuple[ErrorCode, str]:
    """How a call is refused; it leaves exactly one audit row."""
    before = len(await _decided(house, run, method))
    with pytest.raises(HostError) as error:
        await ask(house, run, method, **params)
    rows = await _decided(house, run, method)
    assert [row.result for row in rows[: len(rows) - before]] == [error.value.code]
    return error.value.code, error.value.message


async def _decided(house: SmallHouse, run: AtRunner, method: str) -> list[AuditRow]:
    """The audit rows of this call of a run, the newest first. How runs begin is on record too, whenever that is."""
    return [row for row in await house.store.audit(run_id=run.run_id, limit=1000) if row.action == method]


async def streamed(house: SmallHouse, run: AtRunner, artifact_id: str) -> list[bytes]:
    chunks = cast("Any", await ask(house, run, "artifacts.open_stream", artifact_id=artifact_id))
    got = [b64decode(chunk["content_base64"]) async for chunk in chunks]
    assert chunks.result == {}
    return got


async def created(house: SmallHouse, run: AtRunner, content: bytes = b"hello", **more: Any) -> Mapping[str, Any]:
    return await ask(house, run, "artifacts.create", content_base64=encoded(content), artifact_type="file", **more)


async def ended(house: SmallHouse, run: AtRunner, thread: str) -> None:
    """Let a run end, and wait until that is on record."""
    run.say("run.completed")
    row = await house.store.run(run.run_id)
    assert row is not None
    await house.story(row)
