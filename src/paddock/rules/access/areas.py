"""Keys of the blobs in a storage area: opaque, and different for every owner that must be kept apart. Pure."""

from collections.abc import Mapping
from hashlib import sha256

import msgspec

from paddock.rules.access.permissions import Grant

UPLOADS = "upload:"
_encode = msgspec.json.Encoder().encode


def plugin_of(runner_id: str) -> str:
    """author/name of a runner id `plugin:author/name/runner`."""
    return runner_id.removeprefix("plugin:").rsplit("/", 1)[0]


def area_key(area: str, grant: Grant) -> str | None:
    """Per workspace, and within it: one for each plugin, one for all, one for each agent. None for no known area."""
    at = grant.scope
    owners: Mapping[str, str] = {"plugin": plugin_of(grant.runner_id), "workspace": "", "binding": at.agent_id}
    owner = owners.get(area)
    if owner is None:
        return None
    whole = {"version": 1, "area": area, "workspace_id": at.workspace_id, "owner": owner}
    return f"{area}:{sha256(_encode(whole)).hexdigest()}"


def upload_area(area: str, grant: Grant) -> str:
    """Return the area where the parts of a value wait until it is whole; each run has its own."""
    return f"{UPLOADS}{grant.scope.run_id}:{area}"
