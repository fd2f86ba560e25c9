"""A run context as a real host would build it, for runs in tests."""

import time
from collections.abc import Mapping
from typing import Any, Protocol

from paddock_sdk.protocol.manifest import AgentRunnerManifest
from paddock_sdk.protocol.run_context import CONTEXT_API_CALLS
from paddock_sdk.testing.grants import is_granted

DEADLINE_SECONDS = 60.0


class Kept(Protocol):
    """Stored values that a made-up context mentions."""

    @property
    def state(self) -> Mapping[str, Mapping[str, Any]]: ...
    @property
    def history_count(self) -> int: ...


def a_context(run_id: str, text: str, manifest: AgentRunnerManifest, kept: Kept, **parts: Any) -> dict[str, Any]:
    """The context of one message; `parts` replace whole sections (`config`, `input`, `resources`, ...)."""
    now = time.time()
    return {
        "run_id": run_id,
        "trigger": {"type": "message.received", "source": "api", "timestamp": int(now)},
        "event": {"event_id": f"event-of-{run_id}", "event_type": "message.received", "source": "api"},
        "conversation": {"conversation_id": "conversation", "bot_id": "agent", "workspace_id": "workspace"},
        "actor": {"actor_type": "user", "actor_id": "user"},
        "input": {"text": text, "contents": [{"type": "text", "text": text}]},
        "delivery": {"surface": "test", "supports_streaming": True},
        "resources": {},
        "context": _access(manifest, kept.history_count),
        "state": {scope: dict(values) for scope, values in kept.state.items()},
        "runtime": {"host": "pretend", "trace_id": run_id, "deadline_at": now + DEADLINE_SECONDS},
        **parts,
    }


def _access(manifest: AgentRunnerManifest, earlier: int) -> dict[str, Any]:
    return {
        "conversation_id": "conversation",
        "latest_cursor": str(earlier + 1),
        "has_history_before": earlier > 0,
        "inline_policy": {"mode": "current_event", "delivered_count": 1},
        "available_apis": {name: is_granted(manifest, method, {}) for name, method in CONTEXT_API_CALLS.items()},
    }
