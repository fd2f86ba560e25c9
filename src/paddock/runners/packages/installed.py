"""The plugins installed in a data directory: put in, look at, check, take out.

    <data>/plugins/<author>/<name>/     the plugin's files, exactly as a person agreed to them, and if it needs
                                        further Python packages an environment of its own in .venv/
    <data>/plugins/installed.json       what was agreed: version, permissions, and the hash of the tree

A tree that is not the one agreed to is not loaded. This finds mistakes and damage; somebody who may write into the
data directory can change the record too.
"""

import fcntl
import importlib.metadata
import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from dataclasses import replace as replaced
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import paddock_sdk
from paddock.confinement.private import private_directory, private_file
from paddock.runners.installed.plugins import Level
from paddock.runners.packages.contents import BYTECODE, ENVIRONMENT, PackageError, read_tree
from paddock.runners.packages.package import Package
from paddock_sdk.protocol.ids import PluginId
from paddock_sdk.protocol.manifest import AgentRunnerPermissions

BUILD_SECONDS = 600
SDK = "paddock-sdk"


def python_of(environment: Path) -> Path:
    return environment / "bin" / "python"


def build(environment: Path, requirements: Sequence[str]) -> None:
    """Make the environment or leave nothing behind. Runs the installer, so only after a person said yes."""
    try:
        pip = _make(environment)
        _add_sdk(environment)
        of_sdk = [line for line in importlib.metadata.requires(SDK) or [] if "extra ==" not in line]
        wanted = [*of_sdk, *requirements]
        _run(
            [*pip, "install", "--quiet", "--disable-pip-version-check", "--", *wanted],
            f"install {', '.join(requirements)}",
        )
    except BaseException:
        shutil.rmtree(environment, ignore_errors=True)
        raise


def _make(environment: Path) -> list[str]:
    """An empty environment and the installer to fill it with: ours if we have one, which saves seconds."""
    ours = find_spec("pip") is not None
    options = ["--without-pip"] if ours else []
    _run([sys.executable, "-m", "venv", *options, str(environment)], "make a virtual environment")
    python = str(python_of(environment))
    return [sys.executable, "-m", "pip", "--python", python] if ours else [python, "-m", "pip"]


def _add_sdk(environment: Path) -> None:
    """Copy the SDK instead of asking an index for it: a stranger's package of that name must not get in."""
    [packages] = environment.glob("lib/python*/site-packages")
    source = Path(paddock_sdk.__file__).parent
    shutil.copytree(source, packages / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    installed = importlib.metadata.distribution(SDK)
    record = packages / f"{SDK.replace('-', '_')}-{installed.version}.dist-info"
    record.mkdir()
    (record / "METADATA").write_text(installed.read_text("METADATA") or "", encoding="utf-8")
    (record / "INSTALLER").write_text("paddock\n", encoding="utf-8")


def _run(command: Sequence[str], what: str) -> None:
    try:
        subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=BUILD_SECONDS, stdin=subprocess.DEVNULL
        )
    except subprocess.CalledProcessError as error:
        lines = str(error.stderr or error.stdout or "").strip().splitlines()
        raise PackageError(f"Could not {what}: {lines[-1] if lines else f'exit code {error.returncode}'}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PackageError(f"Could not {what}: {error}") from error


RECORD_FILE = "installed.json"


@dataclass(frozen=True, slots=True)
class Installed:
    """One installed plugin, as the record has it."""

    plugin: str
    """author/name"""
    version: str
    sha256: str
    permissions: Mapping[str, Any]
    installed_at: float
    requirements: tuple[str, ...] = ()
    """Python packages it needs; they are in an environment of its own."""
    isolation: Level = "L0"
    """The least isolation it asks for."""
    network: bool = False
    """Whether it may use this machine's network from isolation L1 up."""
    shared: bool = False
    """Whether all hosts on the store have it: it goes when it is taken away there."""

    @property
    def asked(self) -> AgentRunnerPermissions:
        return AgentRunnerPermissions.model_validate(self.permissions)


class InstalledPlugins:
    """Plugins installed in one data directory. Safe to use while a host serves that directory."""

    def __init__(self, data: Path) -> None:
        self._plugins = data / "plugins"

    def list(self) -> list[Installed]:
        return sorted(self._read().values(), key=lambda one: one.plugin)

    def get(self, plugin: str) -> Installed | None:
        return self._read().get(plugin)

    def directory(self, plugin: str) -> Path:
        plugin_id = PluginId.parse(plugin)
        return self._plugins / plugin_id.author / plugin_id.name

    def python(self, installed: Installed) -> Path | None:
        """The interpreter of the plugin's own environment, when it has one."""
        own = self.directory(installed.plugin) / ENVIRONMENT
        return python_of(own) if installed.requirements else None

    def problem(self, installed: Installed) -> str:
        """Return why this plugin must not be loaded; empty when it is what was agreed to.

        Bytecode is removed first: it is not part of what was agreed, and Python makes it anew from what is.
        """
        plugin, directory = installed.plugin, self.directory(installed.plugin)
        for cache in [*directory.rglob(BYTECODE)]:
            if ENVIRONMENT not in cache.relative_to(directory).parts:
                shutil.rmtree(cache, ignore_errors=True)
        try:
            found = read_tree(directory).sha256
        except (PackageError, OSError) as error:
            return f"The plugin {plugin} cannot be read ({error}). Install it again with --replace."
        if found != installed.sha256:
            return f"The plugin {plugin} was changed after it was installed. Install it again with --replace."
        python = self.python(installed)
        if python is not None and not python.exists():
            return f"The Python environment of the plugin {plugin} is gone. Install it again with --replace."
        return ""

    def check_free(self, plugin: str, *, replace: bool) -> None:
        """Raises PackageError when one of that name is installed and is not to be replaced."""
        _check_free(plugin, self._read(), replace=replace)

    def install(self, package: Package, *, replace: bool = False, shared: bool = False) -> Installed:
        """Put the package's files in place, all or nothing. The caller has the person's consent."""
        entry = Installed(
            plugin=package.about.id,
            version=package.about.version,
            sha256=package.contents.sha256,
            permissions=package.about.ceiling.model_dump(exclude_defaults=True),
            installed_at=time.time(),
            requirements=package.requirements,
            isolation=package.about.isolation,
            network=package.about.network,
            shared=shared,
        )
        with self._changing() as record:
            _check_free(entry.plugin, record, replace=replace)
            self._put(package)
            record[entry.plugin] = entry
        return entry

    def mark_shared(self, plugin: str) -> None:
        """Record that the installed plugin is the one all hosts share."""
        with self._changing() as record:
            if plugin in record:
                record[plugin] = replaced(record[plugin], shared=True)

    def remove(self, plugin: str) -> Installed:
        """Take a plugin out, with its environment. Raises PackageError when it is not there."""
        with self._changing() as record:
            if plugin not in record:
                raise PackageError(f"No plugin {plugin} is installed. See: paddock runner list")
            entry = record.pop(plugin)
            self._swap(None, self.directory(plugin))
        return entry

    def _put(self, package: Package) -> None:
        """Make it whole beside the others, then swap: a failure leaves what was there, never half of something."""
        fresh = self._aside("new")
        try:
            for file in package.contents.files:
                _write(fresh / file.path, file.content, 0o755 if file.executable else 0o644)
            if package.requirements:
                build(fresh / ENVIRONMENT, package.requirements)
            self._swap(fresh, self.directory(package.about.id))
        finally:
            shutil.rmtree(fresh, ignore_errors=True)

    def _swap(self, fresh: Path | None, target: Path) -> None:
        old = self._aside("old")
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            target.rename(old)
        if fresh is not None:
            fresh.rename(target)
        shutil.rmtree(old, ignore_errors=True)

    def _aside(self, kind: str) -> Path:
        """A place nobody loads plugins from, on the same file system."""
        place = self._plugins / ".work"
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        return place / f"{kind}-{secrets.token_hex(6)}"

    @contextmanager
    def _changing(self) -> Generator[dict[str, Installed]]:
        """One change at a time; the record is written when the change went well."""
        private_directory(self._plugins.parent)
        self._plugins.mkdir(exist_ok=True, mode=0o700)
        private_file(self._plugins / ".lock")
        with (self._plugins / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            record = self._read()
            yield record
            self._save(record)

    def _read(self) -> dict[str, Installed]:
        path = self._plugins / RECORD_FILE
        try:
            raw = cast("dict[str, dict[str, Any]]", json.loads(path.read_text(encoding="utf-8")))
            return {name: _entry(name, entry) for name, entry in raw.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
            raise PackageError(f"The list of installed plugins, {path}, cannot be read: {error}.") from error

    def _save(self, record: Mapping[str, Installed]) -> None:
        entries = {
            name: {k: v for k, v in asdict(one).items() if k != "plugin"} for name, one in sorted(record.items())
        }
        fresh = self._plugins / f".{RECORD_FILE}.{os.getpid()}"
        _write(fresh, json.dumps(entries, indent=2).encode() + b"\n", 0o600)
        fresh.replace(self._plugins / RECORD_FILE)


def _entry(plugin: str, raw: Mapping[str, Any]) -> Installed:
    return Installed(
        plugin=plugin,
        version=raw["version"],
        sha256=raw["sha256"],
        permissions=raw["permissions"],
        installed_at=raw["installed_at"],
        requirements=tuple(raw["requirements"]),
        isolation=raw.get("isolation", "L0"),
        network=raw.get("network", False),
        shared=raw.get("shared", False),
    )


def _check_free(plugin: str, record: Mapping[str, Installed], *, replace: bool) -> None:
    taken = {name.casefold(): name for name in record}.get(plugin.casefold())
    if taken is not None and (not replace or taken != plugin):
        there = f"{taken} {record[taken].version}"
        raise PackageError(f"The plugin {there} is already installed. Use --replace to put this one in its place.")


def _write(path: Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
