"""Agents made over the API. Each belongs to one workspace; an agent of the file with the same name wins.

Settings that may be secret are sealed with the cluster's secret before they are stored. Settings from the API may not
name files or variables of the host: an administrator of a workspace is not an operator of the host.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, cast

import msgspec
import structlog
from pydantic import ValidationError

from paddock.host.agents.agents import AgentBinding, Agents
from paddock.host.agents.config import leads_outside, settle_config
from paddock.host.agents.shapes import AgentShape, in_words, name_problem
from paddock.host.people.principals import Principal
from paddock.ports import KeptRecords
from paddock.ports.definitions import AgentRecords, Sealing
from paddock.rules.access.host_only import NOTHING_OPENED, ApiAgents, named_outside
from paddock.rules.agents.config import (
    ALWAYS,
    MASK,
    SettingPath,
    drop,
    masked_again,
    references,
    secret_places,
    unmasked,
    with_defaults,
    with_values,
)
from paddock.rules.agents.resources import OfferedFile
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import AgentRow, AuditRow
from paddock.rules.values import replace
from paddock_sdk.protocol.manifest import AgentRunnerManifest

log = structlog.get_logger("paddock.agents")

READ_AT_ONCE = 20
ELSEWHERE = "the program or the address beside it has changed; write its value again"
MAX_AGENTS = 500
"""How many agents one workspace may make."""


@dataclass(eq=False)
class StoredAgents:
    agents: Agents
    _: KW_ONLY
    kept: AgentRecords
    records: KeptRecords
    clock: Callable[[], float]
    sealing: Sealing
    opened: ApiAgents = NOTHING_OPENED
    """Resources of the host that its operator lets these agents name."""
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    """Keeps `load` from removing an agent that is made while it works on an older list."""
    _in_force: dict[tuple[str, str], bytes] = field(default_factory=dict[tuple[str, str], bytes], init=False)
    """The stored body of each agent in force, by workspace and name."""

    async def load(self) -> None:
        """Put exactly the stored agents in force. One that cannot be read is logged and passed over."""
        async with self._one_at_a_time:
            rows = await self.kept.stored_agents()
            there = {(row.workspace_id, row.agent_id) for row in rows}
            self.agents.keep_stored(there)
            self._in_force = {key: body for key, body in self._in_force.items() if key in there}
            changed = [row for row in rows if self._in_force.get((row.workspace_id, row.agent_id)) != row.body]
            for number, row in enumerate(changed):
                if number % READ_AT_ONCE == 0:
                    await asyncio.sleep(0)  # let other tasks run, such as the beats of the cluster
                await self._put_in_force(row)

    async def _put_in_force(self, row: AgentRow) -> None:
        """An agent that cannot be used is logged; it keeps no other from being loaded, nor the host from starting."""
        body = row.body
        try:
            body = await self._bound(row)
        except (ValueError, msgspec.MsgspecError, RecursionError) as error:  # also of what is nested too deep
            about = {"agent": row.agent_id, "workspace": row.workspace_id, "reason": str(error)[:300]}
            log.warning("a stored agent cannot be used", action="agents.load", **about)
        self._in_force[row.workspace_id, row.agent_id] = body

    async def _bound(self, row: AgentRow) -> bytes:
        """Put one in force and return its body as it is stored then. When the store fails on the way, it is tried
        again later."""
        kept = msgspec.json.decode(row.body, type=dict[str, Any])
        defined, lost = self._unsealed(row, kept)
        shape = AgentShape.model_validate(defined)
        giver = Principal(row.workspace_id, row.updated_by)
        files = [await self._file(giver, file_id) for file_id in shape.files]
        there = tuple(file for file in files if file is not None)
        self.agents.store(row.workspace_id, shape.bound_as(row.agent_id, origin="api", files=there))
        if lost:
            text = "settings of an agent were sealed with another secret and cannot be opened: write them again"
            log.warning(text, action="agents.load", agent=row.agent_id, workspace=row.workspace_id, settings=lost)
        elif not all(self.sealing.is_current(text) for _, text in secret_places(kept)):
            return await self._seal_again(row, defined)
        return row.body

    # --- sealing

    def _sealed(self, workspace: str, agent_id: str, defined: Mapping[str, Any]) -> bytes:
        """Encode a definition with its secrets sealed, each for this agent and this place only."""
        sealed = {
            place: self.sealing.seal(text, (workspace, agent_id, *place)) for place, text in secret_places(defined)
        }
        return msgspec.json.encode(with_values(defined, sealed))

    def _unsealed(self, row: AgentRow, kept: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """Open the secrets of a stored definition; those that cannot be opened are left out and named."""
        found: dict[SettingPath, str] = {}
        lost: list[SettingPath] = []
        for place, text in secret_places(kept):
            if self.sealing.is_sealed(text):
                opened = self.sealing.opened(text, (row.workspace_id, row.agent_id, *place))
                if opened is None:
                    lost.append(place)
                else:
                    found[place] = opened
        defined = with_values(kept, found)
        for place in lost:
            drop(defined, place)
        return defined, [".".join(map(str, place)) for place in lost]

    async def _seal_again(self, row: AgentRow, defined: Mapping[str, Any]) -> bytes:
        """Seal secrets that an older version stored open, or that an older cluster secret sealed."""
        newest = await self.kept.stored_agent(row.workspace_id, row.agent_id)
        if newest is None or newest.body != row.body:
            return row.body  # it was changed, and sealed, a moment ago
        sealed = replace(row, body=self._sealed(row.workspace_id, row.agent_id, defined))
        await self.records.write([sealed])
        return sealed.body

    async def _look_again(self, workspace: str, agent_id: str) -> None:
        """Read the agent again before a change: another host may have changed it."""
        row = await self.kept.stored_agent(workspace, agent_id)
        if row is None:
            self._in_force.pop((workspace, agent_id), None)
            self.agents.remove(workspace, agent_id)
        elif self._in_force.get((workspace, agent_id)) != row.body:
            await self._put_in_force(row)

    async def put(
        self,
        who: Principal,
        agent_id: str,
        given: Mapping[str, Any],
        manifest: AgentRunnerManifest | None,
        *,
        anew: bool = False,
    ) -> tuple[AgentBinding, bool]:
        """Make or change an agent; True when it is new. With `anew` it must not exist yet. Raises HostError."""
        async with self._one_at_a_time:
            await self._look_again(who.workspace_id, agent_id)
            before = self.agents.stored(who.workspace_id).get(agent_id)
            try:
                if anew and before is not None:
                    text = f"there is an agent {agent_id!r} already; choose another name, or change that one"
                    raise HostError(ErrorCode.CONFLICT, text)
                shape = self._checked(who, agent_id, _with_secrets_of(before, given, manifest), before)
                files = await self._files(who, shape)
                binding = shape.bound_as(agent_id, origin="api", files=files)
                if problems := leads_outside(binding):
                    raise HostError(ErrorCode.INVALID_ARGUMENT, problems[0])
                if manifest is not None:
                    settle_config(binding, manifest, self.opened)
            except HostError as error:
                await self.records.write([self._audit(who, "agents.put", agent_id, error)])
                raise
            body = self._sealed(who.workspace_id, agent_id, binding.defined)
            row = AgentRow(who.workspace_id, agent_id, body, self.clock(), who.user_id)
            await self.records.write([row, self._audit(who, "agents.put", agent_id)])
            self.agents.store(who.workspace_id, binding)
            self._in_force[who.workspace_id, agent_id] = body
            return binding, before is None

    async def delete(self, who: Principal, agent_id: str) -> None:
        """Delete an agent; its running runs go on to their end."""
        async with self._one_at_a_time:
            await self._look_again(who.workspace_id, agent_id)
            try:
                self._check_mine(agent_id)
                if agent_id not in self.agents.stored(who.workspace_id):
                    raise HostError(ErrorCode.NOT_FOUND, f"there is no agent {agent_id!r} to delete")
            except HostError as error:
                await self.records.write([self._audit(who, "agents.delete", agent_id, error)])
                raise
            row = AgentRow(who.workspace_id, agent_id, b"", self.clock(), who.user_id)
            await self.records.write([row, self._audit(who, "agents.delete", agent_id)])
            self._in_force.pop((who.workspace_id, agent_id), None)
            self.agents.remove(who.workspace_id, agent_id)

    def _checked(
        self, who: Principal, agent_id: str, given: Mapping[str, Any], before: AgentBinding | None
    ) -> AgentShape:
        if (problem := name_problem(agent_id)) is not None:
            raise HostError(ErrorCode.INVALID_ARGUMENT, problem)
        self._check_mine(agent_id)
        if before is None and len(self.agents.stored(who.workspace_id)) >= MAX_AGENTS:
            raise HostError(ErrorCode.CONFLICT, f"a workspace makes at most {MAX_AGENTS} agents; delete one first")
        shape = _read(given)
        _refuse_references(shape)
        return shape

    async def _files(self, who: Principal, shape: AgentShape) -> tuple[OfferedFile, ...]:
        """The files of the agent. Raises HostError for one that its author did not upload."""
        files: list[OfferedFile] = []
        for file_id in shape.files:
            file = await self._file(who, file_id)
            if file is None:
                raise HostError(
                    ErrorCode.INVALID_ARGUMENT,
                    f"files: there is no artifact {file_id[:64]!r} of yours; upload it first",
                )
            files.append(file)
        return tuple(files)

    async def _file(self, giver: Principal, file_id: str) -> OfferedFile | None:
        """A file of its author's own; everybody who talks to the agent can read it, so no other file may be given."""
        row = await self.records.artifact(file_id)
        if row is None or not giver.owns(row):
            return None
        return OfferedFile(file_id, row.name or "", row.mime_type or "")

    def _check_mine(self, agent_id: str) -> None:
        if self.agents.in_file(agent_id):
            text = f"agent {agent_id!r} is from the agents file, which wins; change it there"
            raise HostError(ErrorCode.CONFLICT, text)

    def _audit(self, who: Principal, action: str, agent_id: str, error: HostError | None = None) -> AuditRow:
        return who.audit(action, agent_id[:64], at=self.clock(), error=error)


def _read(given: Mapping[str, Any]) -> AgentShape:
    try:
        return AgentShape.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the agent"
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"{place} {in_words(first)}") from error


def _with_secrets_of(
    before: AgentBinding | None, given: Mapping[str, Any], manifest: AgentRunnerManifest | None
) -> Mapping[str, Any]:
    """Replace masked secrets by their stored values. Raises HostError when one would go to another program or address.

    Without that check an administrator could name a server of their own and receive a secret they never knew.
    """
    known: Mapping[str, Any] = before.defined if before is not None else {}
    whole = dict(given)
    if isinstance(given.get("config"), dict):
        moved = before is not None and given.get("runner") != before.runner_id
        whole["config"] = _config_of(known.get("config", {}), given["config"], manifest, moved=moved)
    if isinstance(given.get("mcp"), list):
        whole["mcp"] = [
            _server_of(known.get("mcp", ()), server, number)
            for number, server in enumerate(cast("list[Any]", given["mcp"]))
        ]
    return whole


def _config_of(
    known: Mapping[str, Any], given: dict[str, Any], manifest: AgentRunnerManifest | None, *, moved: bool
) -> dict[str, Any]:
    def outside(config: Mapping[str, Any]) -> object:
        if manifest is None:  # any of them may be an address
            return {name: value for name, value in config.items() if name not in ALWAYS}
        return named_outside(with_defaults(config, manifest.config_schema), manifest.config_schema)

    whole = unmasked(given, known)
    hidden = next((name for name, value in whole.items() if value == MASK), None)
    if hidden is not None:
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"config.{hidden} is masked and was never set; write its value")
    again = next((name for name, value in given.items() if value == MASK), None) if moved else None
    if again := again or masked_again(given, known, outside):
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"config.{again} is masked, and {ELSEWHERE}")
    return whole


def _server_of(known: Sequence[Mapping[str, Any]], given: Any, number: int) -> Any:
    """An MCP server with its headers; a masked header keeps its value if name and address are the same."""
    server = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    headers = cast("dict[str, Any]", server["headers"]) if isinstance(server.get("headers"), dict) else {}
    if MASK not in headers.values():
        return cast("Any", given)
    named = (server.get("name"), server.get("url"))
    same: Mapping[str, Any] = next((one for one in known if (one["name"], one["url"]) == named), dict[str, Any]())
    whole = unmasked(headers, same.get("headers", {}))
    if hidden := next((name for name, value in whole.items() if value == MASK), None):
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"mcp.{number}.headers.{hidden} is masked, and {ELSEWHERE}")
    return {**server, "headers": whole}


def _refuse_references(shape: AgentShape) -> None:
    """Refuse references to the host's secrets; only the agents file may name them."""
    given = {"config": shape.config, "mcp": [server.headers for server in shape.mcp]}
    for place, _ in references(given, frozenset()):
        name = ".".join(map(str, place))
        text = f"{name}: references to secrets are read in the agents file only; write the value here"
        raise HostError(ErrorCode.INVALID_ARGUMENT, text)
