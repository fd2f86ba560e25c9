"""Findings of `paddock doctor` about one data directory, and about the host that runs on it.

A host knows its own port and agents better than the settings that are read here, as it may have been given others.
"""

import socket
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddock.cli import presence
from paddock.cli.client import HostClient, HostGoneError, RefusedError, at
from paddock.cli.output import Finding, command
from paddock.settings import Settings

if TYPE_CHECKING:
    from paddock.host.agents.file import Defined


@dataclass(frozen=True, slots=True)
class _Running:
    url: str
    agents: Sequence[Mapping[str, Any]]
    problem: str
    """What is wrong with its agents file, if something is."""


def _running(data: Path) -> _Running | None:
    """The host of this directory, if it answers and knows the token that lies here: a killed one leaves both behind."""
    here = presence.find(data)
    if here is None:
        return None
    try:
        answer = HostClient(here.url, here.token).call("GET", at("agents"))
    except (HostGoneError, RefusedError):
        return None
    return _Running(here.url, answer["agents"], answer.get("problem", ""))


def data_directory(settings: Settings) -> Finding:
    from paddock.rules.errors import StorageUnavailableError
    from paddock.storage.files.lock import DataDirectory, DataDirectoryInUseError

    if not settings.data.exists():
        return _parent_writable(settings.data)
    try:
        with DataDirectory.lock(settings.data), tempfile.TemporaryFile(dir=settings.data):
            return Finding("data directory", "ok", f"{settings.data} can be written and locked")
    except DataDirectoryInUseError:
        here = presence.find(settings.data)
        return Finding(
            "data directory", "ok", f"{settings.data} is in use by a host" + (f" at {here.url}" if here else "")
        )
    except (StorageUnavailableError, OSError) as error:
        return Finding("data directory", "fail", str(error), "Choose another with --data, or change its owner.")


def _parent_writable(data: Path) -> Finding:
    parent = next(one for one in data.parents if one.exists())
    try:
        with tempfile.TemporaryDirectory(dir=parent):  # what may be written is not all that can be
            return Finding("data directory", "ok", f"{data} will be made by the first start")
    except OSError:
        return Finding("data directory", "fail", f"{data} cannot be made in {parent}", "Choose another with --data.")


def port(settings: Settings) -> Finding:
    host = _running(settings.data)
    if host is not None:
        return Finding("port", "ok", f"the host of this data directory listens at {host.url}")
    try:
        family, *_, address = socket.getaddrinfo(settings.host.strip("[]"), settings.port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen()
    except OSError as error:
        taken = f"{settings.port} on {settings.host}: {error.strerror}"
        return Finding("port", "note", taken, "Choose another with --port.")
    return Finding("port", "ok", f"{settings.port} on {settings.host} is free")


def agents(settings: Settings) -> Finding:
    """Those of the host that runs here; a file that was named is looked at as well."""
    read = _agents_file(settings)
    host = None if read.state == "fail" else _running(settings.data)
    return read if host is None else _agents_of(host, settings.data)


def _agents_of(host: "_Running", data: Path) -> Finding:
    bad = [f"{one['agentId']}: {one.get('problem')}" for one in host.agents if one["health"] == "problem"]
    if host.problem:
        bad.append(f"the agents file cannot be used, so the agents stay as they were: {host.problem}")
    if bad:
        return Finding("agents", "fail", "; ".join(bad), f"{command('agents list', data=data)} shows all of them.")
    names = ", ".join(str(one["agentId"]) for one in host.agents)
    return Finding("agents", "ok", f"the host at {host.url} has {len(host.agents)}: {names}")


def runners(settings: Settings) -> Finding:
    """Those of the host that runs here: whether one is left down, or did not start when it was last tried."""
    here = presence.find(settings.data)
    listed: Sequence[Mapping[str, Any]] = ()
    with suppress(HostGoneError, RefusedError):
        listed = HostClient(here.url, here.token).call("GET", at("runners"))["runners"] if here else ()
    bad = {one["plugin"]: _what_failed(one) for one in listed if one.get("failing")}
    if bad:
        says = "; ".join(f"{plugin}: {what}" for plugin, what in bad.items())
        return Finding("runners", "fail", says, "The host's log has its last words; it is tried again on demand.")
    return Finding("runners", "ok", f"{len(listed)} listed, none keeps failing" if listed else "no host runs here")


def _what_failed(runner: Mapping[str, Any]) -> str:
    whose = f"left down for {', '.join(runner['unhealthyFor'])}: " if runner.get("unhealthyFor") else ""
    return whose + (runner.get("detail") or str(runner["state"]))


def _agents_file(settings: Settings) -> Finding:
    from paddock.host.agents.file import AgentsFileError

    if settings.agents is None:
        return Finding("agents", "ok", "no agents file: assistant answers, and every installed plugin under its name")
    try:
        missing = without_runner(settings, settings.agents)
    except AgentsFileError as error:
        return Finding("agents", "fail", str(error), "paddock agents check reads it again.")
    if missing:
        says = ", ".join(f"{agent_id} needs {plugin}" for agent_id, plugin in missing.items())
        return Finding("agents", "fail", f"{says}, which is not installed", "paddock runner install puts it in.")
    return Finding("agents", "ok", f"every agent of {settings.agents} has its runner")


def without_runner(settings: Settings, path: Path) -> dict[str, str]:
    """Agents of a file whose plugin is not there, with the plugin's name. Starts nothing. Raises AgentsFileError."""
    from paddock.runners.installed.catalog import Catalog
    from paddock_sdk.protocol.ids import RunnerId

    catalog = Catalog.load(installed=settings.data / "plugins", further=settings.plugins)
    plugins = {one.agent_id: str(RunnerId.parse(one.runner_id).plugin) for one in defined_by(path).bindings}
    return {agent_id: plugin for agent_id, plugin in plugins.items() if plugin not in catalog.plugins}


def defined_by(path: Path) -> "Defined":
    """Read a file of agents, a Python program or YAML, as the host does. Raises AgentsFileError."""
    from paddock.agent_program import is_program, load_program
    from paddock.host.agents.file import read_file

    return load_program(path).defined if is_program(path) else read_file(path)
