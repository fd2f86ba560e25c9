"""Three hosts under load while hosts are killed and engines restarted. The rig; what must be true is in `ledger.py`."""

import asyncio
import json
import random
import signal
import time
import uuid
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx

from cluster.ledger import ENDED, TERMINAL, Told, Truth
from loopback import NO_TLS
from nats_server import NatsServer
from postgres_server import Server
from walk.hosts import HostProcess

RUNS = "/api/v1/agent/runs"
GIVE_UP_SECONDS = 60.0
SHORT = 120.0
"""In a loop that is no longer, each engine is restarted once, as soon as may be."""


class Mortal(httpx.AsyncHTTPTransport):
    """Says of a socket that died while it was made what it is: anyio asks for its peer's name and finds no socket."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        try:
            return await super().handle_async_request(request)
        except AttributeError as problem:
            raise httpx.ConnectError("the socket died while it was made", request=request) from problem


@dataclass
class Rig:
    hosts: list[HostProcess]
    nats: NatsServer
    postgres: Server
    chance: random.Random
    told: dict[str, Told] = field(default_factory=dict)
    deeds: list[str] = field(default_factory=list)
    """What was done to the cluster."""
    over: bool = False

    # --- clients

    async def submit_for_ever(self, client: httpx.AsyncClient, submitter: int) -> None:
        thread = str(uuid.uuid4())
        while not self.over:
            mine = thread if self.chance.random() < 0.3 else str(uuid.uuid4())
            text = self.chance.choice(["hello", "count 20 0.02", "count 60 0.02"])
            told = Told(f"{submitter}-{uuid.uuid4().hex[:12]}", mine, text)
            self.told[told.label] = told
            if await self._accepted(client, told):
                await self._read(client, told)

    async def _accepted(self, client: httpx.AsyncClient, told: Told) -> bool:
        """Ask until it is acknowledged, sometimes once more after that: the same request, the same answer."""
        body = {
            "threadId": told.thread,
            "runId": told.label,
            "messages": [{"id": "m", "role": "user", "content": told.text}],
            "forwardedProps": {"runtime_mode": "chat"},
        }
        end = time.monotonic() + GIVE_UP_SECONDS
        while time.monotonic() < end:
            with suppress(httpx.HTTPError):
                answer = await client.post(f"{self._any().url}{RUNS}", json=body, params={"agent": "slow"})
                if answer.status_code == 202:
                    told.tasks.add(answer.json()["taskId"])
                    if self.chance.random() < 0.8:
                        return True
                else:
                    assert answer.status_code in {429, 503}, f"{answer.status_code}: {answer.text}"
            await asyncio.sleep(0.1)
        return bool(told.tasks)

    async def _read(self, client: httpx.AsyncClient, told: Told) -> None:
        """Follow it to its end at whichever host answers, each time from where it stood."""
        end = time.monotonic() + GIVE_UP_SECONDS
        while not told.ends and time.monotonic() < end:
            headers = {"Last-Event-ID": told.heard[-1][0]} if told.heard else {}
            url = f"{self._any().url}{RUNS}/{told.task}/events"
            with suppress(httpx.HTTPError):
                async with client.stream("GET", url, headers=headers) as answer:
                    if answer.status_code == 200:
                        await self._hear(told, answer)
            await asyncio.sleep(0.05)

    async def _hear(self, told: Told, answer: httpx.Response) -> None:
        cursor = ""
        async for line in answer.aiter_lines():
            if line.startswith("id: "):
                cursor = line[4:]
            elif line.startswith("data: "):
                event = json.loads(line[6:])
                told.heard.append((cursor, event["type"], event.get("delta") or ""))
                if event["type"] in TERMINAL or self.chance.random() < 0.01:
                    return

    def _any(self) -> HostProcess:
        return self.chance.choice(self.hosts)

    # --- what happens to the cluster

    async def torment(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        engines = [self._restart_nats, self._restart_postgres]
        while time.monotonic() < end:
            await asyncio.sleep(self.chance.uniform(5, min(15, max(5.0, seconds / 6))))
            await asyncio.to_thread(self._kill_a_host)
            if engines and (seconds <= SHORT or self.chance.random() < 0.5):
                await asyncio.to_thread(engines.pop(0))
            if not engines and seconds > SHORT:
                engines = [self._restart_nats, self._restart_postgres]

    async def restart_the_database(self, seconds: float) -> None:
        """Again and again, and nothing else."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            await asyncio.sleep(self.chance.uniform(4, 8))
            await asyncio.to_thread(self._restart_postgres)

    async def roll(self) -> None:
        """One host after the other is told to stop, and started again when it has."""
        for host in self.hosts:
            await asyncio.to_thread(self._restart, host)

    def _restart(self, host: HostProcess) -> None:
        assert host.process is not None
        host.process.send_signal(signal.SIGTERM)
        assert host.process.wait(30) == 0, "".join(host.output[-100:])
        host.start()
        self.deeds.append(f"restarted {host.data.name}")

    def _kill_a_host(self) -> None:
        host = self._any()
        host.kill()
        host.start()
        self.deeds.append(f"killed {host.data.name}")

    def _restart_nats(self) -> None:
        self.nats.kill()
        time.sleep(self.chance.uniform(0.1, 2))
        self.nats.start()
        self.deeds.append("restarted NATS")

    def _restart_postgres(self) -> None:
        self.postgres.stop("immediate")
        time.sleep(self.chance.uniform(0.1, 2))
        self.postgres.start()
        self.deeds.append("restarted PostgreSQL")

    # --- the whole

    async def run(
        self, meanwhile: Coroutine[Any, Any, None], submitters: int = 8, each: int = 5
    ) -> dict[str, Truth | None]:
        limits = httpx.Limits(max_connections=submitters * each * 2)
        transport = Mortal(limits=limits, verify=NO_TLS)
        async with httpx.AsyncClient(timeout=30, transport=transport) as client, asyncio.TaskGroup() as group:
            for number in range(submitters * each):
                group.create_task(self.submit_for_ever(client, number))
            await meanwhile
            self.over = True
        async with httpx.AsyncClient(timeout=20, verify=NO_TLS) as client:
            tasks = {task for told in self.told.values() for task in told.tasks}
            return {task: await self._truth(client, task) for task in sorted(tasks)}

    async def _truth(self, client: httpx.AsyncClient, task: str) -> Truth | None:
        host, end = self.hosts[0], time.monotonic() + 20
        while True:
            answer = await client.get(f"{host.url}{RUNS}/{task}")
            if answer.status_code == 404:
                return None
            status, code = answer.json().get("status", ""), answer.json().get("code") or ""
            if status in ENDED or time.monotonic() > end:
                break
            await asyncio.sleep(0.1)
        replay = Told("", "", "")
        if status in ENDED:
            async with client.stream("GET", f"{host.url}{RUNS}/{task}/events") as stream:
                async for line in stream.aiter_lines():
                    if line.startswith("data: "):
                        event = json.loads(line[6:])
                        replay.heard.append(("", event["type"], event.get("delta") or ""))
        return Truth(status, replay.words, replay.ends, code)
