"""A gateway over fixture programs, and a listener that lets a test wait for news instead of sleeping."""

import asyncio
import inspect
import json
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import anyio
import psutil

from paddock.ports import Caller, Placement, RunHandle
from paddock.rules.run.results import Result
from paddock.runners.gateway import Gateway
from paddock.runners.installed.catalog import Catalog
from paddock.runners.installed.plugins import Plugin
from paddock.runners.processes.isolation import Confinement
from paddock.runners.processes.shared import ProcessTimes, RunnerGate

FIXTURES = Path(__file__).parent / "fixtures"


class News:
    """Records what a listener hears."""

    def __init__(self) -> None:
        self.acks = 0
        self.results: list[Result] = []
        self.losses: list[tuple[str, str]] = []
        self.on_result: Callable[[Result], None] = lambda _result: None
        self._changed = anyio.Event()

    def acknowledged(self) -> None:
        self.acks += 1
        self._ring()

    def result(self, result: Result, size: int) -> None:
        assert size > 0
        self.results.append(result)
        self.on_result(result)
        self._ring()

    def lost(self, code: str, message: str) -> None:
        self.losses.append((code, message))
        self._ring()

    def _ring(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def until(self, true: Callable[["News"], bool], seconds: float = 30) -> "News":
        with anyio.fail_after(seconds):
            while not true(self):
                await self._changed.wait()
        return self

    async def over(self, seconds: float = 30) -> "News":
        return await self.until(lambda news: bool(news.losses or news.ended), seconds)

    @property
    def ended(self) -> bool:
        return bool(self.results) and self.results[-1].type in ("run.completed", "run.failed")

    @property
    def text(self) -> list[str]:
        return [result.data["chunk"]["content"] for result in self.results if result.type == "message.delta"]

    @property
    def code(self) -> str:
        assert len(self.losses) == 1, self.losses
        return self.losses[0][0]


class Calls:
    """A host-call handler that answers what it was told to."""

    def __init__(self) -> None:
        self.made: list[tuple[Caller, str, Mapping[str, Any]]] = []
        self.answer: Callable[[str, Mapping[str, Any]], Mapping[str, Any]] = lambda _method, _params: {"ok": True}

    async def __call__(self, caller: Caller, method: str, params: Mapping[str, Any], size: int) -> Mapping[str, Any]:
        self.made.append((caller, method, params))
        answer: Any = self.answer(method, params)
        return await answer if inspect.isawaitable(answer) else answer


def plugin(name: str = "nasty", program: str = "nasty.py", **changes: Any) -> Plugin:
    command = ("python", str(FIXTURES / program))
    return replace(Plugin("test", name, "0.1", FIXTURES, command), **changes)


class House:
    def __init__(self, gateway: Gateway, mark: str, calls: Calls, foreign: list[tuple[Caller, str]]) -> None:
        self.gateway = gateway
        self.mark = mark
        self.calls = calls
        self.foreign = foreign

    async def run(
        self, text: str, name: str = "nasty", run_id: str = "", workspace: str = ""
    ) -> tuple[News, RunHandle]:
        news = News()
        run_id = run_id or str(uuid4())
        context = {"run_id": run_id, "input": {"text": text}, "conversation": {"workspace_id": workspace}}
        place = Placement(workspace=workspace)
        handle = await self.gateway.start_run(f"plugin:test/{name}/default", run_id, context, news, place)
        return news, handle

    async def until_not_ready(self) -> None:
        """Wait until the host noticed that the process is gone."""
        with anyio.fail_after(30):
            while (await self.gateway.list_runners())[0].state == "ready":
                await asyncio.sleep(0.01)


@asynccontextmanager
async def house(data: Path, /, plugins: Sequence[Plugin] = (), **options: Any) -> AsyncGenerator[House]:
    calls, foreign = Calls(), []
    catalog = Catalog({each.id: each for each in plugins or [plugin()]})
    mark, whole = options.pop("mark", f"test-{uuid4().hex}"), {"host_version": "0.0.0"}
    whole |= {name: options.pop(name) for name in ("host_version", "elsewhere") if name in options}
    times = ProcessTimes(**{one.name: options.pop(one.name) for one in fields(ProcessTimes) if one.name in options})
    gate = RunnerGate(calls, on_foreign=lambda *told: foreign.append(told))
    gateway = Gateway(
        catalog, Confinement(home=data / "runners", mark=mark, **options), gate, times=times, **cast("Any", whole)
    )
    try:
        yield House(gateway, mark, calls, foreign)
    finally:
        await gateway.stop()
        assert marked(mark) == [], "a process outlived its gateway"


async def measured(what: str, data: Path) -> dict[str, Any]:
    """What a host finds that measures itself; see fixtures/measured.py."""
    command = [PYTHON, str(FIXTURES / "measured.py"), what, str(data)]
    said = (await anyio.run_process(command, stderr=None)).stdout
    return json.loads(said.splitlines()[-1])  # the last line, after its log


def marked(mark: str) -> list[int]:
    """Processes that carry a mark, zombies left out."""
    wanted = f"PADDOCK_MARK={mark}".encode()
    return [process.pid for process in psutil.process_iter() if wanted in _environ(process.pid)]


def _environ(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


async def eventually(true: Callable[[], bool], seconds: float = 30) -> None:
    """Poll what nothing announces, until it is true or the time is up."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not become true in time"
        await anyio.sleep(0.01)


PYTHON = sys.executable
