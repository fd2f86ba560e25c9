"""A run, laid out in a working directory for a program that reads files: a coding harness such as Claude Code or Codex.

    with_files = project(ctx, directory, harness="claude", mcp_url=endpoint.url, token_env=endpoint.token_env)
    env = {**os.environ, **with_files.env, endpoint.token_env: endpoint.token}
    ...
    with_files.remove()

Only what the run was granted appears. A file of the user's is never changed: where one is in the way, ours is left out
or put into `.paddock/`. No secret is written. Nothing here starts a program.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic_core import PydanticSerializationError, to_json

from paddock_sdk.projection import servers as forms
from paddock_sdk.projection.ground import LEDGER, Ground, ProjectionError
from paddock_sdk.projection.servers import Server, servers_of
from paddock_sdk.projection.skills import SkillError, SkillFile, read_skill
from paddock_sdk.projection.words import already_told, context_page, context_value, pointer
from paddock_sdk.protocol.run_context import AgentRunContext

__all__ = ["Harness", "Projection", "ProjectionError", "Server", "project", "working_directory_of"]

Harness = Literal["claude", "codex", "gemini", "opencode", "kimi", "acp"]
CONTEXT_JSON, CONTEXT_PAGE = "agent-context.json", "CONTEXT.md"
HIDDEN = ".paddock"
TAKEN = "there is one of the user's already"
SKILL_FOLDERS = (".claude/skills", ".agents/skills")
POINTERS: Mapping[str, bool] = {"AGENTS.md": False, "CLAUDE.md": True, "GEMINI.md": True}
"""Files a harness reads by itself, and whether it understands `@file`."""
GRANTED = (*(f"{folder}/" for folder in SKILL_FOLDERS), f"{HIDDEN}/mcp.")
"""What begins so was granted to the turn that wrote it."""


@dataclass(frozen=True, slots=True)
class Projection:
    """Files that were written for a harness, and the settings to start it with."""

    directory: Path
    context_json: Path
    context_page: Path
    """For `--append-system-prompt-file`, or to be read out as developer instructions."""
    mcp_config: Path | None
    """The servers in the harness's own form, for those that take a file."""
    servers: tuple[Server, ...]
    env: Mapping[str, str] = field(repr=False)
    """Variables that hold header values of further servers. The run's own token is the caller's to add."""
    files: tuple[str, ...] = ()
    """All that was written for this run, relative to the directory."""
    ledger: str = LEDGER
    left_alone: Mapping[str, str] = field(default_factory=dict[str, str])
    """What was not written, and why: a file of the user's was there, a skill could not be read."""

    def acp_servers(self, token: str | None = None) -> list[dict[str, Any]]:
        """The `mcpServers` of an ACP session, with their values; `token` is the run's own."""
        own = next((server.token_env for server in self.servers if server.token_env), None)
        return forms.acp(self.servers, {**self.env, **({own: token} if own and token else {})})

    def codex_config(self) -> dict[str, Any]:
        """The `config` of Codex's thread/start and thread/resume."""
        return forms.codex(self.servers)

    def codex_arguments(self) -> list[str]:
        """Codex's MCP settings as arguments of its command line."""
        return forms.codex_arguments(self.servers)

    def write(self, relative: str, content: bytes) -> Path:
        """Lay out one more file, among ours. Raises ProjectionError when that place is somebody else's."""
        path = f"{HIDDEN}/{relative}"
        with closing(Ground(self.directory, self.ledger)) as ground:
            if not ground.write(path, content):
                raise ProjectionError(f"{path} is needed, and {TAKEN}")
            ground.save()
        return self.directory / path

    def remove(self, more: Sequence[str] = ()) -> None:
        """Take away what was laid out, as far as nobody changed it since. Never raises for what is gone already."""
        ground = Ground(self.directory, self.ledger)
        try:
            for path in (*self.files, *more):
                ground.remove(path)
            ground.remove_ledger()
        finally:
            ground.close()


def working_directory_of(ctx: AgentRunContext) -> Path | None:
    """Where this run may work, if the host gave it a place."""
    said = ctx.runtime.metadata.get("working_directory")
    return Path(said) if isinstance(said, str) and said.startswith("/") else None


def project(
    ctx: AgentRunContext,
    directory: Path,
    *,
    harness: Harness = "acp",
    mcp_url: str | None = None,
    token_env: str | None = None,
    shared: bool | None = None,
    told: bool = False,
) -> Projection:
    """Lay the run out. `mcp_url` is where its own endpoint can be reached (`paddock_sdk.endpoint`), None leaves it out.
    `told`: the harness is given the page some other way, and must not read it once more.

    In a directory that other conversations use too (`shared`; the host says so unless given) everything about this one
    goes into a directory of its own, and no file is written that another conversation's harness would read by itself.
    """
    apart = bool(ctx.runtime.metadata.get("working_directory_shared")) if shared is None else shared
    own = f"{HIDDEN}/{_plain(_conversation(ctx))}" if apart else HIDDEN
    ledger = f"{own}/projected.json"
    with ExitStack() as grounds:
        ground = grounds.enter_context(closing(Ground(directory, ledger)))
        common = grounds.enter_context(closing(Ground(directory))) if apart else ground
        layout = _Layout(ctx, ground, common, own, told=told)
        return layout.lay_out(harness, ledger, *servers_of_run(ctx, mcp_url, token_env))


def servers_of_run(
    ctx: AgentRunContext, mcp_url: str | None, token_env: str | None
) -> tuple[tuple[Server, ...], dict[str, str]]:
    """The granted MCP servers, and the variables that hold the values of their headers."""
    return servers_of(ctx.resources.mcp, mcp_url=mcp_url, token_env=token_env)


class _Layout:
    """One projection while it is being written."""

    def __init__(self, ctx: AgentRunContext, ground: Ground, common: Ground, own: str, *, told: bool) -> None:
        self._ctx = ctx
        self._ground = ground
        self._common = common
        """Skills are the agent's and not the run's: where conversations share a directory, they stay."""
        self._apart = own != HIDDEN
        self._own = own
        self._told = told
        self._written: list[str] = []
        self._left: dict[str, str] = {}

    def lay_out(self, harness: Harness, ledger: str, servers: Sequence[Server], env: Mapping[str, str]) -> Projection:
        skills = self._skills()
        json_name = self._place(CONTEXT_JSON)
        page_name = self._place(CONTEXT_PAGE)
        self._must(json_name, _for_reading(context_value(self._ctx, skills)))
        self._must(page_name, context_page(self._ctx, servers, skills, json_name))
        config = self._mcp_config(harness, servers)
        if not self._apart:
            self._pointers(page_name)
            self._may(f"{HIDDEN}/.gitignore", b"*\n")
            self._forget()
        else:
            self._common.write(f"{HIDDEN}/.gitignore", b"*\n")
            self._common.save()
        self._ground.save()
        root = self._ground.directory
        return Projection(
            directory=root,
            context_json=root / json_name,
            context_page=root / page_name,
            mcp_config=root / config if config else None,
            servers=tuple(servers),
            env=dict(env),
            files=tuple(self._written),
            ledger=ledger,
            left_alone=dict(self._left),
        )

    def _place(self, name: str) -> str:
        """Beside the user's files when the directory is this conversation's and the name is free, else with ours."""
        return self._hidden(name) if self._apart or not self._is_ours_to_write(name) else name

    def _hidden(self, name: str) -> str:
        """With ours; what somebody changed there is theirs by now, and this run has a place of its own."""
        usual = f"{self._own}/{name}"
        return usual if self._is_ours_to_write(usual) else f"{HIDDEN}/{_plain(self._ctx.run_id)}/{name}"

    def _is_ours_to_write(self, path: str) -> bool:
        return not self._ground.exists(path) or self._ground.is_ours(path)

    def _mcp_config(self, harness: Harness, servers: Sequence[Server]) -> str | None:
        form = FORMS.get(harness)
        if form is None or not servers:
            return None
        name, write = form
        place = self._hidden(name)
        self._must(place, write(servers))
        return place

    def _forget(self) -> None:
        """Remove what an earlier turn was granted and this one is not."""
        for path in self._ground.known:
            if path.startswith(GRANTED) and path not in self._written:
                self._ground.remove(path)

    def _pointers(self, page_name: str) -> None:
        for name, imports in POINTERS.items():
            if name == "CLAUDE.md" and self._ground.exists("AGENTS.md") and not self._ground.is_ours("AGENTS.md"):
                self._left[name] = "the user's AGENTS.md is read in its place"
            else:
                self._may(
                    name, (already_told(page_name) if self._told else pointer(page_name, imports=imports)).encode()
                )

    def _skills(self) -> dict[str, str]:
        """Name to place of those that were written."""
        told: dict[str, str] = {}
        for skill in self._ctx.resources.skills:
            try:
                files = read_skill(skill.skill_name, skill.path)
            except SkillError as problem:
                self._left[f"skill {skill.skill_name[:80]}"] = str(problem)
                continue
            for folder in SKILL_FOLDERS:
                place = f"{folder}/{skill.skill_name}"
                if self._is_free(place):
                    for file in files:
                        self._skill_file(f"{place}/{file.path}", file)
                    told.setdefault(skill.skill_name, place)
        return told

    def _is_free(self, place: str) -> bool:
        """Tell if no skill of the user's has that name."""
        marker = f"{place}/SKILL.md"
        if not self._common.exists(place) or self._common.is_ours(marker):
            return True
        self._left[place] = TAKEN
        return False

    def _skill_file(self, path: str, file: SkillFile) -> None:
        if not self._common.write(path, file.content, mode=0o755 if file.executable else 0o644):
            self._left[path] = TAKEN
        elif not self._apart:
            self._written.append(path)

    def _must(self, path: str, text: str) -> None:
        if not self._ground.write(path, text.encode(errors="replace")):
            raise ProjectionError(f"{path} is needed, and something of somebody else's is in its place")
        self._written.append(path)

    def _may(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        if self._ground.write(path, content, mode=mode):
            self._written.append(path)
        else:
            self._left[path] = TAKEN


def _conversation(ctx: AgentRunContext) -> str:
    """A key that is stable over all turns of one conversation with one agent, where the host provides one."""
    return str(ctx.runtime.metadata.get("session_key") or ctx.run_id)


def _plain(name: str) -> str:
    """Names are opaque: as the name of a directory only letters, digits and dashes are left of one."""
    return "".join(char if char.isalnum() or char == "-" else "-" for char in name)[:80] or "run"


def _json(form: Callable[[Sequence[Server]], dict[str, Any]]) -> Callable[[Sequence[Server]], str]:
    return lambda servers: _for_reading(form(servers))


def _for_reading(value: Mapping[str, Any]) -> str:
    """JSON that people can read as well. The standard library writes it in Python once it is indented, which takes as
    long as all the rest; but it writes any text."""
    try:
        return to_json(value, indent=2).decode() + "\n"
    except PydanticSerializationError:
        return json.dumps(value, indent=2) + "\n"


FORMS: Mapping[str, tuple[str, Callable[[Sequence[Server]], str]]] = {
    "claude": ("mcp.claude.json", _json(forms.claude)),
    "codex": ("mcp.codex.toml", forms.codex_toml),
    "gemini": ("mcp.gemini.json", _json(forms.gemini)),
    "opencode": ("mcp.opencode.json", _json(forms.opencode)),
}
"""Harnesses that can be pointed at a file. The others get their servers when a session is opened over ACP."""
