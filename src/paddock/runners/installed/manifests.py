"""Check the manifests of a plugin's runners: which may be listed, with which permissions. Pure but for the warnings.
One bad manifest never hides the others."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, cast

import structlog
from pydantic import ValidationError

from paddock.rules.access.host_only import marked
from paddock.rules.access.permissions import ABOVE_CEILING
from paddock_sdk.causes import complaint_of
from paddock_sdk.protocol.ids import RunnerId
from paddock_sdk.protocol.manifest import AgentRunnerManifest, AgentRunnerPermissions
from paddock_sdk.protocol.version import PROTOCOL_VERSION, is_compatible

MAX_RUNNERS = 100
MAX_BYTES = 64 * 1024
"""Of all manifests of a plugin together, as JSON."""
MAX_PROBLEM = 500

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Listing:
    """The runners of a plugin that may be listed, by id, and why the others may not, in plain words."""

    runners: dict[str, AgentRunnerManifest] = field(default_factory=dict[str, AgentRunnerManifest])
    problems: list[str] = field(default_factory=list[str])
    unlisted: dict[str, str] = field(default_factory=dict[str, str])
    """Those of the problems that name the id of a runner, by that id."""

    def refuse(self, plugin: str, runner_id: str, problem: str) -> None:
        self.problems.append(problem[:MAX_PROBLEM])
        self.unlisted[runner_id] = self.problems[-1]
        log.warning("a runner is not listed", action="runner.not_listed", plugin=plugin, reason=self.problems[-1])

    @property
    def why_none(self) -> str:
        """Return why there is no runner to offer; empty when there is one."""
        if self.runners:
            return ""
        return self.problems[0] if self.problems else "it offers no runners"


def check_manifests(plugin: str, offered: Sequence[Any], ceiling: AgentRunnerPermissions | None) -> Listing:
    """Sort what a plugin offers. What is not listed is warned of; `None` sets no ceiling."""
    listing, good, left = Listing(), list[AgentRunnerManifest](), MAX_BYTES
    for raw in offered[:MAX_RUNNERS]:
        try:
            size = len(json.dumps(raw))
            if size > left:
                raise ValueError(
                    f"its manifest is too large; those of a plugin have at most {MAX_BYTES} bytes together"
                )
            good.append(_checked(plugin, raw))
            left -= size
        except ValueError as problem:
            listing.refuse(plugin, _said(raw, "id"), f"runner {_called(raw)}: {problem}")
    times = Counter(manifest.id for manifest in good)
    for manifest in good:
        if times[manifest.id] == 1:
            listing.unlisted.pop(manifest.id, None)
            listing.runners[manifest.id] = _within(manifest, ceiling)
        else:
            said = f"{times[manifest.id]} manifests have the id {manifest.id!r}; give each an id of its own"
            listing.refuse(plugin, manifest.id, f"runner {manifest.name!r}: {said}")
    return listing


def _said(raw: Any, key: str) -> str:
    value = cast("dict[str, Any]", raw).get(key) if isinstance(raw, dict) else None
    return value if isinstance(value, str) else ""


def _called(raw: Any) -> str:
    return next((repr(said[:60]) for key in ("name", "id") if (said := _said(raw, key))), "without a name")


def _checked(plugin: str, raw: Any) -> AgentRunnerManifest:
    if not isinstance(raw, dict):
        raise ValueError("its manifest is not an object")  # noqa: TRY004 - every problem here is one of a value
    version = cast("dict[str, Any]", raw).get("protocol_version", PROTOCOL_VERSION)
    if not isinstance(version, str):
        raise ValueError(f'its protocol_version must be a string, such as "{PROTOCOL_VERSION}"')  # noqa: TRY004
    if not is_compatible(version):
        raise ValueError(
            f"its manifest is of protocol version {str(version)[:20]!r}, this host speaks {PROTOCOL_VERSION!r}"
        )
    try:
        manifest = AgentRunnerManifest.model_validate(raw)
        manifest = manifest.model_copy(update={"config_schema": marked(manifest.config_schema)})
    except ValidationError as problem:
        raise ValueError(in_plain_words(problem)) from None
    owner = str(RunnerId.parse(manifest.id).plugin)
    if owner != plugin:
        raise ValueError(f"its id {manifest.id!r} belongs to {owner}, not to the plugin {plugin}")
    for name in unknown_permissions(manifest.permissions.model_extra or {}):
        log.warning(
            "a manifest asks for an unknown permission",
            action="runner.unknown_permission",
            runner_id=manifest.id,
            permission=name,
        )
    return manifest


# --- permissions ------------------------------------------------------------------------------------------------------


def read_permissions(raw: Any) -> AgentRunnerPermissions:
    """A ceiling as a person wrote it: nothing in it may be unknown. Raises ValueError with a sentence."""
    if not isinstance(raw, dict):
        raise ValueError("permissions must be an object")  # noqa: TRY004 - every problem here is one of a value
    given = cast("dict[str, Any]", raw)
    for name in unknown_permissions(given):
        raise ValueError(f"permissions knows no {name}")
    try:
        return AgentRunnerPermissions.model_validate(given)
    except ValidationError as problem:
        raise ValueError(f"permissions.{in_plain_words(problem)}") from None


def unknown_permissions(given: Mapping[str, Any]) -> list[str]:
    """The keys that are none, each with the one that was probably meant."""
    known = list(AgentRunnerPermissions.model_fields)
    near = {name: get_close_matches(name, known, n=1) for name in given if name not in known}
    return [f"{name[:60]!r}" + (f" (did you mean {meant[0]}?)" if meant else "") for name, meant in near.items()]


def in_plain_words(problem: ValidationError) -> str:
    """The first thing wrong, as a place and a sentence."""
    first = problem.errors()[0]
    place = ".".join(str(part) for part in first["loc"]) or "it"
    match first["type"]:
        case "missing":
            return f"{place} is missing"
        case "literal_error":
            expected = first.get("ctx", {}).get("expected", "")
            return f"{place}: {str(first['input'])[:60]!r} is not known; known are {expected.replace(' or ', ', ')}"
        case _:
            return f"{place}: {complaint_of(first)}"


def _within(manifest: AgentRunnerManifest, ceiling: AgentRunnerPermissions | None) -> AgentRunnerManifest:
    asked = manifest.permissions
    given = asked if ceiling is None else intersect(asked, ceiling)
    left_out = _difference(asked, given)
    if left_out:
        log.warning(
            "a manifest asks for more than was agreed to",
            action="runner.above_ceiling",
            runner_id=manifest.id,
            left_out=left_out,
        )
    metadata = {name: value for name, value in manifest.metadata.items() if name != ABOVE_CEILING}
    if left_out:
        metadata[ABOVE_CEILING] = left_out
    return manifest.model_copy(update={"permissions": given, "metadata": metadata})


def _difference(asked: AgentRunnerPermissions, given: AgentRunnerPermissions) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in AgentRunnerPermissions.model_fields:
        mine, theirs = getattr(asked, name), getattr(given, name)
        if mine != theirs:
            words = cast("list[str]", mine) if isinstance(mine, list) else None
            found[name] = mine if words is None else [word for word in words if word not in theirs]
    return found


def lower(one: AgentRunnerPermissions | None, other: AgentRunnerPermissions | None) -> AgentRunnerPermissions | None:
    """The ceiling of two; `None` is the open sky."""
    if one is None or other is None:
        return other if one is None else one
    return intersect(one, other)


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
