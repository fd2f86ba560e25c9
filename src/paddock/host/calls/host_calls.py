"""The gate: every host call of every runner passes here, in one fixed order, and leaves one audit row.

1 shape and size of the frame · 2 the run: known, started on this very connection, active · 3 its deadline · 4 the
operation and the resource in its grant · 5 scope · 6 size of the payload · 7 rate · 8 existence and 9 the work itself,
which ends by the deadline. The runner gets a code and a sentence without anything it may not know; the audit has the
whole reason. The table in `rules/access/gate.py` lists the checks of each call.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
import structlog
from pydantic import BaseModel, ValidationError

from paddock.host.audit import Audit
from paddock.host.calls.watched_stream import WatchedStream
from paddock.host.calls.work import NOT_GRANTED, CallHandler, Chunks
from paddock.host.outage import Outage
from paddock.host.runs.live_run import LiveRun
from paddock.host.runs.live_runs import LiveRuns
from paddock.ports import Caller, ConversationRecords, Unreadable
from paddock.rules.access import gate
from paddock.rules.access.limits import MAX_CALL_BYTES, REFUSALS_BURST, REFUSALS_PER_SECOND, Buckets, Rates, TokenBucket
from paddock.rules.access.permissions import Grant
from paddock.rules.errors import (
    ErrorCode,
    HostError,
    StorageUnavailableError,
    UnansweredWriteError,
    WrongParamsError,
    outcome_unknown,
)
from paddock.rules.rows.rows import AuditRow
from paddock.rules.values import replace
from paddock_sdk.causes import complaint_of
from paddock_sdk.protocol.host_calls import HOST_CALLS

WORKSPACES_AT_FULL_RATE = 8
"""How many workspaces may use a plugin at their full rate at the same time."""
LATE = "the run is past its deadline"
ALLOWED = "in the grant of the run"
FOREIGN = "unknown, ended or foreign run"
NOTHING = gate.CallCheck()

log = structlog.get_logger("paddock.gate")


class Call:
    """One host call on its way through the gate, with the facts found so far."""

    __slots__ = ("began", "caller", "looked", "method", "params", "rated", "run", "size")

    def __init__(self, caller: Caller, method: str, params: Any, size: int) -> None:
        self.caller = caller
        self.method = method
        self.params: Mapping[str, Any] = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
        self.size = size
        self.looked = gate.LOOKED_AT.get(method, NOTHING)
        self.run: LiveRun | None = None
        self.rated = False
        """It has taken a token of the rate."""
        self.began = False
        """Its work has begun, so that it may have had an effect."""

    def row(self, at: float, result: str, reason: str) -> AuditRow:
        grant = self.run.grant if self.run is not None else None
        run_id = self.params.get("run_id")
        where = gate.named(self.params, self.looked.scope or self.looked.conversation)
        return AuditRow(
            time=at,
            workspace_id=grant.scope.workspace_id if grant else "",
            actor=f"plugin:{self.caller.plugin}",
            action=self.method[:128],
            resource=gate.named(self.params, self.looked.resource),
            scope=where or (grant.scope.session_id if grant else ""),
            result=result,
            reason=f"{reason} (over {self.caller.door})" if self.caller.door else reason,
            run_id=run_id[:64] if isinstance(run_id, str) else None,
            runner_id=grant.runner_id if grant else None,
            session_id=grant.scope.session_id if grant else None,
        )


@dataclass(kw_only=True, eq=False)
class HostCalls:
    work: Mapping[str, CallHandler]
    live: LiveRuns
    outage: Outage
    records: ConversationRecords
    audit: Audit
    clock: Callable[[], float]
    rates: Rates = field(default_factory=Rates)
    max_answer_bytes: int = MAX_CALL_BYTES - 1024
    _plugin_rates: Buckets = field(default_factory=Buckets, init=False)
    _refusals: Buckets = field(default_factory=Buckets, init=False)

    @property
    def offered(self) -> frozenset[str]:
        return frozenset(self.work)

    async def __call__(self, caller: Caller, method: str, params: Any, size: int) -> Mapping[str, Any]:
        """Answer one host call with plain values, or raise HostError."""
        answer = await self.on_wire(caller, method, params, size)
        return msgspec.json.decode(answer) if isinstance(answer, msgspec.Raw) else cast("Mapping[str, Any]", answer)

    async def on_wire(self, caller: Caller, method: str, params: Any, size: int) -> msgspec.Raw | Chunks:
        """Answer one host call with JSON, or with chunks of it; or raise HostError."""
        call = Call(caller, method, params, size)
        try:
            return await self._decide(call, params)
        except HostError as error:
            await self._refuse(call, error)
            raise
        except StorageUnavailableError:
            self.audit.soon(call.row(self.clock(), "runtime_error", "the store is away"))
            raise
        except Exception as mistake:
            log.exception("a host call failed", action="host_call.failed", plugin=caller.plugin, method=method[:128])
            error = gate.CallRefusedError(ErrorCode.RUNTIME_ERROR, "the host failed to answer", "a mistake of the host")
            await self._refuse(call, error)
            raise error from mistake

    def overloaded(self, caller: Caller, method: str, params: Any, left_out: int) -> None:
        """Record a call that was refused earlier because too many of its connection wait."""
        more = f", and {left_out} more like it" if left_out else ""
        row = Call(caller, method, params, 0).row(self.clock(), "rate_limited", f"too many calls wait{more}")
        self.audit.soon(row)

    def foreign(self, caller: Caller, run_id: str) -> None:
        """Record a result that was dropped because its sender does not own the run."""
        row = Call(caller, "output.dropped", {"run_id": run_id}, 0).row(self.clock(), "unauthorized", FOREIGN)
        self.audit.soon(replace(row, resource=run_id[:64]))

    # --- the order of checks: 1 to 9, and nowhere else ---------------------------------------------------------------

    async def _decide(self, call: Call, params: Any) -> msgspec.Raw | Chunks:
        if call.size > MAX_CALL_BYTES:
            raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, f"a host call may have at most {MAX_CALL_BYTES} bytes")
        if self.outage.is_on:
            await self.outage.is_over()  # before any check: a call that has not begun may wait
        asked = read_params(call.method, params)
        run = call.run = self._find(call.caller, asked.run_id)
        if self.clock() > run.grant.deadline_at:
            raise HostError(ErrorCode.DEADLINE_EXCEEDED, LATE)
        grant, looked = run.grant, call.looked
        gate.check_operation(grant, call.method)
        gate.check_resource(grant, looked, asked)
        gate.check_scope(grant, looked, asked)
        if (other := gate.other_conversation(grant, looked, asked)) is not None:
            await self._check_workspace(grant, other)
        gate.check_size(looked, asked, call.method, call.size)
        self._check_rate(call, run)
        return await self._do(call, grant, gate.within_a_page(looked, asked))

    def _find(self, caller: Caller, run_id: str) -> LiveRun:
        run = self.live.find(run_id)
        if run is None or run.settled or run.over:
            raise gate.CallRefusedError(ErrorCode.UNAUTHORIZED, NOT_GRANTED, "no such run is active")
        if run.connection_id != caller.connection_id:
            raise gate.CallRefusedError(
                ErrorCode.UNAUTHORIZED, NOT_GRANTED, "the run was started on another connection"
            )
        return run

    async def _check_workspace(self, grant: Grant, session_id: str) -> None:
        session = await self.records.session(session_id)
        if session is None or session.workspace_id != grant.scope.workspace_id:
            raise gate.not_its_conversation("no conversation of the run's workspace")

    def _check_rate(self, call: Call, run: LiveRun) -> None:
        """Take tokens of the run, its plugin in the workspace, and the plugin. A run over its own rate takes none of
        the tokens it shares, and a workspace over its share none of the plugin's."""
        call.rated = True
        now = self.clock()
        wait = self._take_of_run(run, now) or self._take_of_plugin(
            call.caller.plugin, run.grant.scope.workspace_id, now
        )
        if wait > 0:
            raise HostError(
                ErrorCode.RATE_LIMITED,
                f"too many host calls; try again in {wait:.2f} s",
                retryable=True,
                details={"retry_after": round(wait, 3)},
            )

    def _take_of_run(self, run: LiveRun, now: float) -> float:
        if self.rates.run is None:
            return 0.0
        run.rate = run.rate or TokenBucket.full(*self.rates.run, now)
        return run.rate.take(now)

    def _take_of_plugin(self, plugin: str, workspace: str, now: float) -> float:
        if self.rates.plugin is None:
            return 0.0
        per_second, burst = self.rates.plugin
        share = self._plugin_rates.of((plugin, workspace), per_second, burst, now)
        whole = self._plugin_rates.of((plugin,), per_second * WORKSPACES_AT_FULL_RATE, burst * 2, now)
        return share.take(now) or whole.take(now)

    # --- the work ----------------------------------------------------------------------------------------------------

    async def _do(self, call: Call, grant: Grant, asked: Any) -> msgspec.Raw | Chunks:
        work, call.began = self.work[call.method], True
        allowed = call.row(self.clock(), "allowed", ALLOWED)
        if work.stream is not None:
            chunks = await self._opened(work.stream(grant, asked), grant)
            return WatchedStream(chunks, self._left(grant), self._note_of_stream(call, allowed))
        try:
            async with asyncio.timeout(self._left(grant)):
                if work.write is not None:
                    return self._encoded(await work.write(grant, asked, allowed))
                assert work.read is not None
                answer = self._encoded(await work.read(grant, asked))
        except TimeoutError:
            text = "the run's deadline passed while this was at work"
            raise outcome_unknown(text, ErrorCode.DEADLINE_EXCEEDED) from None
        except UnansweredWriteError as away:
            raise outcome_unknown("the host's store went away while this was being written") from away
        except asyncio.CancelledError:
            if work.read is not None:
                self.audit.soon(replace(allowed, reason=f"{ALLOWED}; its runner was gone before the answer"))
            raise
        self.audit.soon(allowed)
        return answer

    async def _opened(self, stream: Chunks | Awaitable[Chunks], grant: Grant) -> Chunks:
        """Open a stream. Some read before their first piece; that ends by the deadline too."""
        if not isinstance(stream, Awaitable):
            return stream
        try:
            async with asyncio.timeout(self._left(grant)):
                return await stream
        except TimeoutError:
            raise HostError(ErrorCode.DEADLINE_EXCEEDED, "the run is past its deadline") from None

    def _left(self, grant: Grant) -> float:
        return grant.deadline_at - self.clock()

    def _encoded(self, answer: BaseModel) -> msgspec.Raw:
        """Encode the answer once; one that does not fit a frame is refused, not cut."""
        line = answer.__pydantic_serializer__.to_json(answer, exclude_none=True)
        if len(line) > self.max_answer_bytes:
            text = f"the answer would have {len(line)} bytes, more than {self.max_answer_bytes}; ask for less at once"
            raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, text)
        return msgspec.Raw(line)

    def _note_of_stream(self, call: Call, allowed: AuditRow) -> Callable[[HostError | None], None]:
        """Write the audit row of a stream: with its first piece, or when there is none."""

        def note(error: HostError | None) -> None:
            row = allowed if error is None else call.row(self.clock(), str(error.code), _reason(error))
            self.audit.soon(row)

        return note

    # --- refusals ----------------------------------------------------------------------------------------------------

    async def _refuse(self, call: Call, error: HostError) -> None:
        """Record a refusal before it is sent. Refused calls cost a token too, and a flood of them waits."""
        now = self.clock()
        if call.run is not None and not call.rated:
            self._take_of_run(call.run, now)
        workspace = call.run.grant.scope.workspace_id if call.run is not None else ""
        kind = (call.caller.plugin, workspace)
        wait = self._refusals.of(kind, REFUSALS_PER_SECOND, REFUSALS_BURST, now).owe(now)
        if wait > 0:
            await asyncio.sleep(wait)
        row = call.row(now, str(error.code), _reason(error))
        try:
            await self.records.write([row])
        except StorageUnavailableError:
            if not call.began:  # nothing was read: the call may be repeated
                raise
            self.audit.soon(row)


def _reason(error: HostError) -> str:
    return error.reason if isinstance(error, gate.CallRefusedError) else error.message


def read_params(method: str, params: Any) -> Any:
    if isinstance(params, Unreadable):
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"{method[:128] or 'this line'} cannot be read: {params.problem}")
    call = HOST_CALLS.get(method)
    if call is None or method not in gate.LOOKED_AT:
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"there is no host call {method[:128]!r}")
    if not isinstance(params, dict):
        raise WrongParamsError(f"{method}: params must be an object")
    try:
        return call.params.from_wire(cast("dict[str, Any]", params))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "params"
        raise WrongParamsError(f"{method}: {place}: {complaint_of(first)}") from error
