"""Write an agent once and run it on a Paddock host. These names are the author's whole vocabulary.

    from paddock_sdk import AgentRunner, HostApi, RunContext, message, serve

Each name is loaded when it is first used, so `paddock_sdk.protocol` can be imported without the rest.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paddock_sdk.host_api import HostApi, HostStream
    from paddock_sdk.host_call_error import HostCallError
    from paddock_sdk.protocol.manifest import AgentRunnerCapabilities, AgentRunnerPermissions, DynamicFormItemSchema
    from paddock_sdk.results import (
        Result,
        artifact_created,
        completed,
        delta,
        failed,
        handover,
        message,
        request_action,
        state_updated,
        step_finished,
        step_started,
        title,
        tool_completed,
        tool_started,
    )
    from paddock_sdk.runner import AgentRunner, Results, RunContext
    from paddock_sdk.serve import serve

__version__ = "0.1.0"

_HOMES = {
    "AgentRunner": "runner",
    "AgentRunnerCapabilities": "protocol.manifest",
    "AgentRunnerPermissions": "protocol.manifest",
    "DynamicFormItemSchema": "protocol.manifest",
    "HostApi": "host_api",
    "HostCallError": "host_call_error",
    "HostStream": "host_api",
    "Result": "results",
    "Results": "runner",
    "RunContext": "runner",
    "artifact_created": "results",
    "completed": "results",
    "delta": "results",
    "failed": "results",
    "handover": "results",
    "message": "results",
    "request_action": "results",
    "serve": "serve",
    "state_updated": "results",
    "step_finished": "results",
    "step_started": "results",
    "title": "results",
    "tool_completed": "results",
    "tool_started": "results",
}

__all__ = [
    "AgentRunner",
    "AgentRunnerCapabilities",
    "AgentRunnerPermissions",
    "DynamicFormItemSchema",
    "HostApi",
    "HostCallError",
    "HostStream",
    "Result",
    "Results",
    "RunContext",
    "artifact_created",
    "completed",
    "delta",
    "failed",
    "handover",
    "message",
    "request_action",
    "serve",
    "state_updated",
    "step_finished",
    "step_started",
    "title",
    "tool_completed",
    "tool_started",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'paddock_sdk' has no attribute {name!r}")
    value = getattr(import_module(f"paddock_sdk.{home}"), name)
    globals()[name] = value
    return value
