"""What a plugin's runners say about themselves, checked: who may be listed, and with which permissions. Pure but for
the warnings. One bad manifest never hides the others.
"""

from collections.abc import Sequence
from typing import Any, cast

import structlog
from pydantic import ValidationError

from paddock_sdk.protocol.ids import RunnerId
from paddock_sdk.protocol.manifest import AgentRunnerManifest, AgentRunnerPermissions
from paddock_sdk.protocol.version import PROTOCOL_VERSION, is_compatible

MAX_RUNNERS = 100

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def check_manifests(
    plugin: str, offered: Sequence[Any], ceiling: AgentRunnerPermissions | None
) -> dict[str, AgentRunnerManifest]:
    """The runners of a plugin that may be listed, by id. The others are warned of; `None` sets no ceiling."""
    listed: dict[str, AgentRunnerManifest] = {}
    for raw in offered[:MAX_RUNNERS]:
        try:
            manifest = _checked(plugin, raw)
        except ValueError as problem:
            log.warning("runner.not_listed", plugin=plugin, reason=str(problem)[:500])
            continue
        listed[manifest.id] = manifest if ceiling is None else _within(manifest, ceiling)
    return listed


def _checked(plugin: str, raw: Any) -> AgentRunnerManifest:
    version = cast("dict[str, Any]", raw).get("protocol_version", PROTOCOL_VERSION) if isinstance(raw, dict) else None
    if not isinstance(version, str) or not is_compatible(version):
        raise ValueError(
            f"its manifest is of protocol version {str(version)[:20]!r}, this host speaks {PROTOCOL_VERSION!r}"
        )
    manifest = AgentRunnerManifest.model_validate(_without_unknown_permissions(plugin, cast("dict[str, Any]", raw)))
    owner = str(RunnerId.parse(manifest.id).plugin)
    if owner != plugin:
        raise ValueError(f"runner id {manifest.id!r} belongs to {owner}, not to the launched plugin {plugin}")
    return manifest


def _without_unknown_permissions(plugin: str, raw: dict[str, Any]) -> dict[str, Any]:
    """A permission we do not know cannot be granted: it is dropped with a warning, the runner stays."""
    asked = raw.get("permissions")
    if not isinstance(asked, dict):
        return raw
    kept: dict[str, Any] = {}
    for key, value in cast("dict[str, Any]", asked).items():
        try:
            kept |= AgentRunnerPermissions.model_validate({key: value}).model_dump(include={key})
        except ValidationError:
            kept |= {key: _known(key, value)}
            log.warning("runner.unknown_permission", plugin=plugin, permission=key, asked=str(value)[:200])
    return raw | {"permissions": kept}


def _known(key: str, value: Any) -> list[Any]:
    def allowed(item: Any) -> bool:
        try:
            AgentRunnerPermissions.model_validate({key: [item]})
        except ValidationError:
            return False
        return True

    return [item for item in cast("list[Any]", value) if allowed(item)] if isinstance(value, list) else []


def _within(manifest: AgentRunnerManifest, ceiling: AgentRunnerPermissions) -> AgentRunnerManifest:
    """The manifest with no more permissions than a person consented to."""
    asked = manifest.permissions
    given = intersect(asked, ceiling)
    if given == asked:
        return manifest
    log.warning("runner.above_ceiling", runner_id=manifest.id, asked=asked.model_dump(), given=given.model_dump())
    return manifest.model_copy(update={"permissions": given})


def intersect(asked: AgentRunnerPermissions, ceiling: AgentRunnerPermissions) -> AgentRunnerPermissions:
    """Field by field, what both allow. Of two words the one that is not the default must be said by both."""
    allowed: dict[str, Any] = {}
    for name in AgentRunnerPermissions.model_fields:
        mine, theirs = getattr(asked, name), getattr(ceiling, name)
        if isinstance(mine, list):
            allowed[name] = [item for item in cast("list[str]", mine) if item in theirs]
        elif mine == theirs:
            allowed[name] = mine
    return AgentRunnerPermissions.model_validate(allowed)
