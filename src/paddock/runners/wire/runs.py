"""One run at its runner, as the connection sees it: acknowledgement, order of results, credit, and one end."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec
import structlog

from paddock.ports import RunListener
from paddock.rules.errors import EndCode, RunnersOwn
from paddock.rules.run.outputs import MAX_CODE, MAX_REASON
from paddock.rules.run.results import SHAPES, Result
from paddock.runners.wire.errors import PeerRefusedError
from paddock.runners.wire.frames import Frame
from paddock_sdk.protocol.results import TERMINAL_TYPES

if TYPE_CHECKING:
    from paddock.runners.wire.connection import RunnerConnection

MAX_SEQUENCE = 2**53

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class WireRun:
    """The host's end of one run (ports.RunHandle)."""

    __slots__ = (
        "_acknowledged",
        "_connection",
        "_credit",
        "_last",
        "_listener",
        "_owed",
        "_puzzled",
        "_window",
        "live",
        "run_id",
        "workspace",
    )

    def __init__(
        self, connection: "RunnerConnection", run_id: str, listener: RunListener, window: int, workspace: str = ""
    ) -> None:
        self.run_id = run_id
        self.workspace = workspace
        self.live = True
        """Whether the listener still listens."""
        self._connection = connection
        self._listener = listener
        self._window = window
        self._credit = window
        self._owed = 0
        self._last = 0
        self._acknowledged = False
        self._puzzled = False
        """Whether it was said that this run speaks of things we do not know."""

    @property
    def connection_id(self) -> str:
        return self._connection.caller.connection_id

    # --- what the host does (ports.RunHandle) ---------------------------------------------------------------------

    async def cancel(self, reason: str) -> bool:
        """Ask the runner to stop; True when it said the run has ended. The caller bounds the wait."""
        if not self.live:
            return True
        ended = await self.ask_to_stop(reason)
        if ended:
            self.release()
        return ended

    async def ask_to_stop(self, reason: str) -> bool:
        try:
            await self._connection.ask("cancel_run", {"run_id": self.run_id, "reason": reason})
        except PeerRefusedError:
            return self._connection.closed
        return True

    def give_credit(self, count: int) -> None:
        if self.live:
            count, self._owed = count + self._owed, 0
            self._credit += count
            self._connection.notify("run_credit", {"run_id": self.run_id, "credit": count})

    def steering_available(self, waiting: int) -> None:
        if self.live:
            self._connection.notify("steering_available", {"run_id": self.run_id, "waiting": waiting})

    async def force_stop(self) -> None:
        """Stop listening at once; kill the process if this was its only run or it does not answer a ping."""
        self.release()
        await self._connection.clean_up()

    def release(self) -> None:
        """The run is over: forget it. Later frames for it are foreign."""
        self.live = False
        self._connection.forget(self)

    # --- what the runner says -------------------------------------------------------------------------------------

    def answered(self, frame: Frame | None) -> None:
        """The reply to `run_agent`: the acknowledgement, or a refusal. None: the peer is gone, and `lose` says so."""
        if frame is None or not self.live:
            return
        if frame.error is not None:
            self.lose(_code(frame.error.data), frame.error.message[:MAX_REASON] or "the runner refused the run")
        elif problem := _problem_with_answer(frame.result, self.run_id):
            self._connection.fail_run(self, "runner.protocol_error", f"the runner's answer to run_agent {problem}")
        else:
            self._acknowledge()

    def take(self, result: Result, size: int) -> None:
        """One result: check its order and its price, then hand it on."""
        sequence = result.sequence
        if sequence != self._last + 1:
            if sequence is None:
                result = msgspec.structs.replace(result, sequence=self._last + 1)
            elif not self._tolerable(sequence):
                return
        self._last = cast("int", result.sequence)
        if not self._acknowledged:
            self._acknowledge()
        if result.type in TERMINAL_TYPES:
            self.release()
        else:
            if result.type not in SHAPES and not self._puzzled:
                self._puzzled = True
                plugin = self._connection.caller.plugin
                log.warning(
                    "a runner sent a result of an unknown type",
                    action="runner.unknown_result",
                    plugin=plugin,
                    run_id=self.run_id,
                    type=result.type[:64],
                )
            self._credit -= 1
            if self._credit < -self._window:
                self._connection.fail_run(self, "runner.protocol_error", "the runner ignores its credit window")
                return
        self._tell(result, size)

    def _tolerable(self, sequence: int) -> bool:
        """A gap is said and accepted; a repetition is said and dropped, and its price is given back later."""
        if not -1 < sequence < MAX_SEQUENCE:
            self._connection.fail_run(self, "runner.protocol_error", "the runner sent an impossible sequence number")
            return False
        fresh = sequence > self._last
        action = "runner.sequence_gap" if fresh else "runner.sequence_repeated"
        self._connection.unwanted(action, run_id=self.run_id, sequence=sequence, last=self._last)
        self._owed += not fresh
        return fresh and self.live

    def _acknowledge(self) -> None:
        if not self._acknowledged:
            self._acknowledged = True
            self._listener.acknowledged()

    def _tell(self, result: Result, size: int) -> None:
        try:
            self._listener.result(result, size)
        except Exception:
            log.exception("a result could not be taken", action="run.listener_failed", run_id=self.run_id)
            if self.live:
                self._connection.fail_run(self, "runtime_error", "the host failed to take a result")

    def lose(self, code: EndCode, message: str) -> None:
        """The run can say nothing more. Heard once, and never after a terminal result or a release."""
        if self.live:
            self.release()
            self._listener.lost(code, message)


class NoRun:
    """The handle of a run that never began: nothing to tell, to stop or to forget."""

    connection_id = ""

    async def cancel(self, reason: str) -> bool:  # noqa: ARG002 - nobody hears it
        return True

    def give_credit(self, count: int) -> None: ...

    def steering_available(self, waiting: int) -> None: ...

    async def force_stop(self) -> None: ...

    def release(self) -> None: ...


def workspace_of(context: Mapping[str, Any]) -> str:
    """Return the run's workspace from its context, which the host made; empty when it has none."""
    conversation: object = context.get("conversation")
    if not isinstance(conversation, Mapping):
        return ""
    return str(cast("Mapping[str, Any]", conversation).get("workspace_id") or "")


def _problem_with_answer(answer: Any, run_id: str) -> str | None:
    """Return what is wrong with the acknowledgement, or None. A missing `accepted` means true."""
    if not isinstance(answer, dict):
        return 'must be an object: {"run_id": ..., "accepted": true}'
    given = cast("dict[str, Any]", answer)
    if "run_id" not in given:
        return "has no run_id"
    if given["run_id"] != run_id:
        return f"names another run: {str(given['run_id'])[:64]!r}"
    if given.get("accepted", True) is not True:
        return "says accepted is not true; a run is refused with an error"
    return None


def _code(data: Any) -> EndCode:
    """The code a runner gave its refusal, if it is one."""
    code = cast("Mapping[str, Any]", data).get("code") if isinstance(data, dict) else None
    return RunnersOwn(code) if isinstance(code, str) and 0 < len(code) <= MAX_CODE else "runner.refused"
