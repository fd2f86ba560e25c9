"""The gate: every host call of every runner passes here, in one fixed order, and leaves one audit row.

1 shape and size of the frame · 2 the run: known, started on this very connection, active · 3 its deadline ·
4 the operation in its grant · 5 scope · 6 size of the payload · 7 rate · 8 existence and 9 the work itself.
The runner gets a code and a sentence that tells nothing it may not know; the whole reason is in the audit.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import msgspec
from pydantic import ValidationError

from paddock.host.audit import Audit
from paddock.host.runs import LiveRun, Runs
from paddock.host.work import Work
from paddock.ports import Caller, Records
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.limits import (
    MAX_CALL_BYTES,
    MAX_STATE_KEY_CHARS,
    MAX_STATE_VALUE_BYTES,
    PLUGIN_BURST,
    PLUGIN_CALLS_PER_SECOND,
    RUN_BURST,
    RUN_CALLS_PER_SECOND,
    TokenBucket,
)
from paddock.rules.permissions import Grant
from paddock.rules.rows import AuditRow
from paddock.rules.values import replace
from paddock_sdk.protocol.host_calls import HOST_CALLS

REFUSED = "this run may not do that"
"""One sentence for unknown, ended and foreign runs alike, so that none can be told from another."""


class RefusedError(HostError):
    """A refusal whose reason only the audit may know."""

    def __init__(self, code: ErrorCode, message: str, reason: str, **more: Any) -> None:
        super().__init__(code, message, **more)
        self.reason = reason


class HostCalls:
    def __init__(
        self,
        *,
        work: Mapping[str, Work],
        records: Records,
        audit: Audit,
        clock: Callable[[], float],
    ) -> None:
        self._work = work
        self._records = records
        self._audit = audit
        self._clock = clock
        self._runs: Runs | None = None
        self._plugin_rates: dict[str, TokenBucket] = {}

    def serve(self, runs: Runs) -> None:
        """Runs and the gate know each other; this closes the circle once, at start."""
        self._runs = runs

    @property
    def offered(self) -> frozenset[str]:
        return frozenset(self._work)

    async def __call__(self, caller: Caller, method: str, params: Mapping[str, Any], size: int) -> Mapping[str, Any]:
        """Answer one host call or raise HostError."""
        row = self._row(caller, method, params)
        try:
            _frame(size)
            asked = _read(method, params)
            run = self._run(caller, asked.run_id)
            row = replace(
                row,
                workspace_id=run.grant.scope.workspace_id,
                runner_id=run.grant.runner_id,
                session_id=run.grant.scope.conversation_id,
            )
            self._deadline(run)
            _operation(run.grant, method)
            _scope(run.grant, asked)
            _payload(asked)
            self._rate(run, caller)
            return await self._do(run.grant, method, asked, row)
        except HostError as error:
            reason = error.reason if isinstance(error, RefusedError) else error.message
            await self._records.write([replace(row, result=str(error.code), reason=reason)])
            raise

    async def _do(self, grant: Grant, method: str, asked: Any, row: AuditRow) -> Mapping[str, Any]:
        work = self._work[method]
        allowed = replace(row, result="allowed", reason="in the grant of the run")
        if work.stream is not None:
            opened = work.stream(grant, asked)
            chunks = await opened if isinstance(opened, Awaitable) else opened
            self._audit.soon(allowed)
            return cast("Mapping[str, Any]", chunks)  # the connection sends it piece by piece
        if work.read is not None:
            answer = await work.read(grant, asked)
            self._audit.soon(allowed)
        else:
            assert work.write is not None
            answer = await work.write(grant, asked, allowed)
        return answer.model_dump(mode="json", exclude_none=True)

    def _row(self, caller: Caller, method: str, params: Mapping[str, Any]) -> AuditRow:
        run_id = params.get("run_id")
        return AuditRow(
            time=self._clock(),
            workspace_id="",
            actor=f"plugin:{caller.plugin}",
            action=method[:128],
            resource=str(params.get("key") or params.get("conversation_id") or "")[:256],
            scope=str(params.get("scope") or "")[:64],
            result="",
            reason="",
            run_id=run_id[:64] if isinstance(run_id, str) else None,
        )

    def _run(self, caller: Caller, run_id: str) -> LiveRun:
        run = self._runs.find(run_id) if self._runs is not None else None
        if run is None or run.settled or run.over:
            raise RefusedError(ErrorCode.UNAUTHORIZED, REFUSED, "no such run is active")
        if run.connection_id != caller.connection_id:
            raise RefusedError(ErrorCode.UNAUTHORIZED, REFUSED, "the run was started on another connection")
        return run

    def _deadline(self, run: LiveRun) -> None:
        if self._clock() > run.grant.deadline_at:
            raise HostError(ErrorCode.DEADLINE_EXCEEDED, "the run is past its deadline")

    def _rate(self, run: LiveRun, caller: Caller) -> None:
        now = self._clock()
        mine = run.rate = run.rate or TokenBucket.full(RUN_CALLS_PER_SECOND, RUN_BURST, now)
        shared = self._plugin_rates.setdefault(
            caller.plugin, TokenBucket.full(PLUGIN_CALLS_PER_SECOND, PLUGIN_BURST, now)
        )
        wait = max(mine.take(now), shared.take(now))
        if wait > 0:
            raise HostError(
                ErrorCode.RATE_LIMITED,
                f"too many host calls; try again in {wait:.2f} s",
                retryable=True,
                details={"retry_after": round(wait, 3)},
            )


def _frame(size: int) -> None:
    if size > MAX_CALL_BYTES:
        raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, f"a host call may have at most {MAX_CALL_BYTES} bytes")


def _read(method: str, params: Mapping[str, Any]) -> Any:
    call = HOST_CALLS.get(method)
    if call is None:
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"there is no host call {method[:128]!r}")
    try:
        return call.params.model_validate(params)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "params"
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"{method}: {place}: {first['msg']}") from error


def _operation(grant: Grant, method: str) -> None:
    if method not in grant.actions:
        text = f"this run was not granted {method}: its manifest, the plugin file and the agent must all allow it"
        raise RefusedError(ErrorCode.UNAUTHORIZED, text, f"{method} is not in the grant of the run")


def _scope(grant: Grant, asked: Any) -> None:
    conversation = getattr(asked, "conversation_id", None)
    if conversation is not None and conversation != grant.scope.conversation_id:
        raise RefusedError(ErrorCode.UNAUTHORIZED, "this run may see its own conversation only", "another conversation")
    scope = getattr(asked, "scope", None)
    if scope is not None and scope not in grant.state_scopes:
        granted = ", ".join(sorted(grant.state_scopes))
        text = f"this run was not granted the state scope {scope[:64]!r}; granted are: {granted}"
        raise RefusedError(ErrorCode.UNAUTHORIZED, text, "a state scope outside the grant of the run")


def _payload(asked: Any) -> None:
    key = getattr(asked, "key", None)
    if isinstance(key, str) and len(key) > MAX_STATE_KEY_CHARS:
        raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, f"a key may have at most {MAX_STATE_KEY_CHARS} characters")
    value = getattr(asked, "value", None)
    if value is not None and (size := len(msgspec.json.encode(value))) > MAX_STATE_VALUE_BYTES:
        raise HostError(
            ErrorCode.PAYLOAD_TOO_LARGE,
            f"a value may have at most {MAX_STATE_VALUE_BYTES} bytes of JSON; this one has {size}",
        )
