"""Grants of the pretend host: everything the manifest asks for, and nothing besides."""

from collections.abc import Mapping
from typing import Any

from paddock_sdk.protocol.manifest import AgentRunnerManifest

NEEDS: Mapping[str, tuple[str, str]] = {
    "models.invoke": ("models", "invoke"),
    "models.stream": ("models", "stream"),
    "models.rerank": ("models", "rerank"),
    "tools.get_detail": ("tools", "detail"),
    "tools.call": ("tools", "call"),
    "knowledge.retrieve": ("knowledge_bases", "retrieve"),
    "history.page": ("history", "page"),
    "history.search": ("history", "search"),
    "events.get": ("events", "get"),
    "events.page": ("events", "page"),
    "artifacts.metadata": ("artifacts", "metadata"),
    "artifacts.read_range": ("artifacts", "read"),
    "artifacts.open_stream": ("artifacts", "read"),
    "artifacts.create": ("artifacts", "create"),
}
"""The permission a call needs, where one literal is enough to say it."""


def is_granted(manifest: AgentRunnerManifest, method: str, params: Mapping[str, Any]) -> bool:
    """State needs any storage area, storage the very one, a platform action its name, steering its capability."""
    may = manifest.permissions.to_wire()
    if method in NEEDS:
        section, literal = NEEDS[method]
        return literal in may[section]
    if method == "steering.pull":
        return manifest.capabilities.steering
    if method == "platform.request_action":
        return params["action"] in may["platform_api"]
    return params["area"] in may["storage"] if "area" in params else bool(may["storage"])


def needed_for(method: str) -> str:
    """Name the manifest entry that opens a call, as an author writes it."""
    if method == "steering.pull":
        return "capabilities.steering"
    if method == "platform.request_action":
        return "permissions.platform_api with the name of the action"
    section, literal = NEEDS.get(method, ("storage", "plugin"))
    return f'permissions.{section}: ["{literal}"]'
