"""Surroundings of a run: its MCP endpoint, its working directory, its isolation.

Worked out after the run was authorised and before it is handed over; what is secret goes beside the context, not in it.
"""

from collections.abc import Mapping
from typing import Any

from paddock.host.runs.endpoints import RunEndpoints
from paddock.host.runs.live_run import LiveRun
from paddock.host.runs.result_sequencer import Spawn
from paddock.host.runs.working_directories import WorkingDirectories, conversation_key
from paddock.ports import Placement, RunnerGateway


class RunSurroundings:
    def __init__(
        self, gateway: RunnerGateway, endpoints: RunEndpoints, directories: WorkingDirectories, spawn: Spawn
    ) -> None:
        self._gateway = gateway
        self._spawn = spawn
        self._in_use: dict[str, str] = {}
        """Run to the directory the host made for it."""
        self._endpoints = endpoints
        self._directories = directories

    def needed(self, run: LiveRun) -> bool:
        """Tell if a run needs any of this; most do not, and begin without a wait."""
        return run.grant.mcp or run.grant.working_directory or run.part.extras.isolation is not None

    async def prepare(self, run: LiveRun, context: dict[str, Any]) -> Placement:
        """Put into the context what it may say, and return the rest. Raises HostError."""
        grant, extras = run.grant, run.part.extras
        directory = await self._directory(run, context) if grant.working_directory else None
        secrets: Mapping[str, str] = self._endpoint(run, context) if grant.mcp else {}
        return Placement(
            secrets=secrets,
            checked_for=run.part.checked_for,
            isolation=extras.isolation,
            directory=directory,
            directory_is_ours=extras.working_directory is None,
            workspace=grant.scope.workspace_id,
            conversation=conversation_key(grant.scope.workspace_id, grant.scope.conversation_id),
            visible=(*extras.readable, *(str(skill["path"]) for skill in extras.skills if skill.get("path"))),
        )

    def over(self, run_id: str) -> None:
        self._endpoints.close(run_id)
        if (path := self._in_use.pop(run_id, None)) is not None:
            self._spawn(self._measure(path))

    async def _measure(self, path: str) -> None:
        await self._directories.measure(path)

    async def _directory(self, run: LiveRun, context: dict[str, Any]) -> str:
        found = await self._directories.of(run.grant.scope, run.part.extras.working_directory)
        told = {"working_directory": found.path} | ({"working_directory_shared": True} if found.shared else {})
        if not found.shared:
            self._in_use[run.turn_id] = found.path
        context["runtime"]["metadata"] = {**context["runtime"]["metadata"], **told}
        return found.path

    def _endpoint(self, run: LiveRun, context: dict[str, Any]) -> Mapping[str, str]:
        scope, wanted = run.grant.scope, run.part.extras.isolation
        network = self._gateway.reaches_host(run.grant.runner_id, scope.workspace_id, wanted)
        opened = self._endpoints.open(run, network=network)
        if opened is None:
            return {}
        resource, secrets = opened
        resources: Mapping[str, Any] = context["resources"]
        context["resources"] = {**resources, "mcp": [resource, *resources["mcp"]]}
        return secrets
