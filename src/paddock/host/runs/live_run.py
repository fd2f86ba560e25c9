"""One run from its dispatch to its end: its runner's results become arrivals of the session, within its grant.

`runs.py` starts and stops it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import structlog

from paddock.host.runs.stored_results import TITLE_ACTION, suggested, with_compiled_ui
from paddock.host.session.arrivals import Arrival, ResultArrived
from paddock.host.session.loop import SessionLoop
from paddock.ports import RunHandle
from paddock.ports.runners import Observer, Unobserved
from paddock.rules.access.approvals import HANDOVER
from paddock.rules.access.limits import MAX_STATE_KEY_CHARS, MAX_STATE_SCOPE_BYTES, MAX_STATE_VALUE_BYTES, TokenBucket
from paddock.rules.access.permissions import Grant, state_key
from paddock.rules.errors import EndCode
from paddock.rules.rows.calls import ApprovalRow
from paddock.rules.rows.rows import Row
from paddock.rules.run.context import ResolvedAgent
from paddock.rules.run.results import APPROVALS, Result, Wrong, problem_with, with_approvals
from paddock.rules.session.messages import InputAcknowledged, RunFailed
from paddock_sdk.protocol.results import TERMINAL_TYPES

MAX_RUN_BYTES = 64 * 1024 * 1024
"""Most bytes of all results of a run: its open message is held in memory and becomes one row."""
CREDIT_STEP = 64
"""Credit is given back in steps, so that a stream of small results does not cost a frame each."""
LAST_RESORT_LOCALE = "en"
NOBODY = Unobserved()
STEPS = ("step.started", "step.finished")

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


class ResultSequencer:
    """Passes results on in order while some are still being stored. Each store operation bounds its own wait.

    At most a run's credit of them wait: credit is given back only for what the session has taken.
    """

    __slots__ = ("_pass_on", "_spawn", "_waiting")

    def __init__(self, pass_on: Callable[[Arrival], None], spawn: Spawn) -> None:
        self._pass_on = pass_on
        self._spawn = spawn
        self._waiting: deque[Arrival | Coroutine[Any, Any, Arrival]] | None = None

    def post(self, arrival: Arrival) -> None:
        """Pass an arrival on, after those that are still being worked on."""
        if self._waiting is None:
            self._pass_on(arrival)
        else:
            self._waiting.append(arrival)

    def post_when_done(self, work: Coroutine[Any, Any, Arrival]) -> None:
        """Pass on what `work` returns. It must not raise."""
        if self._waiting is not None:
            self._waiting.append(work)
            return
        self._waiting = deque([work])
        self._spawn(self._work_off(self._waiting))

    async def _work_off(self, waiting: deque[Arrival | Coroutine[Any, Any, Arrival]]) -> None:
        try:
            while waiting:
                first = waiting.popleft()
                self._pass_on(await first if asyncio.iscoroutine(first) else first)
            self._waiting = None
        finally:
            for left in waiting:  # only when the host is stopped
                if asyncio.iscoroutine(left):
                    left.close()


class KeepsCreated(Protocol):
    """Port for files that runs announce."""

    async def keep_created(self, grant: Grant, result: Result) -> Result:
        """Return the result as the session may hold it: by reference, or refused. Never raises."""
        ...


class ActionRequests(Protocol):
    """Port for actions that runs ask their platform to do."""

    def requested(self, grant: Grant, data: Mapping[str, Any], asked_before: int) -> Sequence[Row]:
        """The rows to write with an `action.requested`; `asked_before` counts those of the same run."""
        ...

    def asks(self, run_id: str) -> bool:
        """True when the run may leave something to its user's decision."""
        ...

    async def waiting(self, run_id: str) -> Sequence[Mapping[str, Any]]:
        """Questions that a run leaves to its user at its end."""
        ...


@dataclass(frozen=True, slots=True)
class ResultHandling:
    """Parts that handle the results of every run."""

    artifacts: KeepsCreated
    clock: Callable[[], float]
    spawn: Spawn
    actions: ActionRequests | None = None
    observer: Observer = NOBODY


class LiveRun:
    """One run from its dispatch to its end: the listener at its runner, its grant, its timers."""

    __slots__ = (
        "_actions",
        "_actions_asked",
        "_bytes",
        "_clock",
        "_post",
        "_sequencer",
        "_spawn",
        "_state_written",
        "_taken",
        "_timers",
        "agent",
        "artifacts",
        "close_surroundings",
        "forced",
        "grant",
        "handle",
        "observer",
        "over",
        "rate",
        "run_id",
        "session",
        "settled",
        "starting",
        "state_sizes",
        "stopping",
    )

    def __init__(
        self,
        session: SessionLoop,
        run_id: str,
        grant: Grant,
        agent: ResolvedAgent,
        handling: ResultHandling,
    ) -> None:
        self.session = session
        self.observer = handling.observer
        self.artifacts = handling.artifacts
        self._post: Callable[[Arrival], None] = session.post
        self._spawn = handling.spawn
        self._sequencer: ResultSequencer | None = None
        """Made for the first result that has to be stored before the session may take it."""
        self.run_id = run_id
        self.grant = grant
        self.agent = agent
        """The agent as it was when the run was authorised."""
        self.handle: RunHandle | None = None
        self.close_surroundings: Callable[[str], None] | None = None
        """Closes what was opened for this run alone."""
        self.starting: asyncio.Task[None] | None = None
        self.over = False
        """The session has recorded its end."""
        self.settled = False
        """The runner is done with it: it sent the last result, acknowledged a cancel, or is gone."""
        self.stopping = False
        self.forced = False
        self.rate: TokenBucket | None = None
        self.state_sizes: dict[str, int] = {}
        """Bytes in each scope when it started, and those its results added since; an upper bound."""
        self._state_written: dict[tuple[str, str], int] = {}
        """Bytes of the last value that it wrote under each key: a value written again counts once."""
        self._clock = handling.clock
        self._timers: list[asyncio.TimerHandle] = []
        self._taken = 0
        self._bytes = 0
        self._actions = handling.actions
        self._actions_asked = 0

    @property
    def connection_id(self) -> str | None:
        """The connection it was started on: the only one that may act for it."""
        return self.handle.connection_id if self.handle is not None else None

    # --- results ------------------------------------------------------------------------------------------------------

    def acknowledged(self) -> None:
        self._post(InputAcknowledged(self.run_id, self._clock()))

    def result(self, result: Result, size: int) -> None:
        wrong = problem_with(result, size)
        self._bytes += size
        if self._bytes > MAX_RUN_BYTES:
            wrong = Wrong(
                "payload_too_large", f"the run said more than {MAX_RUN_BYTES} bytes; send large data as artifacts"
            )
        self.settled = self.settled or result.type in TERMINAL_TYPES
        if wrong is not None:
            self._failed(wrong.code, wrong.message)
        elif result.type == "state.updated":
            self._state_updated(result, size)
        elif result.type == "action.requested":
            self._action_requested(result, size)
        elif result.type == "run.completed":
            self._completed(result, size)
        elif result.type == "artifact.created":
            self._post_when_done(self._created(result, size))
        elif result.type == "message.completed" and len(result.data) > 1:  # more than the message itself
            self._post(ResultArrived(self.run_id, with_compiled_ui(result, self._locale(), self._meta()), size))
        else:
            if result.type in STEPS:
                name = str(result.data.get("step_name"))
                self.observer.step(self.run_id, name, self._clock(), begins=result.type == "step.started")
            self._post(ResultArrived(self.run_id, result, size))

    def _meta(self) -> Mapping[str, str]:
        _, trace_id = self.session.input_of(self.run_id)
        return {"requestId": self.run_id, "traceId": trace_id, "userId": self.grant.scope.user_id}

    def _locale(self) -> str:
        given = self.session.find_input(self.run_id)
        return (given.locale if given else None) or self.agent.extras.locale or LAST_RESORT_LOCALE

    def lost(self, code: EndCode, message: str) -> None:
        self.settled = True
        self._failed(code, message)

    def _post_when_done(self, work: Coroutine[Any, Any, Arrival]) -> None:
        if self._sequencer is None:
            self._sequencer = ResultSequencer(self._post, self._spawn)
            self._post = self._sequencer.post
        self._sequencer.post_when_done(work)

    def _failed(self, code: EndCode, message: str) -> None:
        """Record a failure, after the results that came before it."""
        if not self.over:
            self._post(RunFailed(self.run_id, code, message, at=self._clock()))

    async def _created(self, result: Result, size: int) -> ResultArrived:
        if self.session.outage.is_on:
            await self.session.outage.is_over()
        return ResultArrived(self.run_id, await self.artifacts.keep_created(self.grant, result), size)

    def fail(self, code: EndCode, message: str) -> None:
        if not self.over:
            self.session.post(RunFailed(self.run_id, code, message, at=self._clock()))

    def _state_updated(self, result: Result, size: int) -> None:
        """Pass a state update on; as refused when it is outside the grant or the limits, and the run goes on."""
        scope = str(result.data["scope"])
        if (refusal := self._problem_with_state(scope, result)) is None:
            self._post(ResultArrived(self.run_id, result, size, scope_key=state_key(scope, self.grant)))
            return
        code, reason = refusal
        log.warning(
            "a runner asked for a state that cannot be kept",
            action="runner.state_refused",
            run_id=self.run_id,
            code=code,
            reason=reason,
        )
        data = {"code": code, "reason": reason}
        refused = msgspec.structs.replace(result, type="state.refused", data=data)
        self._post(ResultArrived(self.run_id, refused, size))

    def _problem_with_state(self, scope: str, result: Result) -> tuple[str, str] | None:
        """Return why a value is not kept; None when it is, and count it then."""
        if "state.set" not in self.grant.actions or scope not in self.grant.state_scopes:
            return "unauthorized", "a state scope outside the grant of the run"
        key, size = str(result.data["key"]), len(msgspec.json.encode(result.data["value"]))
        if len(key) > MAX_STATE_KEY_CHARS:
            return "payload_too_large", f"the key has more than {MAX_STATE_KEY_CHARS} characters"
        if size > MAX_STATE_VALUE_BYTES:
            return "payload_too_large", f"the value has {size} bytes, more than {MAX_STATE_VALUE_BYTES}"
        grown = self.state_sizes.get(scope, 0) - self._state_written.get((scope, key), 0) + size
        if grown > MAX_STATE_SCOPE_BYTES:
            return "payload_too_large", f"the scope would hold more than {MAX_STATE_SCOPE_BYTES} bytes"
        self.state_sizes[scope] = grown
        self._state_written[scope, key] = size
        return None

    def _action_requested(self, result: Result, size: int) -> None:
        if result.data.get("action") == HANDOVER:  # the session itself asks the user
            self._post(ResultArrived(self.run_id, result, size))
            return
        if result.data.get("action") == TITLE_ACTION:
            noted, rows = suggested(self.grant, result, self._clock())
            self._post(ResultArrived(self.run_id, noted, size, rows=rows))
            return
        rows = self._actions.requested(self.grant, result.data, self._actions_asked) if self._actions else ()
        self._actions_asked += 1
        approval = next((row.approval_id for row in rows if isinstance(row, ApprovalRow)), None)
        data = {**result.data, "approval_id": approval}
        self._post(ResultArrived(self.run_id, msgspec.structs.replace(result, data=data), size, rows=rows))

    def _completed(self, result: Result, size: int) -> None:
        if self._actions is not None and self._actions.asks(self.run_id):
            self._post_when_done(self._with_approvals(self._actions, result, size))
            return
        if APPROVALS in result.data:
            result = msgspec.structs.replace(result, data=with_approvals(result.data, ()))
        self._post(ResultArrived(self.run_id, result, size))

    async def _with_approvals(self, actions: ActionRequests, result: Result, size: int) -> ResultArrived:
        data = with_approvals(result.data, await actions.waiting(self.run_id))
        return ResultArrived(self.run_id, msgspec.structs.replace(result, data=data), size)

    # --- timers, credit, end ------------------------------------------------------------------------------------------

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        self._timers.append(asyncio.get_running_loop().call_later(seconds, act))

    def give_back(self, count: int) -> None:
        self._taken += count
        if self._taken >= CREDIT_STEP and self.handle is not None:
            self.handle.give_credit(self._taken)
            self._taken = 0

    def end(self) -> None:
        self.over = True
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()  # they refer to this run; without them it is freed at once, without a collection
        if self.close_surroundings is not None:
            self.close_surroundings(self.run_id)
        if self.starting is not None:
            self.starting.cancel()
