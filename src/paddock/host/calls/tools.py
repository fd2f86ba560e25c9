"""Tools called on behalf of a run: `tools.get_detail`, `tools.call`. Nothing is called before it is on record.

The intent is committed before the call, its outcome after. When the store is away by then, the caller waits for it, or
is told that the outcome is unknown; the outcome is written when the store is back. What a dead host leaves behind is
settled (`settling.py`). No call is ever made twice.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Protocol

import anyio
import msgspec

from paddock.host.calls.settling import SETTLE_SECONDS
from paddock.host.calls.tool_files import ContentPart, ToolFiles
from paddock.host.calls.work import NOT_GRANTED, CallHandler
from paddock.host.ids import new_id
from paddock.host.runs.outcomes import WAIT_SECONDS, Outcomes
from paddock.ports import CallRecords
from paddock.ports.tools import ToolAnswer, ToolFile, ToolInfo, Tools, ToolUse
from paddock.rules.access.permissions import Grant
from paddock.rules.errors import (
    ErrorCode,
    HostError,
    StorageUnavailableError,
    UnansweredWriteError,
    outcome_unknown,
)
from paddock.rules.rows.calls import ToolCallRow
from paddock.rules.rows.rows import AuditRow
from paddock.rules.values import replace
from paddock_sdk.protocol.artifacts import ArtifactRef
from paddock_sdk.protocol.host_calls import ToolDetail, ToolsCallParams, ToolsCallResult, ToolsGetDetailParams

MAX_INLINE_BYTES = 64 * 1024
"""Bytes of a result on a host without artifacts; with them a larger result becomes an artifact."""
MAX_RESULT_BYTES = 64 * 1024 * 1024
CALL_STATUSES: Mapping[tuple[bool, bool], str] = {
    (False, False): "completed",
    (True, False): "failed",
    (True, True): "unknown",
    (False, True): "unknown",
}
"""Status on record, by (is_error, unknown)."""
NOT_CALLED = b'{"error":"the run did not go on here any more when this was on record, so nothing was called"}'
UNREADABLE = "it holds what cannot be read as JSON here, such as a number of too many digits"
NO_FILES: ContentPart = {"type": "text", "text": "(a file came along; this host keeps none)"}


class KeepsArtifacts(Protocol):
    """Keeps large results."""

    async def keep_large(self, grant: Grant, result: object, *, name: str) -> tuple[Any, ArtifactRef | None]:
        """Return a small result as it is, a large one as a preview and the artifact that holds it."""
        ...


@dataclass(eq=False)
class ToolCalls:
    tools: Tools
    _: KW_ONLY
    records: CallRecords
    outcomes: Outcomes
    clock: Callable[[], float]
    artifacts: KeepsArtifacts | None = None
    files: ToolFiles | None = None
    goes_on: Callable[[str], bool] = lambda _run_id: True
    """Whether this host still owns a run: after it stood still, another host may have taken over."""
    _under_way: set[asyncio.Future[ToolAnswer]] = field(default_factory=set[asyncio.Future[ToolAnswer]], init=False)
    """Calls under way, also those whose caller has gone."""

    @property
    def work(self) -> Mapping[str, CallHandler]:
        return {"tools.get_detail": CallHandler(read=self.get_detail), "tools.call": CallHandler(write=self.call)}

    async def get_detail(self, grant: Grant, asked: ToolsGetDetailParams) -> ToolDetail:
        tool = self._granted(grant, asked.tool_name, "detail")
        return ToolDetail(tool_name=tool.name, description=tool.description, parameters=dict(tool.parameters))

    async def call(self, grant: Grant, asked: ToolsCallParams, audit: AuditRow) -> ToolsCallResult:
        self._granted(grant, asked.tool_name, "call")
        intent = _intent(grant, asked, self.clock())
        await self._intend(intent, audit)
        if not self.goes_on(intent.run_id):
            await self._record(self._not_called(intent))
            raise HostError(ErrorCode.UNAUTHORIZED, NOT_GRANTED)
        try:
            answer = await self._made(_use(grant, asked, intent.call_id))
            shown, row = await self._outcome(grant, intent, answer)
        except BaseException:  # the run is over or the host failed: the call was made and its outcome is lost
            with anyio.CancelScope(shield=True):
                await self._record(replace(intent, status="unknown", ended_at=self.clock()), seconds=SETTLE_SECONDS)
            raise
        if not await self._record(row):
            raise outcome_unknown(f"{row.tool_name} was called, and the host's store was away when it had ended")
        return shown

    def _granted(self, grant: Grant, name: str, operation: str) -> ToolInfo:
        if operation not in grant.tools.get(name, ()):
            raise HostError(ErrorCode.UNAUTHORIZED, NOT_GRANTED)
        tool = self.tools.find(grant.scope.workspace_id, name)
        if tool is None:
            raise HostError(ErrorCode.NOT_FOUND, f"the tool {name!r} is not there at the moment; try again later")
        return tool

    async def _intend(self, intent: ToolCallRow, audit: AuditRow) -> None:
        """Record that the call will be made. When that fails the call is not made, and the record says so."""
        try:
            await self.records.write([intent, audit])
        except UnansweredWriteError as error:  # nothing was called: the call may be repeated
            self.outcomes.later(intent.workspace_id, [self._not_called(intent)])
            raise StorageUnavailableError(str(error)) from error
        except asyncio.CancelledError:
            self.outcomes.later(intent.workspace_id, [self._not_called(intent)])
            raise

    async def _made(self, use: ToolUse) -> ToolAnswer:
        """Return the tool's answer. A cancelled tool that does not stop is not waited for."""
        making = asyncio.ensure_future(self.tools.call(use))
        self._under_way.add(making)
        making.add_done_callback(self._ended)
        try:
            await asyncio.wait({making})
        except asyncio.CancelledError:
            making.cancel()
            raise
        return making.result()

    def _ended(self, making: "asyncio.Future[ToolAnswer]") -> None:
        self._under_way.discard(making)
        if not making.cancelled():
            making.exception()  # it was returned, or nobody waits for it

    async def _record(self, row: ToolCallRow, *, seconds: float = WAIT_SECONDS) -> bool:
        return await self.outcomes.record(row.workspace_id, [row], seconds=seconds)

    def _not_called(self, intent: ToolCallRow) -> ToolCallRow:
        return replace(intent, status="failed", result=NOT_CALLED, ended_at=self.clock())

    async def _outcome(
        self, grant: Grant, intent: ToolCallRow, answer: ToolAnswer
    ) -> tuple[ToolsCallResult, ToolCallRow]:
        status = CALL_STATUSES[answer.is_error, answer.unknown]
        ended = replace(intent, status=status, ended_at=self.clock())
        is_error = True if answer.is_error else None
        if (size := _size(answer)) > (MAX_INLINE_BYTES if self.artifacts is None else MAX_RESULT_BYTES):
            return _dropped(ended, f"its result has {size} bytes, which is more than can be kept; ask it for less")
        try:
            shown, kept = await self.outcomes.outlast(lambda: self._shown(grant, intent, answer))
        except StorageUnavailableError:
            return _not_kept(ended, "the host's store is away")
        except HostError as error:
            return _not_kept(ended, error.message)
        row = replace(
            ended,
            result=msgspec.json.encode(shown) if kept or answer.parts else answer.content,
            artifact_id=kept.artifact_id if kept else None,
        )
        return ToolsCallResult(result=shown, artifact=kept, is_error=is_error), row

    async def _shown(self, grant: Grant, intent: ToolCallRow, answer: ToolAnswer) -> tuple[Any, ArtifactRef | None]:
        """Return a result for the runner. A large one is cut; files are named in any case."""
        name = f"{intent.tool_name}-{intent.call_id[:8]}"
        parts = await self._placed(grant, answer.parts, name)
        result = parts or _read(answer.content)
        if self.artifacts is None:
            return result, None
        shown, kept = await self.artifacts.keep_large(grant, result, name=name)
        if kept is None or not parts:
            return shown, kept
        files = [part for part in parts if "artifact_id" in part]
        return [{"type": "text", "text": shown}, *files], kept

    async def _placed(self, grant: Grant, parts: Sequence[ContentPart | ToolFile], name: str) -> list[ContentPart]:
        if self.files is not None:
            return await self.files.placed(grant, parts, name=name)
        return [NO_FILES if isinstance(part, ToolFile) else part for part in parts]


def _read(content: bytes) -> Any:
    """Read what a tool gave back. It is JSON, but maybe of a kind that nobody reads."""
    try:
        return msgspec.json.decode(content)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise HostError(ErrorCode.INVALID_ARGUMENT, UNREADABLE) from error


def _size(answer: ToolAnswer) -> int:
    """Return the bytes of the answer as stored; text beside files is counted when it is written."""
    return len(answer.content) + sum(len(part.content) for part in answer.parts if isinstance(part, ToolFile))


def _intent(grant: Grant, asked: ToolsCallParams, now: float) -> ToolCallRow:
    at = grant.scope
    return ToolCallRow(
        call_id=new_id(),
        run_id=at.run_id,
        session_id=at.session_id,
        workspace_id=at.workspace_id,
        user_id=at.user_id,
        agent_id=at.agent_id,
        tool_name=asked.tool_name,
        status="started",
        parameters=msgspec.json.encode(asked.parameters),
        result=b"",
        artifact_id=None,
        started_at=now,
        ended_at=None,
    )


def _use(grant: Grant, asked: ToolsCallParams, call_id: str) -> ToolUse:
    at = grant.scope
    return ToolUse(
        call_id=call_id,
        name=asked.tool_name,
        parameters=asked.parameters,
        workspace_id=at.workspace_id,
        user_id=at.user_id,
        agent_id=at.agent_id,
        session_id=at.session_id,
        run_id=at.run_id,
        deadline_at=grant.deadline_at,
    )


def _not_kept(ended: ToolCallRow, why: str) -> tuple[ToolsCallResult, ToolCallRow]:
    return _dropped(ended, f"its result could not be kept ({why}); do not ask for the same again")


def _dropped(ended: ToolCallRow, why: str) -> tuple[ToolsCallResult, ToolCallRow]:
    shown: dict[str, Any] = {"error": f"{ended.tool_name} did its work, but {why}"}
    row = replace(ended, status="completed", result=msgspec.json.encode(shown))
    return ToolsCallResult(result=shown, is_error=True), row
