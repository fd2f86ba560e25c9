"""A package that could be installed, and what it asks for in words a person can answer.

It is a directory, a .zip or a .tar.gz with `paddock-plugin.toml` at its top (or inside its only directory), or a
LangBot plugin with its `manifest.yaml` there.
"""

import re
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from paddock.runners.packages.contents import PLUGIN_FILE, Contents, PackageError, checked, from_directory
from paddock.runners.packages.langbot import described, host_only_settings, is_langbot_plugin
from paddock_sdk.protocol.manifest import AgentRunnerPermissions

if TYPE_CHECKING:
    from paddock.runners.installed.plugins import Plugin


_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._, -]*\])?\s*([<>=!~][^@;\s][^@;]*)?(;.*)?")


def read_plugin_file(raw: bytes) -> "tuple[Plugin, tuple[str, ...]]":
    """The plugin and its Python requirements. Raises PackageError with a sentence that names the place.

    The catalog reads directories, so it is shown one that holds this file and nothing else.
    """
    from paddock.runners.installed.plugins import PluginError, load_plugin

    with tempfile.TemporaryDirectory(prefix="paddock-") as directory:
        (Path(directory) / PLUGIN_FILE).write_bytes(raw)
        try:
            plugin = load_plugin(Path(directory))
        except PluginError as error:
            raise PackageError(str(error).replace(f"{directory}/", "")) from error
    return plugin, _requirements(raw)


def _requirements(raw: bytes) -> tuple[str, ...]:
    python: Any = tomllib.loads(raw.decode()).get("python", {})
    asked: Any = cast("dict[str, Any]", python).get("requirements", [])
    if not isinstance(asked, list) or len(cast("list[Any]", asked)) > 100:
        raise PackageError(f"{PLUGIN_FILE}: python.requirements must be a list of at most 100 requirements.")
    return tuple(_checked(one) for one in cast("list[Any]", asked))


def _checked(requirement: object) -> str:
    """A name and versions only: an option or an address would let the package choose where code comes from."""
    if not isinstance(requirement, str) or not _REQUIREMENT.fullmatch(requirement.strip()):
        raise PackageError(f"{PLUGIN_FILE}: python.requirements: {requirement!r} must be a package name with versions.")
    return requirement.strip()


@dataclass(frozen=True, slots=True)
class Package:
    """A package's description and files."""

    about: "Plugin"
    requirements: tuple[str, ...]
    contents: Contents
    host_only: tuple[str, ...] | None = None
    """Settings of its agents that name programs, paths or addresses; None: known when it runs, as its forms are."""


def read_package(source: Path) -> Package:
    """Read and check a package without running or installing any of it. Raises PackageError."""
    contents = _contents(source)
    host_only: tuple[str, ...] | None = None
    if is_langbot_plugin(contents):
        contents = described(contents)
        host_only = tuple(host_only_settings(contents))
    about, requirements = read_plugin_file(contents.read(PLUGIN_FILE) or b"")
    return Package(about, requirements, contents, host_only)


def _contents(source: Path) -> Contents:
    try:
        if source.is_dir():
            return checked(from_directory(source))
        from paddock.runners.packages.archives import read_file

        return read_file(source)
    except OSError as error:
        raise PackageError(f"{source} cannot be read: {error.strerror or error}.") from error


def unpack(raw: bytes, sha256: str) -> Package:
    """The package in an archive, if its files are the ones a person agreed to. Raises PackageError."""
    from paddock.runners.packages.archives import read_archive

    contents = read_archive(raw)
    if contents.sha256 != sha256:
        raise PackageError("Its files are not those that were agreed to: the hash is another one.")
    about, requirements = read_plugin_file(contents.read(PLUGIN_FILE) or b"")
    return Package(about, requirements, contents)


WORDS: Mapping[tuple[str, str], str] = {
    ("models", "invoke"): "ask the language models you configure (this can cost money)",
    ("models", "stream"): "ask the language models you configure, streaming (this can cost money)",
    ("models", "rerank"): "rank texts with the models you configure",
    ("tools", "detail"): "see which tools the agent has",
    ("tools", "call"): "use the tools you give the agent",
    ("knowledge_bases", "list"): "see which knowledge bases the agent has",
    ("knowledge_bases", "retrieve"): "search the knowledge bases you give the agent",
    ("history", "page"): "read the conversation it is in",
    ("history", "search"): "search the conversation it is in",
    ("events", "get"): "read single events of the conversation it is in",
    ("events", "page"): "read all events of the conversation it is in",
    ("artifacts", "metadata"): "see which files belong to the conversation",
    ("artifacts", "read"): "read the files of the conversation",
    ("artifacts", "create"): "add files to the conversation",
    ("storage", "plugin"): "keep data of its own",
    ("storage", "workspace"): "keep data that the whole workspace shares",
    ("storage", "binding"): "keep data for each agent that uses it",
    ("files", "config"): "read files named in the agent's configuration",
    ("files", "knowledge"): "read files of the knowledge bases",
    ("mcp", "use"): "hand what the run may do to a program that speaks MCP, for as long as the run lasts",
    ("working_directory", "use"): "read and write files in a directory of the conversation",
}


def plain_words(permissions: AgentRunnerPermissions, *, network: bool = False) -> list[str]:
    """List everything the package asks for, one line each, for the person who decides."""
    asked = permissions.model_dump()
    lines = [words for (kind, what), words in WORDS.items() if what in asked.get(kind, ())]
    lines += [
        f"ask to do {action} on your chat platform (each time only if you agree)" for action in permissions.platform_api
    ]
    if permissions.history_scope == "workspace":
        lines.append("read other conversations of the workspace, not only the one it is in")
    if network:
        lines.append("use this machine's network")
    return lines
