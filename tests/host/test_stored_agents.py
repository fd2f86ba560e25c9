"""Agents made over the API, where several hosts keep them in mind: what one changed counts for the others at once when
they change it too, and taking in a change costs as much as the change."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from host.scripted import manifest_of
from paddock.host.agents import stored as room
from paddock.host.agents.agents import Agents
from paddock.host.agents.stored import StoredAgents
from paddock.host.people.principals import Principal
from paddock.ports import Store
from paddock.rules.agents.config import MASK
from paddock.rules.cluster import ClusterSecret
from paddock.rules.errors import HostError, StorageUnavailableError
from paddock.rules.rows.rows import AgentRow, ArtifactRow
from paddock.storage.files.cluster_secret import Sealer
from stores import QuickStore

pytestmark = pytest.mark.anyio

ADA = Principal("w", "ada", "admin")
RUNNER = "plugin:test/one/default"
SECRET = ClusterSecret((b"the secret of this installation, now",), "a test")
SEALER = Sealer(SECRET)


class Host:
    def __init__(self, store: Store, sealing: Sealer = SEALER) -> None:
        self.agents = Agents([], None)
        self.stored = StoredAgents(self.agents, kept=store, records=store, clock=lambda: 1.0, sealing=sealing)

    async def put(self, agent_id: str = "writer", **config: Any) -> None:
        await self.stored.put(ADA, agent_id, {"runner": RUNNER, "config": config}, manifest_of(RUNNER, {}))


async def config_of(store: Store, agent_id: str = "writer") -> Any:
    """The settings as they were given, read from the record."""
    [row] = [row for row in await store.stored_agents() if row.agent_id == agent_id]
    kept = msgspec.json.decode(row.body)["config"]
    return {name: SEALER.opened(value, (row.workspace_id, agent_id, "config", name)) for name, value in kept.items()}


async def test_a_secret_that_was_changed_at_another_host_is_not_put_back(store: QuickStore) -> None:
    here, there = Host(store), Host(store)
    await here.put(key="old", tone="dry")
    await there.stored.load()
    await here.put(key="new", tone="dry")
    await there.put(key=MASK, tone="warm")
    assert await config_of(store) == {"key": "new", "tone": "warm"}


async def test_an_agent_that_another_host_just_made_can_be_deleted_here_and_one_it_deleted_cannot(
    store: QuickStore,
) -> None:
    here, there = Host(store), Host(store)
    await here.put()
    await there.stored.delete(ADA, "writer")
    assert await store.stored_agents() == []
    with pytest.raises(HostError, match="there is no agent 'writer'"):
        await here.stored.delete(ADA, "writer")


async def test_only_what_was_changed_is_read_again(store: QuickStore, monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[object]()
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


async def test_an_agent_that_is_made_while_others_are_taken_in_stays(
    store: QuickStore, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    store: QuickStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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


async def test_a_file_of_somebody_else_that_an_older_host_gave_an_agent_is_not_given_any_more(
    store: QuickStore,
) -> None:
    for user in ("ada", "bob"):
        await store.write([a_file(f"of-{user}", user)])
    body = msgspec.json.encode({"runner": RUNNER, "files": ["of-ada", "of-bob"]})
    await store.write([AgentRow("w", "writer", body, 1.0, "ada")])
    host = Host(store)
    await host.stored.load()
    assert [file.file_id for file in host.agents.stored("w")["writer"].policy.files] == ["of-ada"]


def a_file(artifact_id: str, user: str) -> ArtifactRow:
    return ArtifactRow(
        artifact_id=artifact_id,
        workspace_id="w",
        user_id=user,
        conversation_id=None,
        thread_id=None,
        run_id=None,
        agent_id=None,
        runner_id=None,
        source="platform",
        artifact_type="document",
        mime_type="text/plain",
        name=None,
        size=1,
        sha256="0" * 64,
        published=False,
        created_at=1.0,
        expires_at=None,
        metadata=b"",
    )


# --- what may be secret is sealed -------------------------------------------------------------------------------------

PLAIN = {
    "runner": RUNNER,
    "config": {"key": "sk-4711", "more": {"tokens": ["t-1", 2]}, "instructions": "be kind"},
    "mcp": [{"name": "s", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer b-1"}}],
}
WORDS = (b"sk-4711", b"t-1", b"Bearer b-1")


async def kept_of(store: Store) -> bytes:
    [row] = await store.stored_agents()
    return row.body


async def test_secrets_of_an_agent_are_not_on_record_in_the_clear_and_reach_it_all_the_same(store: QuickStore) -> None:
    here, there = Host(store), Host(store)
    await here.stored.put(ADA, "writer", PLAIN, None)
    body = await kept_of(store)
    assert [word for word in WORDS if word in body] == []
    assert b"be kind" in body
    await there.stored.load()
    assert there.agents.stored("w")["writer"].defined == here.agents.stored("w")["writer"].defined
    assert there.agents.stored("w")["writer"].config["key"] == "sk-4711"


async def test_what_an_earlier_version_kept_in_the_clear_is_sealed_when_it_is_read_and_who_wrote_it_stays(
    store: QuickStore,
) -> None:
    await store.write([AgentRow("w", "writer", msgspec.json.encode(PLAIN), 7.0, "ada")])
    host = Host(store)
    await host.stored.load()
    body = await kept_of(store)
    assert [word for word in WORDS if word in body] == []
    assert host.agents.stored("w")["writer"].config["key"] == "sk-4711"
    [row] = await store.stored_agents()
    assert (row.updated_at, row.updated_by) == (7.0, "ada")
    await host.stored.load()
    assert await kept_of(store) == body


async def test_a_sealed_secret_opens_for_no_other_agent_workspace_or_setting(store: QuickStore) -> None:
    await Host(store).put(key="sk-4711", other="x")
    [row] = await store.stored_agents()
    config = msgspec.json.decode(row.body)["config"]
    body = msgspec.json.encode({"runner": RUNNER, "config": {"key": config["other"], "other": config["key"]}})
    moved = [("w", "writer", body), ("w", "thief", row.body), ("elsewhere", "writer", row.body)]
    await store.write([AgentRow(workspace, name, body, 2.0, "eve") for workspace, name, body in moved])
    host = Host(store)
    await host.stored.load()
    for workspace, name, _ in moved:
        assert dict(host.agents.stored(workspace)[name].config) == {}


async def test_after_a_rotation_the_old_secret_opens_and_the_new_one_seals(store: QuickStore) -> None:
    await Host(store).put(key="sk-4711")
    rotated = ClusterSecret((b"a new secret that was made by rotation", *SECRET.parts), "a test")
    host = Host(store, Sealer(rotated))
    await host.stored.load()
    assert host.agents.stored("w")["writer"].config["key"] == "sk-4711"
    after = Host(store, Sealer(ClusterSecret(rotated.parts[:1], "a test")))
    await after.stored.load()
    assert after.agents.stored("w")["writer"].config["key"] == "sk-4711"


async def test_with_another_secret_only_what_was_sealed_is_lost_and_it_is_said(store: QuickStore) -> None:
    await Host(store).stored.put(ADA, "writer", PLAIN, None)
    before = await kept_of(store)
    host = Host(store, Sealer(ClusterSecret((b"somebody else's secret, quite another",), "a test")))
    with capture_logs() as logs:
        await host.stored.load()
    agent = host.agents.stored("w")["writer"]
    assert (agent.runner_id, agent.config["instructions"], "key" in agent.config) == (RUNNER, "be kind", False)
    [said] = [line for line in logs if line["action"] == "agents.load"]
    assert "cannot be opened" in said["event"]
    assert "config.key" in said["settings"]
    assert await kept_of(store) == before  # the right secret may come back
    with pytest.raises(HostError, match="is masked and was never set"):
        await host.put(key=MASK)
    await host.put(key="sk-new")
    assert host.agents.stored("w")["writer"].config["key"] == "sk-new"
