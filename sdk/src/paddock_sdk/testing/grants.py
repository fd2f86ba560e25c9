"""Grants of the pretend host: everything the manifest asks for, and nothing besides."""

from collections.abc import Mapping
from typing import Any

from paddock_sdk.protocol.host_calls import HOST_CALLS
from paddock_sdk.protocol.manifest import AgentRunnerManifest


def is_granted(manifest: AgentRunnerManifest, method: str, params: Mapping[str, Any]) -> bool:
    """State needs any storage area, storage the very one, a platform action its name, steering its capability."""
    may = manifest.permissions.to_wire()
    if method == "steering.pull":
        return manifest.capabilities.steering
    if method == "platform.request_action":
        return params["action"] in may["platform_api"]
    if "area" in params:
        return params["area"] in may["storage"]
    return any(literal in may[section] for section, literal in HOST_CALLS[method].permissions)


def needed_for(method: str) -> str:
    """Name the manifest entry that opens a call, as an author writes it."""
    if method == "steering.pull":
        return "capabilities.steering"
    if method == "platform.request_action":
        return "permissions.platform_api with the name of the action"
    section, literal = HOST_CALLS[method].permissions[0]
    return f'permissions.{section}: ["{literal}"]'
