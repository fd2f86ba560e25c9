"""One JSON-RPC peer that offers runners, over whatever carries lines: pending requests, runs, credit, host calls.

It never starts or stops a process: who owns the peer gives `kill`, and tells `end` when the peer is gone. Every run
hears of its end exactly once: a terminal result, or `lost`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, cast

import anyio
import structlog

from paddock.ports import Caller, HostCallHandler, Overloaded, RunListener, Unreadable
from paddock.rules.errors import EndCode
from paddock.rules.run.results import Result
from paddock.runners.wire import frames
from paddock.runners.wire.calls import WireCalls, WireLimits
from paddock.runners.wire.errors import HandshakeError, LogThrottle, Noise, PeerRefusedError
from paddock.runners.wire.frames import BadFrameError, Frame, RemoteError
from paddock.runners.wire.runs import WireRun, workspace_of
from paddock_sdk.protocol.frames import PARSE_ERROR
from paddock_sdk.protocol.host_calls import HOST_CALLS
from paddock_sdk.protocol.version import PROTOCOL_VERSION, is_compatible

PING_SECONDS = 1.0
CANCEL_SECONDS = 2.5
MAX_TEXT = 2000
FOREIGN_PER_SECOND = 20
"""How many results for runs that are none of the peer's are told on; a flood of them ends the connection anyway."""

NO_ID = "a host call needs an id, so that it can be answered"
BAD_ID = f"an id is an integer or a string of at most {frames.MAX_ID_CHARS} characters"
NO_SECRETS: Mapping[str, str] = {}

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

Reply = Callable[[Frame | None], None]
"""Hears the answer to a request; None when the peer is gone."""


class LineTransport(Protocol):
    """Carries one frame each. Both return at once and never raise for a peer that is gone."""

    def send(self, line: bytes) -> None: ...
    def close(self) -> None: ...


async def _at_once() -> None:
    return


@dataclass(slots=True)
class RunnerPeer:
    """Everything the owner of a peer gives to its connection."""

    transport: LineTransport
    caller: Caller
    handler: HostCallHandler
    kill: Callable[[], Awaitable[None]]
    """Make the peer go away at once, whatever it is."""
    drained: Callable[[], Awaitable[None]] = _at_once
    """Wait until the peer has read most of what was sent."""
    on_run_over: Callable[[], None] = lambda: None
    on_foreign: Callable[[Caller, str], None] = lambda _caller, _run_id: None
    on_overload: Overloaded = lambda _caller, _method, _params, _left_out: None
    limits: WireLimits = field(default_factory=WireLimits)
    methods: frozenset[str] = frozenset(HOST_CALLS)


class RunnerConnection:
    """The host's end of one peer."""

    def __init__(self, peer: RunnerPeer) -> None:
        self.caller = peer.caller
        self.limits = peer.limits
        self.closed = False
        self.reason = ""
        """Why it was closed, for a person."""
        self.broken = False
        """Whether it was closed because the peer broke the rules of the connection."""
        self.lost: frozenset[str] = frozenset()
        """The workspaces whose runs were live when it was closed."""
        self._peer = peer
        self._send = peer.transport.send
        self._runs: dict[str, WireRun] = {}
        self._pending: dict[int, Reply] = {}
        self._last_id = 0
        self._partial = bytearray()
        self._noise = Noise()
        self._foreign_told = LogThrottle(FOREIGN_PER_SECOND)
        self._overload_told = LogThrottle(FOREIGN_PER_SECOND)
        self._tasks: set[asyncio.Task[None]] = set()
        self._calls = WireCalls(
            peer.caller,
            peer.handler,
            peer.methods,
            send=self._write,
            drained=peer.drained,
            limits=peer.limits,
            is_live=self._runs.__contains__,
            overloaded=self._overloaded,
        )

    @property
    def live_runs(self) -> int:
        return len(self._runs)

    # --- what the host asks of the peer ---------------------------------------------------------------------------

    async def open(self, plugin: tuple[str, str], host: Mapping[str, Any], *, peers: Sequence[str] = ()) -> None:
        """Shake hands. Raises HandshakeError with a sentence."""
        limits = self.limits
        params: dict[str, Any] = {
            "protocol_version": PROTOCOL_VERSION,
            **host,
            "plugin": {"author": plugin[0], "name": plugin[1]},
            "limits": {
                "max_frame_bytes": limits.max_frame_bytes,
                "max_result_bytes": limits.max_result_bytes,
                "run_credit": limits.run_credit,
                "call_credit": limits.call_credit,
            },
        } | ({"peers": list(peers)} if peers else {})
        try:
            reply = await self.ask("initialize", params)
        except PeerRefusedError as problem:
            raise HandshakeError(f"the handshake failed: {problem}", problem.quoted) from None
        version = reply.get("protocol_version")
        if not isinstance(version, str) or not is_compatible(version):
            said = "names no protocol version" if version is None else f"speaks protocol version {str(version)[:20]!r}"
            raise HandshakeError(f"it {said}; this host speaks {PROTOCOL_VERSION!r}")

    async def list_runners(self) -> list[Any]:
        """The manifests as the peer wrote them, nothing checked but that it is a list."""
        runners = (await self.ask("list_agent_runners", {})).get("runners")
        if not isinstance(runners, list):
            raise PeerRefusedError("the answer to list_agent_runners has no list of runners")
        return cast("list[Any]", runners)

    async def drained(self) -> None:
        """Wait until the peer reads: a run that can wait for it begins then."""
        await self._peer.drained()

    def begin_run(
        self,
        runner_id: str,
        runner_name: str,
        run_id: str,
        context: Mapping[str, Any],
        listener: RunListener,
        secrets: Mapping[str, str] = NO_SECRETS,
    ) -> WireRun:
        """Write `run_agent`; the listener hears the rest."""
        run = WireRun(self, run_id, listener, self.limits.run_credit, workspace_of(context))
        params: dict[str, Any] = {"runner_id": runner_id, "runner_name": runner_name, "context": context}
        if secrets:
            params["secrets"] = secrets
        line = frames.request(self._last_id + 1, "run_agent", params)
        if self.closed:
            run.lose("runner.crashed", self.reason or "the runner is gone")
        elif run_id in self._runs:
            run.lose("runner.protocol_error", "a run of this id is already live here")
        elif len(line) > self.limits.max_frame_bytes:
            run.lose("payload_too_large", f"the run's context exceeds {self.limits.max_frame_bytes} bytes")
        else:
            self._runs[run_id] = run
            self._post(line, run.answered)
        return run

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its result object. Raises PeerRefusedError."""
        answer: asyncio.Future[Frame | None] = asyncio.get_running_loop().create_future()
        number = self.request(method, params, partial(_settle, answer))
        try:
            frame = await answer
        finally:
            self._pending.pop(number, None)
        if frame is None:
            raise PeerRefusedError(self.reason or "the runner is gone")
        if not isinstance(frame.result, dict):
            if frame.error is not None:
                raise PeerRefusedError(f"it refused {method}", frame.error.message[:MAX_TEXT])
            raise PeerRefusedError(f"its answer to {method} is not an object")
        return cast("dict[str, Any]", frame.result)

    def request(self, method: str, params: Mapping[str, Any], reply: Reply) -> int:
        return self._post(frames.request(self._last_id + 1, method, params), reply)

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self._write(frames.notification(method, params))

    async def ping(self, seconds: float = PING_SECONDS) -> bool:
        with anyio.move_on_after(seconds):
            try:
                await self.ask("ping", {})
            except PeerRefusedError:
                return not self.closed  # it said no, but it speaks
            return True
        return False

    def _post(self, line: bytes, reply: Reply) -> int:
        self._last_id += 1
        number = self._last_id
        if self.closed:
            reply(None)
        else:
            self._pending[number] = reply
            self._write(line)
        return number

    def _write(self, line: bytes) -> None:
        if not self.closed:
            self._send(line)

    # --- what the peer says ---------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """Take bytes as they come; whole lines are handled at once, the rest is kept, never more than one frame."""
        head, newline, rest = data.rpartition(b"\n")
        if newline:
            if self._partial:
                self._partial += head
                head = bytes(self._partial)
                self._partial.clear()
            for line in head.split(b"\n"):
                self.feed_line(line)
        if rest and not self.closed:
            self._partial += rest
            if len(self._partial) > self.limits.max_frame_bytes:
                self._too_large()

    def feed_line(self, line: bytes) -> None:
        if self.closed or not line:
            return
        if len(line) > self.limits.max_frame_bytes:
            self._too_large()
            return
        try:
            frame = frames.decode(line)
        except BadFrameError as problem:
            self._rubbish(line, problem)
            return
        if type(frame) is Result:
            run = self._runs.get(frame.run_id)
            if run is None:
                self._foreign(frame.run_id)
            else:
                run.take(frame, len(line))
        else:
            self._other(cast("Frame", frame), len(line))

    def _other(self, frame: Frame, size: int) -> None:
        if frame.method is None:
            reply = self._pending.pop(frame.id, None) if isinstance(frame.id, int) else None
            if reply is not None:
                reply(frame)
            else:
                self.unwanted("runner.unexpected_answer", id=str(frame.id)[:80])
        elif frame.id is not None:
            self._calls.take(frame if frames.is_id(frame.id) else _unanswerable(frame, BAD_ID), size)
        elif frame.method in self._peer.methods:
            self._calls.take(_unanswerable(frame, NO_ID), size)
        elif frame.method != "call_credit" or not self._calls.give_credit(frame.params):
            self.unwanted("runner.unknown_notification", method=frame.method[:80])

    def _rubbish(self, line: bytes, problem: BadFrameError) -> None:
        run = self._runs.get(problem.run_id) if problem.run_id else None
        if run is not None:
            self.fail_run(run, "runner.protocol_error", f"the runner sent a broken result: {problem}")
            return
        if problem.call is not None:
            self._calls.take(problem.call, len(line))
        elif reply := self._pending.pop(problem.answer_to, None) if problem.answer_to is not None else None:
            reply(Frame(error=RemoteError(PARSE_ERROR, f"its answer cannot be read: {problem}")))
        shown = "" if line.lstrip().startswith(b"{") else line[:200].decode("utf-8", "replace")  # a print, no words
        self.unwanted("runner.rubbish", line=shown, size=len(line), problem=str(problem)[:200])

    def _foreign(self, run_id: str) -> None:
        self.unwanted("runner.foreign_result", run_id=run_id[:200])
        if not self.closed and self._foreign_told.take():
            self._peer.on_foreign(self.caller, run_id[:200])

    def _overloaded(self, method: str, params: Any) -> None:
        self.unwanted("runner.too_many_calls", method=method[:80])
        if not self.closed and self._overload_told.take():
            self._peer.on_overload(self.caller, method, params, self._overload_told.take_left_out())

    def unwanted(self, action: str, **details: Any) -> None:
        """Count, and sometimes say, what should not have come; a flood of it ends the connection."""
        if self._noise.too_much():
            self.fail("runner.protocol_error", "the runner floods the host with lines nobody asked for")
        elif self._noise.tell.take():
            log.warning(
                "a runner sent what nobody asked for",
                action=action,
                plugin=self.caller.plugin,
                left_out=self._noise.tell.take_left_out(),
                **details,
            )

    def _too_large(self) -> None:
        self.fail("payload_too_large", f"the runner sent a frame of more than {self.limits.max_frame_bytes} bytes")

    # --- ends -----------------------------------------------------------------------------------------------------

    def forget(self, run: WireRun) -> None:
        """The run is over here; later frames for it are foreign."""
        if self._runs.get(run.run_id) is run:
            del self._runs[run.run_id]
            if self._calls.at_work:
                self._calls.run_over(run.run_id)
            self._peer.on_run_over()

    def fail_run(self, run: WireRun, code: EndCode, message: str) -> None:
        """End one run that broke the rules, tell the peer to stop it, and see to it that it does."""
        log.warning(
            "a run was ended because its runner broke the rules",
            action="runner.run_failed",
            plugin=self.caller.plugin,
            run_id=run.run_id,
            code=code,
            message=message,
        )
        run.lose(code, message)
        self.own(self._see_it_stopped(run))

    async def _see_it_stopped(self, run: WireRun) -> None:
        with anyio.move_on_after(CANCEL_SECONDS):
            if await run.ask_to_stop("protocol_error"):
                return
        await self.clean_up()

    async def clean_up(self) -> None:
        """After a run that would not end: kill the peer if it has no other run, or does not answer a ping."""
        if not self.closed and (not self._runs or not await self.ping()):
            self.end("runner.crashed", "the runner did not answer and was stopped")
            await self._peer.kill()

    def fail(self, code: EndCode, message: str) -> None:
        """The peer broke the rules of the connection itself: all its runs are lost and it is killed."""
        if not self.closed:
            log.warning(
                "a connection was ended because the runner broke the rules",
                action="runner.connection_failed",
                plugin=self.caller.plugin,
                code=code,
                message=message,
            )
            self.broken = True
            self.end(code, message)
            self.own(self._peer.kill())

    def end(self, code: EndCode, message: str) -> None:
        """Nothing more comes or goes. Every live run hears it once."""
        if self.closed:
            return
        self.closed, self.reason = True, message
        self.lost = frozenset(run.workspace for run in self._runs.values())
        self._partial.clear()
        pending, self._pending = self._pending, {}
        for run in list(self._runs.values()):
            run.lose(code, message)
        for reply in pending.values():
            reply(None)
        self._calls.close()

    def own(self, work: Awaitable[None]) -> None:
        """Let something finish on its own; it is kept until it has."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _unanswerable(frame: Frame, problem: str) -> Frame:
    """A host call whose answer could not be told from others: refused under no id."""
    return Frame(method=frame.method, params=Unreadable(problem, is_json=True))


def _settle(answer: asyncio.Future[Frame | None], frame: Frame | None) -> None:
    if not answer.done():
        answer.set_result(frame)
