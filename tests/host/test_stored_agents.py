"""Agents made over the API, where several hosts keep them in mind: what one changed counts for the others at once when
they change it too, and taking in a change costs as much as the change."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from host.scripted import manifest_of
from paddock.host import stored_agents as room
from paddock.host.agents import Agents
from paddock.host.principals import Principal
from paddock.host.stored_agents import StoredAgents
from paddock.ports import Store
from paddock.rules.agent_config import MASK
from paddock.rules.errors import HostError, StorageUnavailableError
from paddock.rules.rows import AgentRow
from paddock.storage.memory import open_memory_store

pytestmark = pytest.mark.anyio

ADA = Principal("w", "ada", "admin")
RUNNER = "plugin:test/one/default"


class Host:
    def __init__(self, store: Store) -> None:
        self.agents = Agents([], None)
        self.stored = StoredAgents(self.agents, kept=store, records=store, clock=lambda: 1.0)

    async def put(self, agent_id: str = "writer", **config: Any) -> None:
        await self.stored.put(ADA, agent_id, {"runner": RUNNER, "config": config}, manifest_of(RUNNER, {}))


async def config_of(store: Store, agent_id: str = "writer") -> Any:
    [row] = [row for row in await store.stored_agents() if row.agent_id == agent_id]
    return msgspec.json.decode(row.body)["config"]


async def test_a_secret_that_was_changed_at_another_host_is_not_put_back() -> None:
    store = open_memory_store()
    here, there = Host(store), Host(store)
    await here.put(key="old", tone="dry")
    await there.stored.load()
    await here.put(key="new", tone="dry")
    await there.put(key=MASK, tone="warm")
    assert await config_of(store) == {"key": "new", "tone": "warm"}


async def test_an_agent_that_another_host_just_made_can_be_deleted_here_and_one_it_deleted_cannot() -> None:
    store = open_memory_store()
    here, there = Host(store), Host(store)
    await here.put()
    await there.stored.delete(ADA, "writer")
    assert await store.stored_agents() == []
    with pytest.raises(HostError, match="there is no agent 'writer'"):
        await here.stored.delete(ADA, "writer")


async def test_only_what_was_changed_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store, read = open_memory_store(), list[object]()
    here, there = Host(store), Host(store)
    for number in range(3):
        await here.put(f"agent-{number}")
    validate = room.AgentShape.model_validate

    def counted(given: object) -> Any:
        read.append(given)
        return validate(given)

    monkeypatch.setattr(room.AgentShape, "model_validate", counted)
    await there.stored.load()
    assert len(read) == 3
    await there.stored.load()
    assert len(read) == 3
    await store.write([AgentRow("w", "agent-1", b'{"runner":"plugin:test/two/default"}', 2.0, "ada")])
    await there.stored.load()
    assert len(read) == 4
    assert there.agents.stored("w")["agent-1"].runner_id == "plugin:test/two/default"


async def test_an_agent_that_is_made_while_others_are_taken_in_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_memory_store()
    here, may_go_on, looked = Host(store), asyncio.Event(), asyncio.Event()
    look = store.stored_agents

    async def slowly() -> Sequence[AgentRow]:
        rows = await look()
        looked.set()
        await may_go_on.wait()
        return rows

    monkeypatch.setattr(store, "stored_agents", slowly)
    loading = asyncio.create_task(here.stored.load())
    await looked.wait()
    making = asyncio.create_task(here.put())
    for _ in range(5):
        await asyncio.sleep(0)
    may_go_on.set()
    await asyncio.gather(loading, making)
    assert "writer" in here.agents.stored("w")


async def test_an_agent_whose_files_could_not_be_looked_up_is_taken_in_the_next_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = open_memory_store()
    await store.write([AgentRow("w", "writer", msgspec.json.encode({"runner": RUNNER, "files": ["f"]}), 1.0, "ada")])
    host = Host(store)

    async def away(_: str) -> None:
        raise StorageUnavailableError("away")

    with monkeypatch.context() as patch:
        patch.setattr(store, "artifact", away)
        with pytest.raises(StorageUnavailableError):
            await host.stored.load()
    await host.stored.load()
    assert set(host.agents.stored("w")) == {"writer"}
