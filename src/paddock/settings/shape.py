"""Every setting: its default, what it is for, and what may be written there. Not where its value comes from."""

import os
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from paddock.ports.runners import IsolationLevel
from paddock.rules.access.host_only import NOTHING_OPENED, ApiAgents
from paddock.rules.agents.addresses import is_loopback, is_postgres, openid_configuration_of, without_secrets
from paddock.rules.agents.specs import McpServerSpec, ModelSpec, PlatformSpec
from paddock.rules.errors import FilesUnavailableError, StorageUnavailableError
from paddock.settings.kinds import (
    EMBEDDED,
    AnyPath,
    Directory,
    File,
    Int,
    Lower,
    Seconds,
    artifacts_address,
    bus_address,
    collector,
    not_empty,
    operator_name,
    origin,
    page,
    split,
    store_address,
    variable_name,
)

SIGNING_KEYS = "signing-keys.json"
"""In the data directory, unless another file is set."""


def setting(default: object, says: str, allowed: str, **limits: float) -> Any:
    """One setting: its default, what it is for, and what a person may write there."""
    return Field(
        default=default,
        description=says,
        json_schema_extra={"allowed": allowed},
        validate_default=True,
        **cast("Any", limits),
    )


def whole(default: int | None, says: str, least: int, most: int | None = None, *, zero: str = "", of: str = "") -> Any:
    """A whole number in bounds; `zero` says what 0 means."""
    bounds = f", at least {least}" if most is None else f"{of} from {least} to {most}"
    meaning = f" (0 {zero})" if zero else ""
    limits = {"ge": least} if most is None else {"ge": least, "le": most}
    return setting(default, says, f"a whole number{bounds}{meaning}", **limits)


def days(default: int, says: str, least: int, most: int, *, zero: str) -> Any:
    return whole(default, says, least, most, zero=zero, of=" of days")


def number(default: float, says: str, least: float | None, most: float, *, zero: str = "", of: str = "") -> Any:
    """A number in bounds; without a least one it is above 0."""
    bounds = f"above 0, at most {most}" if least is None else f"from {least} to {most}"
    meaning = f" (0 {zero})" if zero else ""
    limits = {"gt": 0.0, "le": most} if least is None else {"ge": least, "le": most}
    return setting(default, says, f"a number{of} {bounds}{meaning}", **limits)


def seconds(default: float, says: str, least: float | None, most: float, *, zero: str = "") -> Any:
    return number(default, says, least, most, zero=zero, of=" of seconds")


class Settings(BaseModel):
    """Every setting of the host. Read it with `load`; made directly, it takes nothing from the environment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data: AnyPath = setting(Path(".paddock"), "where everything is kept", "the path of a directory")
    host: Annotated[str, AfterValidator(not_empty)] = setting(
        "127.0.0.1", "the address to listen on", "an address or host name of this machine"
    )
    port: Int = whole(8484, "the port to listen on", 0, 65535, zero="takes any free port")
    agents: File | None = setting(None, "the file that names the agents", "the path of an existing YAML or Python file")
    plugins: Annotated[tuple[Directory, ...], split(os.pathsep)] = setting(
        (),
        "further directories that hold plugin directories",
        f"paths of existing directories (in the environment separated by '{os.pathsep}')",
    )
    store: Annotated[str, AfterValidator(store_address)] = setting(
        EMBEDDED,
        "where conversations are stored",
        "embedded (SQLite in the data directory) or postgresql://user:password@host:port/database",
        repr=False,  # its address may carry a password
    )
    bus: Annotated[str, AfterValidator(bus_address)] = setting(
        EMBEDDED,
        "how hosts that share a store wake each other",
        "embedded (inside this process) or nats://user:password@host:port (several separated by ',')",
        repr=False,  # its address may carry a password
    )
    artifacts: Annotated[str, AfterValidator(artifacts_address)] = setting(
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
    run_deadline_seconds: Seconds = seconds(300.0, "how long a run may take", None, 86400)
    session_input_ack_seconds: Seconds = seconds(
        5.0, "how long an agent may take to acknowledge a message once it has it", None, 600
    )
    session_cancel_ack_seconds: Seconds = seconds(
        2.5, "how long an agent may take to acknowledge that it was asked to stop", None, 60
    )
    session_manager_seconds: Seconds = seconds(
        10.0, "how long it may take to add or remove an agent, to open or to close a conversation", None, 600
    )
    session_confirm_seconds: Seconds = seconds(120.0, "how long a handover waits for its answer", None, 86400)
    session_queue_seconds: Seconds = seconds(600.0, "how long a message may wait in line for its turn", None, 86400)
    cors_origins: Annotated[tuple[Annotated[str, AfterValidator(page)], ...], split(",")] = setting(
        (),
        "web pages of elsewhere that may call this host from a browser",
        "origins such as https://app.example (in the environment separated by ','), or * for all",
    )
    calls_per_second: Seconds = number(
        100.0,
        "calls that one key or token may make, on average; twice as many at once",
        0,
        100_000,
        zero="lifts the limit",
    )
    streams_per_user: Int = whole(
        500, "how many streams one user may hold open at this host", 0, 1_000_000, zero="lifts the limit"
    )
    streams_per_workspace: Int = whole(
        2000,
        "how many streams the users of one workspace may hold open at this host",
        0,
        1_000_000,
        zero="lifts the limit",
    )
    max_connections: Int = whole(
        12_000,
        "how many connections this host has at once; for one more, the one that was idle for longest goes",
        16,
        1_000_000,
    )
    unfinished_mib: Int = whole(
        512,
        "how many MiB of requests that are still on their way this host holds; a quarter of it for one caller",
        64,
        65_536,
    )
    keep_alive_seconds: Seconds = seconds(15.0, "how long a silent stream waits before it sends a comment", 1, 300)
    ag_ui_body_mib: Int = whole(8, "how many MiB one request of an AG-UI client may have", 1, 64)
    event_body_mib: Int = whole(8, "how many MiB one event of a platform may have, its files included", 1, 64)
    ag_ui_messages: Int = whole(
        2000, "how many messages one request of an AG-UI client may hold, the conversation so far included", 1, 100_000
    )
    traces: Annotated[str, AfterValidator(collector)] | None = setting(
        None, "where traces of runs are sent (OTLP over HTTP)", "the http:// or https:// address of a collector"
    )
    isolation: IsolationLevel = setting(
        "L0", "how runner processes are kept apart", "L0 (same user) or L1 (own namespaces, needs bubblewrap)"
    )
    plugin_memory_mb: Int = whole(
        16384, "how many MiB of memory a plugin may ask for, for each of its processes at isolation L1", 64, 1_048_576
    )
    spare_process_seconds: Seconds = seconds(
        300.0,
        "how long a runner process waits for the next run, where each run has its own",
        0,
        86400,
        zero="keeps none",
    )
    working_directories: AnyPath | None = setting(
        None,
        "where runs that need one get a working directory; `workspaces` in the data directory unless set",
        "a path",
    )
    working_directory_mib: Int = whole(
        4096,
        "how many MiB a conversation's working directory may hold before its agent's next run is refused",
        1,
        1_048_576,
    )
    run_address: Annotated[str, AfterValidator(origin)] | None = setting(
        None,
        "where runners on other machines reach this host for /mcp/run; this machine's loopback unless set",
        "an address such as https://paddock.example.com",
    )
    env_allow: Annotated[tuple[Annotated[str, AfterValidator(variable_name)], ...], split(",")] = setting(
        (), "environment variables that runners may see", "names of variables (in the environment separated by ',')"
    )
    host_call_rate: Seconds = number(
        50.0,
        "how many host calls a run may make in a second, on average; twice as many at once",
        0,
        100_000,
        zero="lifts the limit",
    )
    tools: Annotated[tuple[Annotated[str, AfterValidator(not_empty)], ...], split(",")] = setting(
        (),
        "Python files and modules whose functions are tools",
        "paths of .py files or names of modules (in the environment separated by ',')",
    )
    tool_timeout_seconds: Seconds = seconds(60.0, "how long one call of a tool may take", None, 86400)
    models: dict[str, ModelSpec] = setting(
        {}, "models of providers, by the name agents use for them", "a table of models, each with its provider"
    )
    default_model: str | None = setting(
        None, "the model of agents that name none; the demo model unless set", "the name of a model this host offers"
    )
    discover_models: bool = setting(
        True, "whether to offer models whose key or server is found on this machine", "true or false"
    )
    user_tokens_per_day: Int | None = whole(None, "model tokens one user may use in a day (UTC)", 1)
    user_cost_per_day: Seconds | None = setting(
        None, "what one user may spend on models in a day (UTC)", "a number above 0", gt=0
    )
    user_model_calls: Int | None = whole(None, "model calls one user may have under way at once", 1)
    workspace_tokens_per_day: Int | None = whole(None, "model tokens one workspace may use in a day (UTC)", 1)
    workspace_cost_per_day: Seconds | None = setting(
        None, "what one workspace may spend on models in a day (UTC)", "a number above 0", gt=0
    )
    workspace_model_calls: Int | None = whole(None, "model calls one workspace may have under way at once", 1)
    mcp_servers: dict[str, McpServerSpec] = setting(
        {}, "MCP servers whose tools agents may use, by name", "a table of servers, each with a command or a url"
    )
    api_agents: ApiAgents = setting(
        NOTHING_OPENED,
        "what agents made over the API may name besides: runners whose settings name programs and paths, and addresses",
        'a table such as {runners = ["plugin:paddock/codex/default"], urls = ["https://*.example.com"]}',
    )
    platforms: dict[str, PlatformSpec] = setting(
        {},
        "chat platforms whose events come in and whose answers go out, by name",
        "a table of platforms, each with a secret",
    )
    max_queue: Int = whole(100, "how many inputs may wait in one conversation", 0, 10000)
    max_runs: Int = whole(
        500, "how many runs this host works on at once; more wait a moment, then are told to try again", 1, 100_000
    )

    user_words_mib: Int = whole(
        1024,
        "how many MiB of words one user may keep, in all their conversations",
        0,
        1_048_576,
        zero="lifts the limit",
    )
    workspace_words_mib: Int = whole(
        20480, "how many MiB of words the users of one workspace may keep", 0, 1_048_576, zero="lifts the limit"
    )
    artifact_days: Int = days(30, "how many days files are kept", 0, 3650, zero="keeps them for ever")
    conversation_days: Int = days(
        365,
        "how many days what was said is kept; a conversation silent for so long is forgotten as a whole",
        0,
        36500,
        zero="keeps it for ever",
    )
    call_days: Int = days(
        90, "how many days calls of tools, use of models and approvals are kept", 0, 36500, zero="keeps them for ever"
    )
    audit_days: Int = days(
        400,
        "how many days audit rows, runs of forgotten conversations and ids of deleted ones are kept",
        0,
        36500,
        zero="keeps them for ever",
    )
    artifacts_mib: Int = whole(10240, "how many MiB of files a workspace may keep", 1, 1_048_576)
    max_file_mib: Int = whole(100, "how many MiB one file may have", 1, 10240)
    storage_area_mib: Int = whole(256, "how many MiB one storage area may keep", 1, 1_048_576)

    attachment_mib: Int = whole(10, "how many MiB one attachment of a message may have", 1, 100)
    uploads_mib: Int = whole(512, "how many MiB of attachments one user may keep", 1, 1_048_576)
    image_megapixels: Int = whole(
        40, "how many million pixels an image may have that is attached, or given back by a tool", 1, 200
    )
    attach_pdf: bool = setting(False, "whether PDF files may be attached beside images", "true or false")
    attachment_url_minutes: Int = whole(15, "how many minutes a signed address of an attachment counts", 1, 60)
    signing_keys: AnyPath | None = setting(
        None,
        "the file with the keys that sign addresses; hosts behind one address share one",
        "the path of a file (by default signing-keys.json in the data directory)",
    )
    public_url: Annotated[str, AfterValidator(origin)] | None = setting(
        None,
        "where clients reach this host, for addresses it hands out",
        "an address such as https://agents.example.com",
    )

    own_url: Annotated[str, AfterValidator(origin)] | None = setting(
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
    operators: Annotated[tuple[Annotated[str, AfterValidator(operator_name)], ...], split(",")] = setting(
        (),
        "who runs this host, beside whoever can read its data directory: they see what is of no workspace",
        "ids of keys such as key:7f3a..., and people as user@workspace (in the environment separated by ',')",
    )

    @property
    def takes_tokens(self) -> bool:
        return self.jwt_secret_file is not None or self.issuer_keys is not None

    @property
    def issuer_keys(self) -> str | None:
        """Return where an issuer's keys are: as set, else by discovery when only the issuer is set."""
        if self.jwt_keys is not None or self.jwt_issuer is None or self.jwt_secret_file is not None:
            return self.jwt_keys
        return openid_configuration_of(self.jwt_issuer)

    @property
    def signing_file(self) -> Path:
        return self.signing_keys or self.data / SIGNING_KEYS

    @property
    def shares_signing_keys(self) -> bool:
        """They are what lies in the database, for all hosts, and not a file somebody named."""
        return is_postgres(self.store) and self.signing_keys is None

    @property
    def shown_store(self) -> str:
        return without_secrets(self.store)

    @property
    def shown_artifacts(self) -> str:
        return without_secrets(self.artifacts)

    def of_whom(self, error: StorageUnavailableError) -> str:
        files = isinstance(error, FilesUnavailableError)
        return f"artifacts = {self.shown_artifacts}" if files else f"store = {self.shown_store}"

    @property
    def shown_bus(self) -> str:
        return without_secrets(self.bus)

    @property
    def on_loopback(self) -> bool:
        return is_loopback(self.host)


def allowed_values(name: str) -> str:
    return str(cast("dict[str, str]", Settings.model_fields[name].json_schema_extra)["allowed"])
