"""The pretend host itself: asks, listens, answers host calls from memory, and minds the rules of the wire."""

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any

from pydantic_core import from_json

from paddock_sdk import encoding
from paddock_sdk.protocol.frames import REFUSED, AgentAPIError, ErrorResponse, Limits
from paddock_sdk.protocol.manifest import AgentRunnerManifest, ListAgentRunnersResponse
from paddock_sdk.protocol.results import MessageCompleted, StateUpdated
from paddock_sdk.testing.context import a_context
from paddock_sdk.testing.memory import Memory, RecordedCall
from paddock_sdk.testing.runs import PATIENCE_SECONDS, PretendRun, RunResults

PLUGIN = {"author": "pretend", "name": "plugin"}


class PretendHost:
    """One connection, from the host's side. `send` and `read` are its two ends."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.send: Callable[[bytes], None] = lambda _line: None
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._runs: dict[str, tuple[PretendRun, AgentRunnerManifest]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self.limits = Limits()
        self.greeting: Mapping[str, Any] = {}
        self.manifests: list[AgentRunnerManifest] = []

    @property
    def calls(self) -> list[RecordedCall]:
        """Every host call so far, in order."""
        return self._memory.calls

    @property
    def state(self) -> Mapping[str, Mapping[str, Any]]:
        """State as it is now, by scope and key."""
        return self._memory.state

    async def run(self, text: str = "", **context: Any) -> "RunResults":
        """One whole run. Keywords replace parts of the context: `config={...}`, `input={...}`, ..."""
        run = await self.start(text, **context)
        return await run.results()

    async def until_called(self, method: str) -> RecordedCall:
        """Wait for a host call; at once when it was made before."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                for call in self.calls:
                    if call.method == method:
                        return call
                self._memory.called.clear()
                await self._memory.called.wait()

    async def start(
        self, text: str = "", *, runner: str | None = None, secrets: Mapping[str, str] | None = None, **context: Any
    ) -> PretendRun:
        """Begin a run and come back as soon as it is accepted. `secrets` are what `api.secrets` holds."""
        manifest = next(m for m in self.manifests if runner in {None, m.name})
        run_id = f"run-{next(self._ids)}"
        ctx = a_context(run_id, text, manifest, self._memory, **context)
        run = PretendRun(run_id, self.limits.run_credit, self._end_of(run_id), self._give_credit)
        self._runs[run_id] = run, manifest
        self._memory.remember("user", text, ctx["event"]["event_id"])
        request = {
            "runner_id": manifest.id,
            "runner_name": manifest.name,
            "context": ctx,
            "secrets": dict(secrets or {}),
        }
        await self._ask("run_agent", request)
        return run

    # --- the wire ---------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def talking(self) -> AsyncGenerator[None, None]:
        """From the handshake to the shutdown."""
        hello = {"protocol_version": "1", "host": {"name": "pretend"}, "host_time": time.time(), "plugin": PLUGIN}
        self.greeting = await self._ask("initialize", {**hello, "limits": self.limits})
        self.manifests = ListAgentRunnersResponse.from_wire(await self._ask("list_agent_runners", {})).runners
        try:
            yield
        finally:
            await self._ask("shutdown", {})
            for task in self._answering:
                task.cancel()

    async def _ask(self, method: str, params: object) -> dict[str, Any]:
        frame_id = next(self._ids)
        answer = self._waiting[frame_id] = asyncio.get_running_loop().create_future()
        self.send(encoding.request(frame_id, method, params))
        return await asyncio.wait_for(answer, PATIENCE_SECONDS)

    def read(self, line: bytes) -> None:
        """One line from the plugin."""
        frame = from_json(line)
        if "method" not in frame:
            self._answered(frame)
        elif "id" in frame:
            self._spawn(self._answer(frame["id"], frame["method"], frame["params"]))
        elif frame["method"] == "run_result":
            self._heard(frame["params"])
        else:
            self._memory.give_credit(frame["params"]["id"], frame["params"]["credit"])

    def _heard(self, raw: dict[str, Any]) -> None:
        """Keep what a real host keeps: answers become history, state.updated becomes state."""
        result = self._runs[raw["run_id"]][0].add(raw)
        if isinstance(result, MessageCompleted):
            self._memory.remember("assistant", result.data.message.text, f"answer-of-{result.run_id}")
        elif isinstance(result, StateUpdated):
            self._memory.scope(result.data.scope)[result.data.key] = result.data.value

    def _answered(self, frame: dict[str, Any]) -> None:
        answer = self._waiting.pop(frame["id"])
        if "error" in frame:
            answer.set_exception(AssertionError(f"the plugin refused: {ErrorResponse.from_wire(frame).error.message}"))
        else:
            answer.set_result(frame["result"])

    async def _answer(self, call_id: int, method: str, params: dict[str, Any]) -> None:
        def chunk(sequence: int, data: object) -> None:
            self.send(encoding.notification("call_chunk", {"id": call_id, "sequence": sequence, "data": data}))

        manifest = self._runs[params["run_id"]][1]
        outcome = await self._memory.answer(manifest, call_id, method, params, chunk)
        if isinstance(outcome, AgentAPIError):
            self.send(encoding.error_response(call_id, REFUSED, outcome.message, outcome))
        else:
            self.send(encoding.response(call_id, outcome))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    def _give_credit(self, run_id: str, credit: int) -> None:
        self.send(encoding.notification("run_credit", {"run_id": run_id, "credit": credit}))

    def _end_of(self, run_id: str) -> Callable[[str], Any]:
        return lambda reason: self._ask("cancel_run", {"run_id": run_id, "reason": reason})
