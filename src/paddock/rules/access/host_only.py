"""Settings that only an operator may make: those that name a program, a path of the host's machine or an address.

An administrator of a workspace makes agents over the API; a program they name would run as the host's user, and an
address they name would be called from inside the host's network. Pure; addresses are looked up when they are called.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from paddock.rules.agents.config import ALIASES, ALWAYS, Form, leaves
from paddock.rules.values import refusing
from paddock_sdk.outbound import is_public
from paddock_sdk.protocol.ids import RunnerId
from paddock_sdk.protocol.manifest import AgentRunnerManifest, DynamicFormItemSchema

IN_FILE = "write this agent in the agents file (agents.yaml)"
OPEN_RUNNER = "or have the runner opened in paddock.toml (api_agents.runners)"
OPEN_ADDRESS = "or have the address opened in paddock.toml (api_agents.urls)"

_ADDRESS = re.compile(
    r"(https?)://([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::(\d{1,5}))?(?:[/?#][!-~]*)?",
    re.IGNORECASE | re.ASCII,
)
"""Read strictly: what this and an HTTP client could read differently is no address here."""
_PATTERN = re.compile(r"(https?)://(\*|(?:\*\.)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)(?::(\d{1,5}|\*))?/?", re.ASCII)
_PORTS = {"http": 80, "https": 443}
_LOOKS_LIKE_AN_ADDRESS = re.compile(r"\s*[a-z][a-z0-9+.-]*://", re.IGNORECASE | re.ASCII)

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", re.ASCII)


def _words(name: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORDS.findall(name))


ADDRESS_WORDS = _words(
    "address addresses addr base baseurl endpoint endpoints host hostname hosts ip origin proxy proxies server servers "
    "site socket uri uris url urls webhook webhooks"
)
PROGRAM_WORDS = _words(
    "arg args argument arguments argv bin binary cmd command commands cwd dir directories directory dirs env "
    "environment exe exec executable file filename files folder folders home interpreter mount mounts path paths "
    "program programs root script scripts shell volume volumes"
)
HARMLESS_TYPES = frozenset(
    [
        "boolean",
        "integer",
        "number",
        "llm-model-selector",
        "rerank-model-selector",
        "embedding-model-selector",
        "model-fallback-selector",
        "knowledge-base-multi-selector",
    ]
)
"""Kinds of fields whose values cannot name anything outside the host."""


_is_pattern = refusing("must be an origin such as https://api.example.com or https://*.example.com", _PATTERN.fullmatch)


def _is_runner(value: str) -> str:
    RunnerId.parse(value)
    return value


class ApiAgents(BaseModel):
    """Host-only settings that agents made over the API may use."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    runners: list[Annotated[str, AfterValidator(_is_runner)]] = Field(
        default=[], max_length=100, description="Runners all of whose settings may be made over the API."
    )
    urls: list[Annotated[str, AfterValidator(_is_pattern)]] = Field(
        default=[], max_length=100, description="Origins that such agents may name; * stands for names before a dot."
    )


NOTHING_OPENED = ApiAgents()


def is_host_only(field: DynamicFormItemSchema) -> bool:
    """Read the runner's mark on the field; without one, judge by the field's name."""
    if field.host_only is not None:
        return field.host_only
    return not _is_harmless(field) and _sounds_so(field.name)


def marked(form: Form) -> list[DynamicFormItemSchema]:
    """The form with a mark on fields that have none and sound as if they needed one. Others are judged by value."""
    return [field.model_copy(update={"host_only": True}) if is_host_only(field) else field for field in form]


def named_outside(config: Mapping[str, Any], form: Form) -> dict[str, Any]:
    """Those of the settings that name a program, a path or an address."""
    fields = {field.name: field for field in form}
    return {
        name: value for name, value in config.items() if name not in ALWAYS and _names(fields.get(name), name, value)
    }


def _names(field: DynamicFormItemSchema | None, name: str, value: object) -> bool:
    if value in (None, "", [], {}) or (field is not None and value == field.default):
        return False
    if field is None:
        return _sounds_so(name) or _names_within(value)
    if field.host_only is not None or _is_harmless(field):
        return bool(field.host_only)
    return _sounds_so(name) or _names_within(value)


def _names_within(value: object) -> bool:
    """Return true if the value holds an address, or a key that sounds like a program, a path or an address."""
    return any(
        (isinstance(leaf, str) and _LOOKS_LIKE_AN_ADDRESS.match(leaf) is not None)
        or any(isinstance(part, str) and _sounds_so(part) for part in place)
        for place, leaf in leaves(value)
    )


def _is_harmless(field: DynamicFormItemSchema) -> bool:
    kind = ALIASES.get(field.type, field.type)
    return kind in HARMLESS_TYPES or (kind == "select" and bool(field.options))


def _sounds_so(name: str) -> bool:
    return bool(_words(name) & (ADDRESS_WORDS | PROGRAM_WORDS))


def refused_over_api(
    manifest: AgentRunnerManifest, config: Mapping[str, Any], mcp: Sequence[Mapping[str, Any]], opened: ApiAgents
) -> list[str]:
    """Return one sentence for each reason that an agent with this config cannot be made over the API."""
    if manifest.id in opened.runners:
        return []
    if manifest.host_only:
        return [f"what agents of {manifest.id} do, they do on the host's machine: {IN_FILE}, {OPEN_RUNNER}"]
    fields = {field.name: field for field in manifest.config_schema}
    outside = named_outside(config, manifest.config_schema)
    found = [
        _refused(f"config.{name}", value, opened, _is_address(name, fields.get(name)))
        for name, value in outside.items()
    ]
    found += [_refused(f"mcp.{number}.url", server["url"], opened, address=True) for number, server in enumerate(mcp)]
    return [problem for problem in found if problem is not None]


def _refused(place: str, value: object, opened: ApiAgents, address: bool) -> str | None:
    if not address:
        return f"{place} names a program or a path of the host's machine: {IN_FILE}, {OPEN_RUNNER}"
    if all(_is_opened(leaf, opened) for _, leaf in leaves(value)):
        return None
    return f"{place} names an address that is not open to agents made over the API: {IN_FILE}, {OPEN_ADDRESS}"


def _is_address(name: str, field: DynamicFormItemSchema | None) -> bool:
    words = _words(name)
    if words & PROGRAM_WORDS:
        return False
    return bool(words & ADDRESS_WORDS) or field is None or field.host_only is None


def _is_opened(address: object, opened: ApiAgents) -> bool:
    found = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
    if found is None:
        return False
    scheme, host, port = found[1].lower(), found[2].lower(), _port(found[1].lower(), found[3])
    return (not _is_number(host) or is_public(host.strip("[]"))) and any(
        _fits(scheme, host, port, pattern) for pattern in opened.urls
    )


def _is_number(host: str) -> bool:
    return host.startswith("[") or host.replace(".", "").isdigit()


def _port(scheme: str, written: str | None) -> int:
    return int(written) if written else _PORTS[scheme]


def _fits(scheme: str, host: str, port: int, pattern: str) -> bool:
    known = _PATTERN.fullmatch(pattern)
    if known is None or known[1] != scheme or (known[3] != "*" and _port(scheme, known[3]) != port):
        return False
    name = known[2]
    return name in ("*", host) or (name.startswith("*.") and host.endswith(name[1:]))
