"""A host of an older release beside a newer one, in the middle of an upgrade."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import httpx
import pytest

from cluster.conftest import Hosts as NewHosts
from paddock.ports.hosts import Hosts
from paddock.storage.postgres import PostgresStore
from postgres_server import database_of, the_server
from walk.hosts import HostProcess

pytestmark = pytest.mark.anyio

SESSIONS = "/api/v1/agent/sessions"
ANSWER = json.dumps(
    {"body": None, "code": "runtime_error", "message": "the host made a mistake; its log has the details"}
).encode()
"""What a host of an older release says to what it has never heard of."""


@asynccontextmanager
async def an_older_host(database: str) -> AsyncGenerator[PostgresStore]:
    """One that is there, and does nothing that it is asked."""
    store = PostgresStore(database, host_id="older", url="http://older")
    await store.open()
    assert store.hosts is not None
    answering = asyncio.create_task(_answer_everything(store.hosts))
    try:
        yield store
    finally:
        answering.cancel()
        with suppress(asyncio.CancelledError):
            await answering
        await store.hosts.leave("host_shutdown")
        await store.close()


async def _answer_everything(hosts: Hosts) -> None:
    while True:
        await hosts.beat()
        for request in await hosts.asked(limit=10):
            await hosts.answer(request.request_id, ANSWER)
        await asyncio.sleep(0.1)


@pytest.fixture(scope="module")
def host(new_host: NewHosts) -> HostProcess:
    return new_host("newer").start()


@pytest.mark.spec("http/sessions-delete")
async def test_a_conversation_that_an_older_host_has_is_busy_and_is_deleted_when_it_rests(
    host: HostProcess, database: str
) -> None:
    thread = host.run(host.finished(host.post("hello").json()["taskId"])["taskId"])["threadId"]
    async with an_older_host(database) as older, httpx.AsyncClient(base_url=host.url, timeout=60) as client:
        await older.claim(thread)
        refused = await client.delete(f"{SESSIONS}/{thread}")
        assert refused.status_code == 409, refused.text
        assert refused.json()["code"] == "conflict"
        assert "still going on" in refused.json()["detail"]
        the_server().sql(f"update sessions set boot = null where session_id = '{thread}'", database_of(database))
        deleted = await client.delete(f"{SESSIONS}/{thread}")
        assert deleted.status_code == 204, deleted.text
