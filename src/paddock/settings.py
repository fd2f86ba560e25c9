"""What can be set from outside, with defaults that work on a laptop.

Strongest first: the command line, `PADDOCK_*` in the environment, a TOML file, the default. A wrong value is one
sentence that says which setting, which value, where it came from and what is allowed. Nothing here creates or
opens anything but that TOML file.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from paddock.rules.addresses import (
    is_loopback,
    is_postgres,
    is_private_way,
    openid_configuration_of,
    without_secrets,
)
from paddock.rules.mcp_specs import McpServerSpec
from paddock.rules.model_specs import ModelSpec
from paddock.rules.platform_specs import PlatformSpec

PREFIX = "PADDOCK_"
EMBEDDED = "embedded"
CONFIG_NAME = "paddock.toml"
BUS_ADDRESS = re.compile(r"(nats|tls)://\S+")
SIGNING_KEYS = "signing-keys.json"
"""In the data directory, unless another file is set."""
NOT_SETTINGS = frozenset({"API_KEY", "CONFIG", "DEBUG", "MARK", "PLUGIN", "URL"})
"""`PADDOCK_*` names that mean something to us and are no settings of the host."""


class SettingsError(Exception):
    """Something outside is set wrongly. The text is one sentence for the person who set it."""


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 - resolve() would follow links the person chose


def _existing_file(path: Path) -> Path:
    if not path.is_file():
        raise ValueError("no such file")
    return path


def _existing_directory(path: Path) -> Path:
    if not path.is_dir():
        raise ValueError("no such directory")
    return path


def _not_empty(text: str) -> str:
    if not text.strip():
        raise ValueError("empty")
    return text.strip()


def _variable_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text):
        raise ValueError("not a variable name")
    return text


def _page(text: str) -> str:
    if text != "*" and not re.fullmatch(r"https?://[^\s/?#@*]+", text):
        raise ValueError("no origin")
    return text.lower()


def _store_address(text: str) -> str:
    if text != EMBEDDED and not (is_postgres(text) and len(text) > len("postgresql://")):
        raise ValueError("no store")
    return text


def _bus_address(text: str) -> str:
    servers = [part.strip() for part in text.split(",")]
    if text != EMBEDDED and not all(BUS_ADDRESS.fullmatch(server) for server in servers):
        raise ValueError("no bus")
    return text


def _artifacts_address(text: str) -> str:
    if text != EMBEDDED and not re.match(r"s3://[^/?\s]+", text):
        raise ValueError("no place for files")
    return text


def _collector(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("no address")
    return text


def _origin(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path.strip("/") or parts.query:
        raise ValueError("not an address without a path")
    return f"{parts.scheme}://{parts.netloc}"


def _split(separator: str) -> BeforeValidator:
    """A list may come as one text, as the environment has no lists."""

    def split(value: object) -> object:
        return [part.strip() for part in value.split(separator) if part.strip()] if isinstance(value, str) else value

    return BeforeValidator(split)


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _no_bool(value: object) -> object:
    """`port = true` is a mistake, not the number 1."""
    if isinstance(value, bool):
        raise ValueError("not a number")  # noqa: TRY004 - pydantic turns this one into a finding
    return value


Int = Annotated[int, BeforeValidator(_no_bool)]
Seconds = Annotated[float, BeforeValidator(_no_bool)]
AnyPath = Annotated[Path, AfterValidator(_absolute)]
Directory = Annotated[AnyPath, AfterValidator(_existing_directory)]
File = Annotated[AnyPath, AfterValidator(_existing_file)]
Lower = BeforeValidator(_lower)


def setting(default: object, says: str, allowed: str, **limits: float) -> Any:
    """One setting: its default, what it is for, and what a person may write there."""
    return Field(
        default=default,
        description=says,
        json_schema_extra={"allowed": allowed},
        validate_default=True,
        **cast("Any", limits),
    )


class Settings(BaseModel):
    """Every setting of the host. Read it with `load`; made directly, it takes nothing from the environment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data: AnyPath = setting(Path(".paddock"), "where everything is kept", "the path of a directory")
    host: Annotated[str, AfterValidator(_not_empty)] = setting(
        "127.0.0.1", "the address to listen on", "an address or host name of this machine"
    )
    port: Int = setting(
        8484, "the port to listen on", "a whole number from 0 to 65535 (0 takes any free port)", ge=0, le=65535
    )
    agents: File | None = setting(None, "the file that names the agents", "the path of an existing YAML or Python file")
    plugins: Annotated[tuple[Directory, ...], _split(os.pathsep)] = setting(
        (),
        "further directories that hold plugin directories",
        f"paths of existing directories (in the environment separated by '{os.pathsep}')",
    )
    store: Annotated[str, AfterValidator(_store_address)] = setting(
        EMBEDDED,
        "where conversations are stored",
        "embedded (SQLite in the data directory) or postgresql://user:password@host:port/database",
        repr=False,  # its address may carry a password
    )
    bus: Annotated[str, AfterValidator(_bus_address)] = setting(
        EMBEDDED,
        "how hosts that share a store wake each other",
        "embedded (inside this process) or nats://user:password@host:port (several separated by ',')",
        repr=False,  # its address may carry a password
    )
    artifacts: Annotated[str, AfterValidator(_artifacts_address)] = setting(
        EMBEDDED,
        "where the bytes of files are kept",
        "embedded (in the data directory) or s3://bucket/prefix?endpoint=https://...&region=... (keys: AWS_*)",
        repr=False,
    )
    log_level: Annotated[Literal["debug", "info", "warning", "error"], Lower] = setting(
        "info", "how much is logged", "debug, info, warning or error"
    )
    log_format: Annotated[Literal["text", "json"], Lower] = setting(
        "text", "how log lines look", "text (for people) or json (one object per line)"
    )
    run_deadline_seconds: Seconds = setting(
        300.0, "how long a run may take", "a number of seconds above 0, at most 86400", gt=0, le=86400
    )
    cors_origins: Annotated[tuple[Annotated[str, AfterValidator(_page)], ...], _split(",")] = setting(
        (),
        "web pages of elsewhere that may call this host from a browser",
        "origins such as https://app.example (in the environment separated by ','), or * for all",
    )
    calls_per_second: Seconds = setting(
        100.0,
        "calls that one key or token may make, on average; twice as many at once",
        "a number from 0 to 100000 (0 lifts the limit)",
        ge=0,
        le=100_000,
    )
    keep_alive_seconds: Seconds = setting(
        15.0,
        "how long a silent stream waits before it sends a comment",
        "a number of seconds from 1 to 300",
        ge=1,
        le=300,
    )
    ag_ui_body_mib: Int = setting(
        8, "how many MiB one request of an AG-UI client may have", "a whole number from 1 to 64", ge=1, le=64
    )
    ag_ui_messages: Int = setting(
        2000,
        "how many messages one request of an AG-UI client may hold, the conversation so far included",
        "a whole number from 1 to 100000",
        ge=1,
        le=100_000,
    )
    traces: Annotated[str, AfterValidator(_collector)] | None = setting(
        None, "where traces of runs are sent (OTLP over HTTP)", "the http:// or https:// address of a collector"
    )
    isolation: Literal["L0", "L1"] = setting(
        "L0", "how runner processes are kept apart", "L0 (same user) or L1 (own namespaces, needs bubblewrap)"
    )
    spare_process_seconds: Seconds = setting(
        300.0,
        "how long a runner process waits for the next run, where each run has its own",
        "a number of seconds from 0 to 86400 (0 keeps none)",
        ge=0,
        le=86400,
    )
    working_directories: AnyPath | None = setting(
        None,
        "where runs that need one get a working directory; `workspaces` in the data directory unless set",
        "a path",
    )
    working_directory_mib: Int = setting(
        4096,
        "how many MiB a conversation's working directory may hold before its agent's next run is refused",
        "a whole number from 1 to 1048576",
        ge=1,
        le=1_048_576,
    )
    run_address: Annotated[str, AfterValidator(_origin)] | None = setting(
        None,
        "where runners on other machines reach this host for /mcp/run; this machine's loopback unless set",
        "an address such as https://paddock.example.com",
    )
    env_allow: Annotated[tuple[Annotated[str, AfterValidator(_variable_name)], ...], _split(",")] = setting(
        (), "environment variables that runners may see", "names of variables (in the environment separated by ',')"
    )
    host_call_rate: Seconds = setting(
        50.0,
        "how many host calls a run may make in a second, on average; twice as many at once",
        "a number from 0 to 100000 (0 lifts the limit)",
        ge=0,
        le=100_000,
    )
    tools: Annotated[tuple[Annotated[str, AfterValidator(_not_empty)], ...], _split(",")] = setting(
        (),
        "Python files and modules whose functions are tools",
        "paths of .py files or names of modules (in the environment separated by ',')",
    )
    tool_timeout_seconds: Seconds = setting(
        60.0, "how long one call of a tool may take", "a number of seconds above 0, at most 86400", gt=0, le=86400
    )
    models: dict[str, ModelSpec] = setting(
        {}, "models of providers, by the name agents use for them", "a table of models, each with its provider"
    )
    discover_models: bool = setting(
        True, "whether to offer models whose key or server is found on this machine", "true or false"
    )
    user_tokens_per_day: Int | None = setting(
        None, "model tokens one user may use in a day (UTC)", "a whole number, at least 1", ge=1
    )
    user_cost_per_day: Seconds | None = setting(
        None, "what one user may spend on models in a day (UTC)", "a number above 0", gt=0
    )
    user_model_calls: Int | None = setting(
        None, "model calls one user may have under way at once", "a whole number, at least 1", ge=1
    )
    workspace_tokens_per_day: Int | None = setting(
        None, "model tokens one workspace may use in a day (UTC)", "a whole number, at least 1", ge=1
    )
    workspace_cost_per_day: Seconds | None = setting(
        None, "what one workspace may spend on models in a day (UTC)", "a number above 0", gt=0
    )
    workspace_model_calls: Int | None = setting(
        None, "model calls one workspace may have under way at once", "a whole number, at least 1", ge=1
    )
    mcp_servers: dict[str, McpServerSpec] = setting(
        {}, "MCP servers whose tools agents may use, by name", "a table of servers, each with a command or a url"
    )
    platforms: dict[str, PlatformSpec] = setting(
        {},
        "chat platforms whose events come in and whose answers go out, by name",
        "a table of platforms, each with a secret",
    )
    max_queue: Int = setting(
        100, "how many inputs may wait in one conversation", "a whole number from 0 to 10000", ge=0, le=10000
    )
    max_runs: Int = setting(
        500,
        "how many runs this host works on at once; more wait a moment, then are told to try again",
        "a whole number from 1 to 100000",
        ge=1,
        le=100_000,
    )

    artifact_days: Int = setting(
        30,
        "how many days files are kept",
        "a whole number of days from 0 to 3650 (0 keeps them for ever)",
        ge=0,
        le=3650,
    )
    conversation_days: Int = setting(
        365,
        "how many days what was said is kept; a conversation silent for so long is forgotten as a whole",
        "a whole number of days from 0 to 36500 (0 keeps it for ever)",
        ge=0,
        le=36500,
    )
    call_days: Int = setting(
        90,
        "how many days calls of tools, use of models and approvals are kept",
        "a whole number of days from 0 to 36500 (0 keeps them for ever)",
        ge=0,
        le=36500,
    )
    audit_days: Int = setting(
        400,
        "how many days audit rows, runs of forgotten conversations and ids of deleted ones are kept",
        "a whole number of days from 0 to 36500 (0 keeps them for ever)",
        ge=0,
        le=36500,
    )
    artifacts_mib: Int = setting(
        10240, "how many MiB of files a workspace may keep", "a whole number from 1 to 1048576", ge=1, le=1_048_576
    )
    max_file_mib: Int = setting(100, "how many MiB one file may have", "a whole number from 1 to 10240", ge=1, le=10240)
    storage_area_mib: Int = setting(
        256, "how many MiB one storage area may keep", "a whole number from 1 to 1048576", ge=1, le=1_048_576
    )

    attachment_mib: Int = setting(
        10, "how many MiB one attachment of a message may have", "a whole number from 1 to 100", ge=1, le=100
    )
    uploads_mib: Int = setting(
        512, "how many MiB of attachments one user may keep", "a whole number from 1 to 1048576", ge=1, le=1_048_576
    )
    image_megapixels: Int = setting(
        40, "how many million pixels an attached image may have", "a whole number from 1 to 200", ge=1, le=200
    )
    attach_pdf: bool = setting(False, "whether PDF files may be attached beside images", "true or false")
    attachment_url_minutes: Int = setting(
        15, "how many minutes a signed address of an attachment counts", "a whole number from 1 to 60", ge=1, le=60
    )
    signing_keys: AnyPath | None = setting(
        None,
        "the file with the keys that sign addresses; hosts behind one address share one",
        "the path of a file (by default signing-keys.json in the data directory)",
    )
    public_url: Annotated[str, AfterValidator(_origin)] | None = setting(
        None,
        "where clients reach this host, for addresses it hands out",
        "an address such as https://agents.example.com",
    )

    own_url: Annotated[str, AfterValidator(_origin)] | None = setting(
        None,
        "where this very host is reached by runners that attach to all hosts of a cluster",
        "an address such as http://10.0.0.7:8080 (by default where it listens, or the machine's name)",
    )

    jwt_secret_file: File | None = setting(
        None, "a file with the secret that signed tokens (JWT) of callers are made with", "the path of an existing file"
    )
    jwt_keys: str | None = setting(
        None,
        "the published keys (JWKS) of the issuer whose signed tokens callers bring, or its OpenID configuration",
        "an https:// address or the path of a file; jwt_issuer and jwt_audience must be set too",
    )
    jwt_issuer: str | None = setting(
        None,
        "what a token must have as its issuer (iss); alone, an OpenID issuer whose keys are found by its configuration",
        "a text; alone, an https:// address, with jwt_audience beside it",
    )
    jwt_audience: str | None = setting(None, "what a token must have among its audiences (aud)", "a text")
    jwt_workspace_claim: str | None = setting(
        None, "the claim of a token that names the workspace; without it, everybody is in default", "a claim's name"
    )
    jwt_role_claim: str | None = setting(
        None, "the claim of a token that makes administrators, by holding admin", "a claim's name"
    )

    @property
    def takes_tokens(self) -> bool:
        """True when callers may show a token instead of a key."""
        return self.jwt_secret_file is not None or self.issuer_keys is not None

    @property
    def issuer_keys(self) -> str | None:
        """Where the keys of an issuer are: as set, else by discovery when an issuer is all that is set."""
        if self.jwt_keys is not None or self.jwt_issuer is None or self.jwt_secret_file is not None:
            return self.jwt_keys
        return openid_configuration_of(self.jwt_issuer)

    @property
    def shown_store(self) -> str:
        """Which store, without the password that its address may carry."""
        return without_secrets(self.store)

    @property
    def shown_bus(self) -> str:
        """The same of the bus."""
        return without_secrets(self.bus)

    @property
    def on_loopback(self) -> bool:
        """True when only this machine can reach the address we listen on."""
        return is_loopback(self.host)


def allowed_values(name: str) -> str:
    """What may be written for a setting, in words."""
    return str(cast("dict[str, str]", Settings.model_fields[name].json_schema_extra)["allowed"])


PATHS = frozenset(
    {"data", "agents", "plugins", "tools", "working_directories", "jwt_secret_file", "jwt_keys", "signing_keys"}
)
MIN_SECRET_BYTES = 32


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
    """Whoever can change the keys on their way here could be anybody."""
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
    """The settings file that lies in the data directory, if there is one."""
    data = stronger["data"].value if "data" in stronger else Settings.model_fields["data"].default
    path = _absolute(Path(str(data))) / CONFIG_NAME
    table = _from_file(path) if path.is_file() else {}
    if "data" in table:
        raise SettingsError(
            f"data cannot be set in {path}, because that file was found through it; use --data instead."
        )
    return table


def _from_file(path: Path) -> dict[str, _Origin]:
    path = _absolute(path)
    table = _read_toml(path)
    for name in table:
        if name not in Settings.model_fields:
            raise SettingsError(f"{name} in {path} is no setting{_meant(name, Settings.model_fields)}.")
    return {name: _Origin(_from_here(name, value, path.parent), str(path)) for name, value in table.items()}


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"Cannot read the settings file {path}: {error.strerror}.") from error
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


TABLES: Mapping[str, type[BaseModel]] = {"models": ModelSpec, "mcp_servers": McpServerSpec, "platforms": PlatformSpec}


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
    problem = first["msg"].removeprefix("Value error, ")
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
