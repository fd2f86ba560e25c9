"""Where a harness works and what it gets to see there: directory, home, environment, the projected files."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from paddock_runners.harness.config import Config, ConfigError
from paddock_runners.harness.heard import HarnessError
from paddock_sdk import RunContext
from paddock_sdk.endpoint import RunEndpoint
from paddock_sdk.projection import Harness, Projection, ProjectionError, project, working_directory_of

PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS")
"""Of the runner's own environment; anything else only by name."""
IMPORTED: Mapping[Harness, str] = {"gemini": "GEMINI.md"}
"""Harnesses that take the page of their run from a file they read at every start; the others are told it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Everything needed to start a harness, but its command line."""

    directory: Path
    home: Path
    files: Projection
    env: Mapping[str, str] = field(repr=False)
    endpoint: RunEndpoint | None
    imported: bool
    """Whether the harness finds the page by itself: such a file leads to it, and is none of the user's."""

    @property
    def context(self) -> str:
        """Description of the run for the harness, as text."""
        return self.files.context_page.read_text("utf-8")


def prepare(ctx: RunContext, config: Config, endpoint: RunEndpoint | None, harness: Harness) -> Place:
    """Make the directories and lay out the files. Raises ConfigError or HarnessError."""
    ours = _base(ctx) / _key(ctx)
    home = _home(config, ours)
    directory = working_directory_of(ctx) or _made(ours / "work")
    url, variable = (endpoint.url, endpoint.token_env) if endpoint else (None, None)
    try:
        files = project(ctx, directory, harness=harness, mcp_url=url, token_env=variable, told=harness not in IMPORTED)
    except ProjectionError as problem:
        raise HarnessError("harness.no_directory", str(problem)) from problem
    imported = IMPORTED.get(harness) in files.files
    return Place(directory, home, files, _environment(config, home, files, endpoint), endpoint, imported)


def program(command: str, env: Mapping[str, str]) -> str:
    """Where the program is. Raises HarnessError with what to do when it is nowhere."""
    found = shutil.which(command, path=env.get("PATH"))
    if found is None:
        said = (
            f"there is no program {command!r} here that can be started; install it, or name its path in config.command"
        )
        raise HarnessError("harness.not_installed", f"{said} (`paddock harness doctor` tells how)")
    return str(Path(found).absolute())


def _key(ctx: RunContext) -> str:
    """A name for a directory, one for each conversation with each agent."""
    conversation = ctx.conversation
    known = ctx.runtime.metadata.get("session_key") or (
        f"{conversation.workspace_id}/{conversation.bot_id}/{conversation.conversation_id}/{conversation.thread_id}"
        if conversation
        else ctx.run_id
    )
    return sha256(str(known).encode()).hexdigest()[:32]


def _base(ctx: RunContext) -> Path:
    """Below the plugin's private home; the host removes what is called so when the conversation is deleted."""
    home, conversation = Path(os.environ.get("HOME") or Path.cwd()), ctx.conversation
    if conversation is None:
        return home
    named = f"{conversation.workspace_id}\0{conversation.conversation_id}"
    return home / "conversations" / sha256(named.encode(errors="replace")).hexdigest()[:32]


def _home(config: Config, ours: Path) -> Path:
    """Apart for each conversation: harnesses that share one can see each other."""
    if not config.home:
        return _made(ours / "home")
    home = Path(config.home).expanduser()
    if not home.is_absolute() or not home.is_dir():
        raise ConfigError(f"config.home must be the absolute path of an existing directory, not {config.home!r}")
    return home


def _made(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)
    return directory


def _environment(config: Config, home: Path, files: Projection, endpoint: RunEndpoint | None) -> dict[str, str]:
    """All that the harness gets to see: no variable of the runner by accident."""
    missing = [name for name in config.env if name not in os.environ]
    if missing:
        said = f"config.env names {missing[0]}, which this runner does not have"
        raise ConfigError(f"{said}; allow it in the host's env_allow and set it where the host is started")
    env = {name: os.environ[name] for name in (*PASSED_ON, *config.env) if name in os.environ}
    env |= {"HOME": str(home), **files.env}
    return env | ({endpoint.token_env: endpoint.token} if endpoint else {})
