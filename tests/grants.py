"""Grants for tests of rooms that work on behalf of a run."""

from collections.abc import Mapping
from typing import Any

from paddock.rules.access.permissions import Grant, RunScope


def a_grant(
    *,
    models: Mapping[str, frozenset[str]] | None = None,
    tools: Mapping[str, frozenset[str]] | None = None,
    deadline_at: float = 1e12,
    run_id: str = "run-1",
    user_id: str = "ann",
    workspace_id: str = "w",
    **more: Any,
) -> Grant:
    return Grant(
        scope=RunScope(run_id, workspace_id, user_id, "agent", "conversation"),
        runner_id="plugin:a/b/c",
        actions=frozenset({"models.invoke", "models.stream", "models.rerank", "tools.call", "tools.get_detail"}),
        state_scopes=frozenset(),
        storage_areas=frozenset(),
        deadline_at=deadline_at,
        models=models or {},
        tools=tools or {},
        **more,
    )
