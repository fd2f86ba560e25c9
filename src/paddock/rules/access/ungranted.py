"""What a runner is told of a call that its run was not granted: the permission that opens it, and who did not give it.

That is about the run's own authority and tells nothing of what exists. Pure.
"""

from collections.abc import Mapping
from typing import Final

from paddock.rules.access.permissions import OPENS, PLATFORM_ACTIONS, STEERING_ACTIONS, Grant

NOT_ASKED: Final = "its manifest does not ask for {permission}"
WHY: Mapping[str, str] = {
    "manifest": "its manifest asks for {permission}, but its context says that it does not use it ({context})",
    "plugin_file": "its manifest asks for {permission}, the plugin file does not allow it",
    "agent": "its manifest and the plugin file have {permission}, the agent does not allow it",
    "host": "it asks for {permission}, which this host does not offer",
}
CONTEXT: Mapping[str, str] = {
    "history.page": "supports_history_pull",
    "history.search": "supports_history_search",
    **dict.fromkeys(OPENS["artifacts", "metadata"] | OPENS["artifacts", "read"], "supports_artifact_pull"),
}


def permission_for(method: str) -> str:
    """What opens the call, as it is written in a manifest; of several that do, the one that opens least."""
    if method in STEERING_ACTIONS:
        return "capabilities.steering"
    if method in PLATFORM_ACTIONS:
        return "permissions.platform_api with the name of the action"
    found = next((key for key, calls in OPENS.items() if method in calls), None)
    return f'permissions.{found[0]}: ["{found[1]}"]' if found else "what opens it"


def why_not(grant: Grant, method: str) -> str:
    permission, layer = permission_for(method), grant.refused.get(method)
    why = WHY.get(layer, NOT_ASKED) if layer else NOT_ASKED
    told = why.format(permission=permission, context=f"context.{CONTEXT.get(method, '')}")
    return f"this run was not granted {method}: {told}. Manifest, plugin file and agent must all allow it"
