"""Load settings from the command line, the environment and a TOML file, and explain a wrong one.

Nothing here creates or opens anything but that TOML file, and the files whose soundness it checks.
"""

import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from paddock.rules.access.host_only import ApiAgents
from paddock.rules.agents.addresses import is_private_way, without_secrets
from paddock.rules.agents.specs import McpServerSpec, ModelSpec, PlatformSpec
from paddock.settings.kinds import absolute
from paddock.settings.shape import Settings, allowed_values
from paddock_sdk.causes import complaint_of

PREFIX = "PADDOCK_"
CONFIG_NAME = "paddock.toml"
NOT_SETTINGS = frozenset({"API_KEY", "CONFIG", "DEBUG", "MARK", "PLUGIN", "SECRET", "URL"})
"""`PADDOCK_*` names that mean something to us and are no settings of the host."""
PATHS = frozenset(
    {"data", "agents", "plugins", "tools", "working_directories", "jwt_secret_file", "jwt_keys", "signing_keys"}
)
MIN_SECRET_BYTES = 32


class SettingsError(Exception):
    """Something outside is set wrongly. The text is one sentence for the person who set it."""


@dataclass(frozen=True, slots=True)
class _Origin:
    value: object
    where: str


def load(
    flags: Mapping[str, object] | None = None,
    *,
    config: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Settings from all sources. `flags` are those given on the command line; None values count as not given."""
    environ = os.environ if environ is None else environ
    given = _from_flags(flags or {})
    env = _from_environment(environ)
    path = config or (Path(environ[PREFIX + "CONFIG"]) if environ.get(PREFIX + "CONFIG") else None)
    file = _from_file(path) if path is not None else _from_data_directory({**env, **given})
    return _with_sound_tokens(_validate({**file, **env, **given}))


def _with_sound_tokens(settings: Settings) -> Settings:
    """Half a set-up of tokens would let strangers in, or nobody."""
    keys, secret = settings.issuer_keys, settings.jwt_secret_file
    if secret is not None and len(secret.read_bytes().strip()) < MIN_SECRET_BYTES:
        raise SettingsError(f"The secret in {secret} is too short to be safe: it must have {MIN_SECRET_BYTES} bytes.")
    if keys is not None and (settings.jwt_issuer is None or settings.jwt_audience is None):
        alone = "jwt_keys needs jwt_issuer and" if settings.jwt_keys is not None else "jwt_issuer needs"
        raise SettingsError(f"{alone} jwt_audience beside it: tokens that the issuer made for others would count.")
    if settings.jwt_keys is not None and (problem := _problem_with_keys(settings.jwt_keys)) is not None:
        raise SettingsError(f"jwt_keys = {_shown(settings.jwt_keys)} is not allowed: {problem}.")
    if settings.jwt_keys is None and keys is not None and not is_private_way(keys):
        raise SettingsError(
            f"jwt_issuer = {_shown(settings.jwt_issuer)} is not allowed alone: to find its keys it must be an "
            "https:// address; else say where they are (jwt_keys), or give the secret (jwt_secret_file)."
        )
    return settings


def _problem_with_keys(source: str) -> str | None:
    """Refuse keys from a place where somebody could change them on their way."""
    if is_private_way(source):
        return None
    if "://" in source:
        return "it must be an https:// address or the path of a file"
    return None if Path(source).expanduser().is_file() else "no such file"


def unknown_variables(environ: Mapping[str, str] | None = None) -> list[str]:
    """One sentence for each `PADDOCK_*` variable that sets nothing: most likely a typing mistake."""
    environ = os.environ if environ is None else environ
    known = {PREFIX + name.upper() for name in Settings.model_fields} | {PREFIX + name for name in NOT_SETTINGS}
    strange = sorted(name for name in environ if name.startswith(PREFIX) and name not in known)
    return [f"{name} is set in the environment but is no setting{_meant(name, known)}" for name in strange]


def _from_flags(flags: Mapping[str, object]) -> dict[str, _Origin]:
    return {
        name: _Origin(value, f"--{name.replace('_', '-')}")
        for name, value in flags.items()
        if value not in (None, [], ())
    }


def _from_environment(environ: Mapping[str, str]) -> dict[str, _Origin]:
    names = {name: PREFIX + name.upper() for name in Settings.model_fields}
    return {name: _Origin(environ[key], key) for name, key in names.items() if environ.get(key)}


def _from_data_directory(stronger: Mapping[str, _Origin]) -> dict[str, _Origin]:
    data = stronger["data"].value if "data" in stronger else Settings.model_fields["data"].default
    path = absolute(Path(str(data))) / CONFIG_NAME
    table = _from_file(path) if path.is_file() else {}
    if "data" in table:
        raise SettingsError(
            f"data cannot be set in {path}, because that file was found through it; use --data instead."
        )
    return table


def _from_file(path: Path) -> dict[str, _Origin]:
    path = absolute(path)
    table = _read_toml(path)
    for name in table:
        if name not in Settings.model_fields:
            raise SettingsError(f"{name} in {path} is no setting{_meant(name, Settings.model_fields)}.")
    return {name: _Origin(_from_here(name, value, path.parent), str(path)) for name, value in table.items()}


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        cure = "Name another with --config, or let this user read it."
        raise SettingsError(f"Cannot read the settings file {path}: {error.strerror}. {cure}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"The settings file {path} is not valid TOML: {error}.") from error


def _from_here(name: str, value: object, directory: Path) -> object:
    """A relative path in a file means relative to that file, wherever the host is started."""
    if name == "models" and isinstance(value, dict):
        return {key: _keys_from_here(spec, directory) for key, spec in cast("dict[str, object]", value).items()}
    if name == "tools" and isinstance(value, str) and not value.endswith(".py"):
        return value  # the name of a module
    if name not in PATHS or (name == "jwt_keys" and "://" in str(value)):
        return value
    if isinstance(value, list):
        return [_from_here(name, item, directory) for item in cast("list[object]", value)]
    return str(directory / Path(value).expanduser()) if isinstance(value, str) else value


def _keys_from_here(spec: object, directory: Path) -> object:
    known = cast("dict[str, object]", spec) if isinstance(spec, dict) else {}
    key = known.get("key")
    if not isinstance(key, str) or not key.startswith("file:"):
        return cast("object", spec)
    return {**known, "key": f"file:{directory / Path(key.removeprefix('file:')).expanduser()}"}


def _validate(origins: Mapping[str, _Origin]) -> Settings:
    try:
        return Settings.model_validate({name: origin.value for name, origin in origins.items()})
    except ValidationError as error:
        raise SettingsError(_sentence(error, origins)) from None


TABLES: Mapping[str, type[BaseModel]] = {
    "models": ModelSpec,
    "mcp_servers": McpServerSpec,
    "platforms": PlatformSpec,
    "api_agents": ApiAgents,
}


def _sentence(error: ValidationError, origins: Mapping[str, _Origin]) -> str:
    first = error.errors(include_url=False)[0]
    name = str(first["loc"][0]) if first["loc"] else ""
    where = origins[name].where if name in origins else "the default"
    if len(first["loc"]) > 1 and name in TABLES:
        return _about_a_table(first, where, TABLES[name])
    allowed = allowed_values(name)
    return f"{name} = {_shown(first['input'])} (from {where}) is not allowed: it must be {allowed}."


def _about_a_table(first: ErrorDetails, where: str, shape: type[BaseModel]) -> str:
    """A mistake inside the table of a model or server. What may be a secret is not repeated."""
    place = ".".join(str(part) for part in first["loc"])
    written: object = first["input"]
    hidden = {"key", "headers", "env", "secret", "webhook_secret"} & {*map(str, first["loc"])} or not isinstance(
        written, str | int | float
    )
    shown = "***" if hidden else _shown(written)
    problem = complaint_of(first)
    if first["type"] == "extra_forbidden":
        return f"{place} (from {where}) is no key here{_meant(str(first['loc'][-1]), shape.model_fields)}."
    if first["type"] == "missing":
        return f"{place} (from {where}) is missing."
    return f"{place} = {shown} (from {where}) is not allowed: {problem[:1].lower()}{problem[1:]}."


def _shown(value: object) -> str:
    text = str(value) if isinstance(value, (str, Path, int, float)) else repr(value)
    text = without_secrets(text)  # an address may carry a password
    return repr(text) if not text or text != text.strip() else text[:200]


def _meant(name: str, known: Mapping[str, object] | set[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {near[0]}?)" if near else ""
