"""One run from its dispatch to its end: what its runner says becomes news for the session, within its grant.

When it is started and stopped is decided elsewhere (`runs.py`).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import structlog

from paddock.host.calls.artifacts import Artifacts
from paddock.host.runs.created_artifacts import keep_created
from paddock.host.runs.result_sequencer import ResultSequencer, Spawn
from paddock.host.session.arrivals import ResultArrived
from paddock.host.session.inputs import HANDOVER_ACTION
from paddock.host.session.loop import SessionLoop
from paddock.host.session.titles import TITLE_ACTION, suggested
from paddock.host.session.ui_compilation import with_compiled_ui
from paddock.ports import RunHandle
from paddock.ports.runners import Observer, Unobserved
from paddock.rules.access.limits import MAX_STATE_KEY_CHARS, MAX_STATE_SCOPE_BYTES, MAX_STATE_VALUE_BYTES, TokenBucket
from paddock.rules.access.permissions import Grant, state_key
from paddock.rules.rows.calls import ApprovalRow
from paddock.rules.rows.rows import Row
from paddock.rules.run.context import ResolvedAgent
from paddock.rules.run.open_calls import APPROVALS, with_approvals
from paddock.rules.run.results import TERMINAL_TYPES, Result, Wrong, problem_with
from paddock.rules.session.messages import InputAcknowledged, RunFailed

MAX_RUN_BYTES = 64 * 1024 * 1024
"""What one run may say altogether: its open message is held in memory and becomes one row."""
CREDIT_STEP = 64
"""Credit is given back in steps, so that a stream of small results does not cost a frame each."""
LAST_RESORT_LOCALE = "en"
NOBODY = Unobserved()
STEPS = ("step.started", "step.finished")

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


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

    artifacts: Artifacts
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
        "_line",
        "_state_written",
        "_taken",
        "_timers",
        "artifacts",
        "forced",
        "grant",
        "handle",
        "observer",
        "over",
        "part",
        "rate",
        "session",
        "settled",
        "starting",
        "state_sizes",
        "stopping",
        "turn_id",
    )

    def __init__(
        self,
        session: SessionLoop,
        turn_id: str,
        grant: Grant,
        part: ResolvedAgent,
        handling: ResultHandling,
    ) -> None:
        self.session = session
        self.observer = handling.observer
        self.artifacts = handling.artifacts
        self._line = ResultSequencer(session.post, handling.spawn)
        self.turn_id = turn_id
        self.grant = grant
        self.part = part
        """What its agent was when it was authorised, whatever becomes of the agent meanwhile."""
        self.handle: RunHandle | None = None
        self.starting: asyncio.Task[None] | None = None
        self.over = False
        """The session has recorded its end."""
        self.settled = False
        """The runner is done with it: said its last word, acknowledged a cancel, or is gone."""
        self.stopping = False
        self.forced = False
        self.rate: TokenBucket | None = None
        self.state_sizes: dict[str, int] = {}
        """Bytes in each scope when it started, and what it added since by its results; an upper bound."""
        self._state_written: dict[tuple[str, str], int] = {}
        """Bytes of its own last word on each key: a value that it writes again counts once."""
        self._clock = handling.clock
        self._timers: list[asyncio.TimerHandle] = []
        self._taken = 0
        self._bytes = 0
        self._actions = handling.actions
        self._actions_asked = 0

    @property
    def connection_id(self) -> str | None:
        """The connection it was started on: the only one that may speak for it."""
        return self.handle.connection_id if self.handle is not None else None

    # what the connection says

    def acknowledged(self) -> None:
        self._line.post(InputAcknowledged(self.turn_id, self._clock()))

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
            self._line.post_when_done(self._created(result, size))
        elif result.type == "message.completed" and len(result.data) > 1:  # more than the message itself
            self._line.post(ResultArrived(self.turn_id, with_compiled_ui(result, self._locale(), self._meta()), size))
        else:
            if result.type in STEPS:
                name = str(result.data.get("step_name"))
                self.observer.step(self.turn_id, name, self._clock(), begins=result.type == "step.started")
            self._line.post(ResultArrived(self.turn_id, result, size))

    def _meta(self) -> Mapping[str, str]:
        """Metadata that ties a document to this run."""
        _, trace_id = self.session.input_of(self.turn_id)
        return {"requestId": self.turn_id, "traceId": trace_id, "userId": self.grant.scope.user_id}

    def _locale(self) -> str:
        given = self.session.find_input(self.turn_id)
        return (given.locale if given else None) or self.part.extras.locale or LAST_RESORT_LOCALE

    def lost(self, code: str, message: str) -> None:
        self.settled = True
        self._failed(code, message)

    def _failed(self, code: str, message: str) -> None:
        """After all it said before."""
        if not self.over:
            self._line.post(RunFailed(self.turn_id, code, message, at=self._clock()))

    async def _created(self, result: Result, size: int) -> ResultArrived:
        if self.session.outage.is_on:
            await self.session.outage.is_over()
        now = self._clock()
        return ResultArrived(self.turn_id, await keep_created(self.artifacts, self.grant, result, now), size)

    def fail(self, code: str, message: str) -> None:
        if not self.over:
            self.session.post(RunFailed(self.turn_id, code, message, at=self._clock()))

    def _state_updated(self, result: Result, size: int) -> None:
        """Allowed inside the grant and the caps; else it is passed on as refused, and the run goes on."""
        scope = str(result.data["scope"])
        if (wrong := self._problem_with_state(scope, result)) is None:
            self._line.post(ResultArrived(self.turn_id, result, size, scope_key=state_key(scope, self.grant)))
            return
        log.warning("runner.state_refused", run_id=self.turn_id, code=wrong.code, reason=wrong.message)
        told = {"code": wrong.code, "reason": wrong.message}
        self._line.post(
            ResultArrived(self.turn_id, msgspec.structs.replace(result, type="state.refused", data=told), size)
        )

    def _problem_with_state(self, scope: str, result: Result) -> Wrong | None:
        """Why a value is not kept; None when it is, and then it counts."""
        if "state.set" not in self.grant.actions or scope not in self.grant.state_scopes:
            return Wrong("unauthorized", "a state scope outside the grant of the run")
        key, size = str(result.data["key"]), len(msgspec.json.encode(result.data["value"]))
        if len(key) > MAX_STATE_KEY_CHARS:
            return Wrong("payload_too_large", f"the key has more than {MAX_STATE_KEY_CHARS} characters")
        if size > MAX_STATE_VALUE_BYTES:
            return Wrong("payload_too_large", f"the value has {size} bytes, more than {MAX_STATE_VALUE_BYTES}")
        grown = self.state_sizes.get(scope, 0) - self._state_written.get((scope, key), 0) + size
        if grown > MAX_STATE_SCOPE_BYTES:
            return Wrong("payload_too_large", f"the scope would hold more than {MAX_STATE_SCOPE_BYTES} bytes")
        self.state_sizes[scope] = grown
        self._state_written[scope, key] = size
        return None

    def _action_requested(self, result: Result, size: int) -> None:
        if result.data.get("action") == HANDOVER_ACTION:  # the session's own: the user is asked there
            self._line.post(ResultArrived(self.turn_id, result, size))
            return
        if result.data.get("action") == TITLE_ACTION:
            told, kept = suggested(self.grant, result, self._clock())
            self._line.post(ResultArrived(self.turn_id, told, size, rows=kept))
            return
        rows = self._actions.requested(self.grant, result.data, self._actions_asked) if self._actions else ()
        self._actions_asked += 1
        approval = next((row.approval_id for row in rows if isinstance(row, ApprovalRow)), None)
        data = {**result.data, "approval_id": approval}
        self._line.post(ResultArrived(self.turn_id, msgspec.structs.replace(result, data=data), size, rows=rows))

    def _completed(self, result: Result, size: int) -> None:
        if self._actions is not None and self._actions.asks(self.turn_id):
            self._line.post_when_done(self._with_approvals(self._actions, result, size))
            return
        if APPROVALS in result.data:
            result = msgspec.structs.replace(result, data=with_approvals(result.data, ()))
        self._line.post(ResultArrived(self.turn_id, result, size))

    async def _with_approvals(self, actions: ActionRequests, result: Result, size: int) -> ResultArrived:
        data = with_approvals(result.data, await actions.waiting(self.turn_id))
        return ResultArrived(self.turn_id, msgspec.structs.replace(result, data=data), size)

    # what the host does

    def after(self, seconds: float, news: Callable[[], None]) -> None:
        self._timers.append(asyncio.get_running_loop().call_later(seconds, news))

    def give_back(self, count: int) -> None:
        self._taken += count
        if self._taken >= CREDIT_STEP and self.handle is not None:
            self.handle.give_credit(self._taken)
            self._taken = 0

    def end(self) -> None:
        self.over = True
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()  # they know us: without them we are freed at once, and not by the garbage collector
        if self.starting is not None:
            self.starting.cancel()
