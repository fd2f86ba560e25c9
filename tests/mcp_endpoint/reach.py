"""A small house whose runs can be reached over MCP: uvicorn on a free port, the official client against it."""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import httpx2
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from host.scripted import AtRunner, ScriptedGateway, SmallHouse, small_house
from http_api.doors import serving
from loopback import NO_TLS
from paddock.host.calls.work import CallHandler
from paddock.host.runs.surroundings import SECRET, RunEndpoints, RunSurroundings
from paddock.host.runs.working_directories import WorkingDirectories
from paddock.http_api.mcp.door import McpDoor
from paddock.rules.rows.rows import AuditRow

EVERYTHING: Mapping[str, Any] = {
    "tools": ["call"],
    "history": ["page", "search"],
    "events": ["get"],
    "artifacts": ["read", "create"],
    "storage": ["plugin"],
    "mcp": ["use"],
    "working_directory": ["use"],
}


class Reachable:
    """One live run, and the way to it."""

    def __init__(self, at_runner: AtRunner, url: str) -> None:
        self.at_runner = at_runner
        self.url = f"{url}/mcp/run"
        self.token = at_runner.placement.secrets.get(SECRET, "")

    @property
    def run_id(self) -> str:
        return self.at_runner.run_id

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    @asynccontextmanager
    async def client(self, token: str | None = None) -> AsyncGenerator[ClientSession]:
        """The official client, with this run's token or another's."""
        headers = {"Authorization": f"Bearer {token}"} if token else self.headers
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30, verify=NO_TLS) as http,
            streamable_http_client(self.url, http_client=http) as streams,
            ClientSession(streams[0], streams[1]) as session,
        ):
            await session.initialize()
            yield session


@dataclass
class Reach:
    house: SmallHouse
    gateway: ScriptedGateway
    endpoints: RunEndpoints
    door: McpDoor
    url: str

    async def a_run(self, text: str = "hi", *, thread: str | None = None) -> Reachable:
        await self.house.say(text, thread=thread or str(uuid.uuid4()))
        return Reachable(await self.gateway.next(), self.url)

    async def rows(self, action: str | None = None) -> list[AuditRow]:
        await self.house.audit.flush()
        rows = await self.house.store.audit(limit=10_000)
        return [row for row in rows if action in (None, row.action)]


@asynccontextmanager
async def reach(
    root: Path,
    *,
    permissions: Mapping[str, Any] = EVERYTHING,
    work: Mapping[str, CallHandler] | None = None,
    **more: Any,
) -> AsyncGenerator[Reach]:
    gateway = SearchingGateway(permissions)
    tasks: set[asyncio.Task[None]] = set()

    def spawn(coroutine: Any) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(coroutine)
        tasks.add(task)
        return task

    endpoints = RunEndpoints()
    surroundings = RunSurroundings(gateway, endpoints, WorkingDirectories(root), spawn)
    async with small_house(gateway=gateway, work=work, surroundings=surroundings, **more) as house:
        clock = asyncio.get_running_loop().time
        door = McpDoor(endpoints, house.calls, note=house.audit.soon, clock=clock, spawn=spawn)
        async with serving(door) as url:
            endpoints.address = url
            yield Reach(house, gateway, endpoints, door, url)
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [one for one in results if isinstance(one, Exception)] == []


class SearchingGateway(ScriptedGateway):
    """Its runner also searches the history."""

    async def manifest(self, runner_id: str, workspace: str = "") -> Any:
        manifest = await super().manifest(runner_id, workspace)
        return manifest.model_copy(
            update={"context": manifest.context.model_copy(update={"supports_history_search": True})}
        )


async def ask(url: str, token: str | None, body: Any = None, **headers: str) -> httpx.Response:
    """One plain request, as a stranger would make it."""
    given = {"accept": "application/json, text/event-stream"} | {
        key.replace("_", "-"): value for key, value in headers.items()
    }
    if token is not None:
        given["authorization"] = f"Bearer {token}"
    async with httpx.AsyncClient(timeout=30, verify=NO_TLS) as http:
        return await http.post(url, json=body or INITIALIZE, headers=given)


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
}
