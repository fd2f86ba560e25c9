"""What an AG-UI client may expect of an agent here, in AG-UI's own shape; what is ours beside it is under `custom`."""

from collections.abc import Mapping
from typing import Any

from paddock.host.agents.agents import AgentBinding

OURS = {
    "connect": "POST {endpoint}/connect: how the thread stands, then its live run",
    "rejoin": "GET /api/v1/agent/runs/{runId}/events with Last-Event-ID",
    "cancel": "POST /api/v1/agent/runs/{runId}/cancel",
    "history": "GET /api/v1/agent/history",
    "branches": "leave out or change a user message: the conversation goes on from there",
    "attachments": "POST /api/v1/agent/attachments",
}


def capabilities(binding: AgentBinding | None) -> Mapping[str, Any]:
    """What is not said is not declared, which is not the same as absent."""
    named = {} if binding is None else {"name": binding.label, "description": binding.description}
    shows_tools = binding is None or binding.extras.frontend_tools is not False
    return {
        "identity": {**named, "type": "paddock"},
        "transport": {"streaming": True, "websocket": False, "httpBinary": False, "resumable": False},
        "tools": {"supported": True, "parallelCalls": True, "clientProvided": shows_tools},
        "state": {"snapshots": False, "deltas": False},
        "multiAgent": {"supported": True, "handoffs": True},
        "multimodal": {"input": {"image": True, "audio": True, "video": True, "pdf": True, "file": True}},
        "humanInTheLoop": {"supported": True, "approvals": True, "interrupts": True, "approveWithEdits": False},
        "custom": {"paddock": OURS},
    }
