"""Surroundings of a run: its MCP endpoint, its working directory, its isolation.

They are set up after the run was authorised and before it is handed over. Secrets go beside the context, not into it.
Each endpoint has a fresh token that is known here by its hash alone and ends with the run. Nothing is stored: a host
that restarts ends its runs, and with them their tokens. A token stands for the connection its run was started on; the
gate decides what a caller may do.
"""

import secrets
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final

from paddock.host.runs.live_run import LiveRun, Spawn
from paddock.host.runs.working_directories import WorkingDirectories, conversation_key
from paddock.ports import RUN_SOCKET, Caller, Placement, RunnerGateway

NAME: Final = "host"
PATH: Final = "/mcp/run"
TOKEN_ENV: Final = "PADDOCK_RUN_TOKEN"  # noqa: S105 - the name of a variable
SECRET: Final = "mcp_token"  # noqa: S105 - the name of a secret


class RunEndpoints:
    def __init__(self, address: str | None = None) -> None:
        self.address = address
        """The address of this host over HTTP; unless it is set, known once the host listens."""
        self.socket: str | None = None
        """The socket that a sandbox without network reaches this host by."""
        self._runs: dict[bytes, LiveRun] = {}
        self._hashes: dict[str, bytes] = {}
        self._over: list[Callable[[str], None]] = []
        self._opened: list[Callable[[], None]] = []

    @property
    def reachable(self) -> int:
        return len(self._runs)

    def when_over(self, listener: Callable[[str], None]) -> None:
        """Call this with the id of each run whose endpoint closes."""
        self._over.append(listener)

    def when_opened(self, listener: Callable[[], None]) -> None:
        """Call this when the endpoint of a run opens."""
        self._opened.append(listener)

    def open(self, run: LiveRun, *, network: bool) -> tuple[Mapping[str, Any], Mapping[str, str]] | None:
        """Open a run's endpoint. Returns its description for the run and the secret; None when nothing can reach it."""
        url = self._url(network=network)
        if url is None:
            return None
        token = secrets.token_urlsafe(32)
        self.close(run.run_id)
        self._hashes[run.run_id] = digest = _hash(token)
        self._runs[digest] = run
        for listener in self._opened:
            listener()
        endpoint: dict[str, Any] = {
            "name": NAME,
            "transport": "http",
            "url": url,
            "headers": {},
            "token_env": TOKEN_ENV,
        }
        return endpoint, {SECRET: token}

    def close(self, run_id: str) -> None:
        """End a run's token; the run has ended."""
        digest = self._hashes.pop(run_id, None)
        if digest is not None:
            del self._runs[digest]
            for listener in self._over:
                listener(run_id)

    def find(self, token: str) -> LiveRun | None:
        run = self._runs.get(_hash(token))
        return None if run is None or run.settled or run.over or run.connection_id is None else run

    def _url(self, *, network: bool) -> str | None:
        if network:
            return None if self.address is None else f"{self.address}{PATH}"
        return None if self.socket is None else f"unix:{RUN_SOCKET}"


class RunSurroundings:
    def __init__(
        self, gateway: RunnerGateway, endpoints: RunEndpoints, directories: WorkingDirectories, spawn: Spawn
    ) -> None:
        self._gateway = gateway
        self._spawn = spawn
        self._in_use: dict[str, str] = {}
        """The directories that the host made, by run."""
        self._endpoints = endpoints
        self._directories = directories

    async def prepare(self, run: LiveRun, context: dict[str, Any]) -> Placement:
        """Set up what the run gets; add to the context what the run may see of it. Raises HostError."""
        grant, extras = run.grant, run.agent.extras
        directory = await self._directory(run, context) if grant.working_directory else None
        secrets: Mapping[str, str] = self._endpoint(run, context) if grant.mcp else {}
        return Placement(
            secrets=secrets,
            checked_for=run.agent.checked_for,
            isolation=extras.isolation,
            directory=directory,
            directory_is_ours=extras.working_directory is None,
            workspace=grant.scope.workspace_id,
            conversation=conversation_key(grant.scope.workspace_id, grant.scope.session_id),
            visible=(*extras.readable, *(str(skill["path"]) for skill in extras.skills if skill.get("path"))),
        )

    def close(self, run_id: str) -> None:
        self._endpoints.close(run_id)
        if (path := self._in_use.pop(run_id, None)) is not None:
            self._spawn(self._measure(path))

    async def _measure(self, path: str) -> None:
        await self._directories.measure(path)

    async def _directory(self, run: LiveRun, context: dict[str, Any]) -> str:
        found = await self._directories.of(run.grant.scope, run.agent.extras.working_directory)
        shown = {"working_directory": found.path} | ({"working_directory_shared": True} if found.shared else {})
        if not found.shared:
            self._in_use[run.run_id] = found.path
        context["runtime"]["metadata"] = {**context["runtime"]["metadata"], **shown}
        return found.path

    def _endpoint(self, run: LiveRun, context: dict[str, Any]) -> Mapping[str, str]:
        scope, wanted = run.grant.scope, run.agent.extras.isolation
        network = self._gateway.reaches_host(run.grant.runner_id, scope.workspace_id, wanted)
        opened = self._endpoints.open(run, network=network)
        if opened is None:
            return {}
        resource, secrets = opened
        resources: Mapping[str, Any] = context["resources"]
        context["resources"] = {**resources, "mcp": [resource, *resources["mcp"]]}
        return secrets


def caller_of(run: LiveRun) -> Caller:
    plugin = run.grant.runner_id.removeprefix("plugin:").rpartition("/")[0]
    return Caller(plugin, run.connection_id or "", door="mcp")


def _hash(token: str) -> bytes:
    return sha256(token.encode(errors="replace")).digest()
