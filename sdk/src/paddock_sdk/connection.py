"""The plugin's end of one connection: reads frames, answers requests, starts and stops runs. Knows no transport."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import from_json

from paddock_sdk import __version__, encoding
from paddock_sdk.calls import Calls, RunCalls
from paddock_sdk.causes import complaint_of
from paddock_sdk.protocol.errors import INVALID_ARGUMENT, NOT_FOUND
from paddock_sdk.protocol.frames import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    REFUSED,
    AgentAPIError,
    InitializeParams,
    PluginInfo,
)
from paddock_sdk.protocol.ids import RunnerId
from paddock_sdk.protocol.manifest import AgentRunnerManifest
from paddock_sdk.protocol.version import PROTOCOL_VERSION, is_compatible
from paddock_sdk.run import Run
from paddock_sdk.runner import AgentRunner, RunContext
from paddock_sdk.secrets import Secrets

log = logging.getLogger("paddock_sdk")

LAST_WORDS_SECONDS = 2.0
"""How long runs may take to end when the connection ends."""
NO_DEADLINE_SECONDS = 3600.0
"""Our hosts give every run a deadline; with one that does not, a call still ends some day."""

Reply = Mapping[str, Any] | None
"""What a request is answered with; None when the answer comes later."""


class RefusedError(Exception):
    def __init__(self, rpc_code: int, code: str, message: str) -> None:
        super().__init__(message)
        self.rpc_code, self.code = rpc_code, code


class Connection:
    """Feed it lines with `receive`; it writes lines with `send`. `closed` is set when it has said its last word."""

    def __init__(self, runners: Sequence[AgentRunner], send: Callable[[bytes], None]) -> None:
        names = [runner.name for runner in runners]
        if not names or len(set(names)) != len(names):
            raise ValueError(f"serve() needs runners with different names, not {names}")
        self._offered = runners
        self._send = send
        self._calls = Calls(send)
        self._plugin: PluginInfo | None = None
        self._runners: dict[str, AgentRunner] = {}
        self._runs: dict[str, Run] = {}
        self._clock_offset = 0.0
        self._closing: asyncio.Task[None] | None = None
        self._all_ended = asyncio.Event()
        self.closed = asyncio.Event()
        self._requests: dict[str, Callable[[Any, Mapping[str, Any]], Reply]] = {
            "initialize": self._initialize,
            "list_agent_runners": self._list_agent_runners,
            "run_agent": self._run_agent,
            "cancel_run": self._cancel_run,
            "ping": lambda _id, _params: {},
            "shutdown": self._shutdown,
        }

    @property
    def live_runs(self) -> int:
        return len(self._runs)

    @property
    def max_frame_bytes(self) -> int:
        return self._calls.limits.max_frame_bytes

    # --- frames -----------------------------------------------------------------------------------------------------

    def receive(self, line: bytes) -> None:
        """Read one frame. A bad one is answered, never fatal."""
        try:
            frame = from_json(line)
        except ValueError:
            self._refuse(None, RefusedError(PARSE_ERROR, INVALID_ARGUMENT, "the line is not JSON"))
            return
        if isinstance(frame, dict):
            self._route(cast("dict[str, Any]", frame))
        else:
            self._refuse(None, RefusedError(INVALID_REQUEST, INVALID_ARGUMENT, "the frame is not an object"))

    def _route(self, frame: dict[str, Any]) -> None:
        method, params = frame.get("method"), frame.get("params", {})
        if method is None:
            self._calls.answered(frame)
        elif not isinstance(params, dict) or not isinstance(method, str):
            refusal = RefusedError(
                INVALID_REQUEST, INVALID_ARGUMENT, "method is not a string or params is not an object"
            )
            self._refuse(frame.get("id"), refusal)
        elif "id" in frame:
            self._answer(frame["id"], method, cast("dict[str, Any]", params))
        else:
            self._hear(method, cast("dict[str, Any]", params))

    def _answer(self, frame_id: object, method: str, params: Mapping[str, Any]) -> None:
        try:
            reply = self._handler(method)(frame_id, params)
        except RefusedError as refusal:
            self._refuse(frame_id, refusal)
        except (ValidationError, KeyError, TypeError) as error:
            self._refuse(frame_id, RefusedError(INVALID_PARAMS, INVALID_ARGUMENT, f"{method}: {error}"))
        else:
            if reply is not None:
                self._send(encoding.response(frame_id, reply))

    def _handler(self, method: str) -> Callable[[Any, Mapping[str, Any]], Reply]:
        handler = self._requests.get(method)
        if handler is None:
            raise RefusedError(METHOD_NOT_FOUND, INVALID_ARGUMENT, f"there is no method {method!r}")
        if self._plugin is None and method != "initialize":
            raise RefusedError(INVALID_REQUEST, INVALID_ARGUMENT, f"{method} before initialize")
        return handler

    def _refuse(self, frame_id: object, refusal: RefusedError) -> None:
        error = AgentAPIError(code=refusal.code, message=str(refusal))
        self._send(encoding.error_response(frame_id, refusal.rpc_code, str(refusal), error))

    def _hear(self, method: str, params: Mapping[str, Any]) -> None:
        """A notification. Unknown ones are from the future and are ignored."""
        if method == "run_credit":
            run, credit = self._runs.get(str(params.get("run_id"))), params.get("credit")
            if run is not None and isinstance(credit, int):
                run.give_credit(credit)
        elif method == "steering_available":
            run = self._runs.get(str(params.get("run_id")))
            if run is not None:
                run.steering_waits()
        elif method == "call_chunk":
            self._calls.chunk(params)

    # --- requests ---------------------------------------------------------------------------------------------------

    def _initialize(self, _id: object, params: Mapping[str, Any]) -> Reply:
        if self._plugin is not None:
            raise RefusedError(INVALID_REQUEST, INVALID_ARGUMENT, "initialize was already said")
        hello = InitializeParams.from_wire(params)
        if not is_compatible(hello.protocol_version):
            sentence = f"this runner speaks protocol {PROTOCOL_VERSION}, the host {hello.protocol_version}"
            raise RefusedError(REFUSED, INVALID_ARGUMENT, sentence)
        self._plugin = hello.plugin
        self._calls.limits = hello.limits
        self._clock_offset = time.time() - hello.host_time
        self._runners = {str(RunnerId(hello.plugin.author, hello.plugin.name, r.name)): r for r in self._offered}
        RunContext.model_rebuild()  # compile the shape of a run now: the first run should not wait for it
        return {"protocol_version": PROTOCOL_VERSION, "sdk": {"name": "paddock-sdk", "version": __version__}}

    def _list_agent_runners(self, _id: object, _params: Mapping[str, Any]) -> Reply:
        assert self._plugin is not None
        return {"runners": list(self._manifests(self._plugin))}

    def _manifests(self, plugin: PluginInfo) -> Iterator[AgentRunnerManifest]:
        """One runner that describes itself wrongly never hides the others."""
        for runner in self._offered:
            try:
                yield runner.manifest(plugin)
            except ValueError as problem:
                log.error("runner %r is not offered: %s", runner.name, _in_plain_words(problem))  # noqa: TRY400 - a traceback would only show our own lines

    def _run_agent(self, frame_id: object, params: Mapping[str, Any]) -> Reply:
        runner = self._runners.get(params["runner_id"])
        if runner is None:
            raise RefusedError(REFUSED, NOT_FOUND, f"this plugin has no runner {params['runner_id']!r}")
        ctx = RunContext.from_wire(params["context"])
        if ctx.run_id in self._runs or self._closing is not None:
            raise RefusedError(
                REFUSED, INVALID_ARGUMENT, f"run {ctx.run_id} is not startable: known already, or we are closing"
            )
        calls = RunCalls(self._calls, ctx.run_id, self._deadline_of(ctx))
        run = self._runs[ctx.run_id] = Run(
            runner, ctx, calls, self._send, self._calls.limits, Secrets.from_wire(params.get("secrets"))
        )
        self._send(encoding.response(frame_id, {"run_id": ctx.run_id, "accepted": True}))  # the ack comes before run()
        run.start(self._ended)
        return None

    def _deadline_of(self, ctx: RunContext) -> float:
        """The run's deadline on the event loop's clock, corrected by how far the host's clock is from ours."""
        now = asyncio.get_running_loop().time()
        if ctx.runtime.deadline_at is None:
            return now + NO_DEADLINE_SECONDS
        return now + (ctx.runtime.deadline_at + self._clock_offset - time.time())

    def _cancel_run(self, frame_id: object, params: Mapping[str, Any]) -> Reply:
        run = self._runs.get(params["run_id"])
        if run is None:
            return {"run_id": params["run_id"], "ended": True}
        run.cancel_ids.append(frame_id)
        run.cancel()
        return None

    def _ended(self, run: Run) -> None:
        del self._runs[run.run_id]
        for frame_id in run.cancel_ids:
            self._send(encoding.response(frame_id, {"run_id": run.run_id, "ended": True}))
        if self._closing is not None and not self._runs:
            self._all_ended.set()

    def _shutdown(self, frame_id: object, _params: Mapping[str, Any]) -> Reply:
        self.close(lambda: self._send(encoding.response(frame_id, {})))
        return None

    # --- the end ----------------------------------------------------------------------------------------------------

    def close(self, last_word: Callable[[], None] = lambda: None) -> None:
        """Cancel what runs, give it a moment, say the last word. Idempotent."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close(last_word))

    async def _close(self, last_word: Callable[[], None]) -> None:
        for run in self._runs.values():
            run.cancel()
        if self._runs:
            try:
                await asyncio.wait_for(self._all_ended.wait(), LAST_WORDS_SECONDS)
            except TimeoutError:
                log.warning("%d runs did not end in %s s and are left behind", len(self._runs), LAST_WORDS_SECONDS)
        last_word()
        self.closed.set()


def _in_plain_words(problem: ValueError) -> str:
    """Which class attribute does not fit, and why."""
    if not isinstance(problem, ValidationError):
        return str(problem)
    first = problem.errors()[0]
    where = ("permissions", *first["loc"]) if problem.title == "AgentRunnerPermissions" else first["loc"]
    place = ".".join(str(part) for part in where)
    return f"{place}: {complaint_of(first)}, not {str(first['input'])[:60]!r}"
