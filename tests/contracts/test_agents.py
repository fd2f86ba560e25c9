"""What every store promises about agents made over the API."""

import pytest

from contracts.builders import a_decision
from paddock.ports import Store
from paddock.rules.rows.rows import AgentRow

pytestmark = pytest.mark.anyio


def an_agent(name: str, body: bytes = b'{"runner":"plugin:a/b/c"}', workspace: str = "w") -> AgentRow:
    return AgentRow(workspace, name, body, 1.5, "ann")


async def test_an_agent_is_kept_per_workspace_and_written_again_whole(store: Store) -> None:
    await store.write([an_agent("b"), an_agent("a"), an_agent("a", workspace="v"), a_decision()])
    await store.write([AgentRow("w", "a", b"{}", 2.5, "bob")])
    assert list(await store.stored_agents()) == [
        an_agent("a", workspace="v"),
        AgentRow("w", "a", b"{}", 2.5, "bob"),
        an_agent("b"),
    ]
    assert await store.stored_agent("v", "a") == an_agent("a", workspace="v")
    assert await store.stored_agent("v", "b") is None


async def test_an_agent_without_a_body_is_gone_and_only_that_one(store: Store) -> None:
    await store.write([an_agent("a"), an_agent("b"), an_agent("a", workspace="v")])
    await store.write([an_agent("a", b"")])
    assert [(row.workspace_id, row.agent_id) for row in await store.stored_agents()] == [("v", "a"), ("w", "b")]
    await store.write([an_agent("nobody", b"")])


async def test_the_last_word_on_an_agent_in_one_commit_counts(store: Store) -> None:
    await store.write([an_agent("a"), an_agent("a", b""), an_agent("b"), an_agent("b", b"{}")])
    assert list(await store.stored_agents()) == [an_agent("b", b"{}")]
