"""A bare wire for tests of the SDK: frames in, frames out, in memory, nothing pretended."""

import asyncio
import itertools
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from paddock_sdk import AgentRunner
from paddock_sdk.connection import Connection
from paddock_sdk.protocol.frames import PluginInfo
from paddock_sdk.testing import a_context
from paddock_sdk.testing.memory import Memory

Frame = dict[str, Any]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Wire:
    """The host's end: say frames, read what the plugin said, in order."""

    def __init__(self, runner: AgentRunner) -> None:
        self.connection = Connection([runner], self._hear)
        self.runner = runner
        self.said: list[Frame] = []
        self._news = asyncio.Event()
        self._ids = itertools.count(1000)

    def _hear(self, line: bytes) -> None:
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        self.said.append(json.loads(line))
        self._news.set()

    def tell(self, method: str, **params: Any) -> None:
        self.raw(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())

    def raw(self, line: bytes) -> None:
        self.connection.receive(line)

    def post(self, method: str, **params: Any) -> int:
        """Send a request and do not wait."""
        frame_id = next(self._ids)
        self.raw(json.dumps({"jsonrpc": "2.0", "id": frame_id, "method": method, "params": params}).encode())
        return frame_id

    async def ask(self, method: str, **params: Any) -> Frame:
        """Send a request and wait for its response frame."""
        frame_id = self.post(method, **params)
        return await self.until(lambda frame: frame.get("id") == frame_id and "method" not in frame)

    def answer(self, frame: Frame, **outcome: Any) -> None:
        """Respond to a host call: `result=` or `error=`."""
        self.raw(json.dumps({"jsonrpc": "2.0", "id": frame["id"], **outcome}).encode())

    async def until(self, wanted: Callable[[Frame], bool], seconds: float = 30.0) -> Frame:
        async with asyncio.timeout(seconds):
            while True:
                for frame in self.said:
                    if wanted(frame):
                        return frame
                self._news.clear()
                await self._news.wait()

    async def settle(self) -> None:
        """Let everything that can go on without us go on; in memory that is a few turns of the loop."""
        for _ in range(20):
            await asyncio.sleep(0)

    async def hello(self, **changes: Any) -> Frame:
        params: Frame = {
            "protocol_version": "1",
            "host": {"name": "paddock", "version": "0"},
            "host_time": time.time(),
            "plugin": {"author": "a", "name": "b"},
            "limits": {"max_frame_bytes": 4194304, "max_result_bytes": 1048576, "run_credit": 256, "call_credit": 64},
        }
        return await self.ask("initialize", **{**params, **changes})

    async def start(self, run_id: str = "r1", text: str = "hello", **context: Any) -> Frame:
        manifest = self.runner.manifest(PluginInfo(author="a", name="b"))
        ctx = a_context(run_id, text, manifest, Memory({}, (), {}, {}, {}), **context)
        return await self.ask("run_agent", runner_id=manifest.id, runner_name=manifest.name, context=ctx)

    async def call(self, method: str) -> Frame:
        """The first host call of that name."""
        return await self.until(lambda frame: frame.get("method") == method)

    async def ended(self, run_id: str = "r1") -> Frame:
        """The terminal result of a run."""
        ends = {"run.completed", "run.failed"}
        frame = await self.until(
            lambda f: (
                f.get("method") == "run_result" and f["params"]["run_id"] == run_id and f["params"]["type"] in ends
            )
        )
        return frame["params"]

    def results(self, run_id: str = "r1") -> list[Frame]:
        frames = [frame["params"] for frame in self.said if frame.get("method") == "run_result"]
        return [params for params in frames if params["run_id"] == run_id]


@pytest.fixture
def wire() -> Callable[[AgentRunner], Wire]:
    return Wire
