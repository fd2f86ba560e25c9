"""Results of a run: one class per result type. An unknown type is kept whole and is never an error."""

# ruff: noqa: RUF012 - pydantic gives every instance its own copy of a default
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, cast, get_args

from pydantic import model_validator

from paddock_sdk.protocol.artifacts import ArtifactCreatedData, ArtifactRef
from paddock_sdk.protocol.messages import LLMTokenUsage, Message, MessageChunk
from paddock_sdk.protocol.model import EpochSeconds, WireModel

StateScope = Literal["conversation", "actor", "subject", "runner"]
"""The scopes a context shows. On the wire a scope is a string: whether a run may use it is for the host to decide."""
STATE_SCOPES: Final[tuple[str, ...]] = (*get_args(StateScope), "binding")
"""Every scope that values are kept in."""


class MessageDeltaData(WireModel):
    chunk: MessageChunk


class MessageCompletedData(WireModel):
    message: Message
    ui_hints: Any = None
    """Paddock's own, optional: how a client may draw the message."""


class ToolCallStartedData(WireModel):
    tool_call_id: str
    tool_name: str
    parameters: dict[str, Any] | None = None


class ToolCallCompletedData(WireModel):
    """The end of a tool call. `error` is set when it failed; the run goes on."""

    tool_call_id: str
    tool_name: str
    result: Any = None
    artifact: ArtifactRef | None = None
    error: str | dict[str, Any] | None = None


class StepData(WireModel):
    """A stage of the run, for people who watch. Paddock's own, optional."""

    step_name: str


class StateUpdatedData(WireModel):
    scope: str
    key: str
    value: Any = None


class ActionRequestedData(WireModel):
    action: str
    target: dict[str, Any] = {}
    payload: dict[str, Any] = {}


class RunCompletedData(WireModel):
    message: Message | None = None
    usage: LLMTokenUsage | None = None
    pending_tool_call_ids: list[str] | None = None
    interrupts: list[dict[str, Any]] | None = None
    """Paddock's own, optional: questions for a person, each with id, reason, message, tool_call_id, response_schema."""


class RunFailedData(WireModel):
    code: str
    message: str
    retryable: bool = False

    @model_validator(mode="before")
    @classmethod
    def _current_spelling(cls, raw: object) -> object:
        """Older runners say `error`; we read it as `message` and never write it."""
        if not isinstance(raw, dict) or "error" not in raw:
            return cast("object", raw)
        said = dict(cast("dict[str, object]", raw))
        return {"message": said.pop("error"), **said}


class AgentRunResult(WireModel):
    """The envelope of every result, whatever its type. `sequence` starts at 1 and grows by 1 within a run."""

    run_id: str
    type: str
    data: dict[str, Any] = {}
    sequence: int | None = None
    timestamp: EpochSeconds | None = None


class _Envelope(WireModel):
    run_id: str
    sequence: int | None = None
    timestamp: EpochSeconds | None = None


class MessageDelta(_Envelope):
    type: Literal["message.delta"] = "message.delta"
    data: MessageDeltaData


class MessageCompleted(_Envelope):
    type: Literal["message.completed"] = "message.completed"
    data: MessageCompletedData


class ToolCallStarted(_Envelope):
    type: Literal["tool.call.started"] = "tool.call.started"
    data: ToolCallStartedData


class ToolCallCompleted(_Envelope):
    type: Literal["tool.call.completed"] = "tool.call.completed"
    data: ToolCallCompletedData


class StepStarted(_Envelope):
    """Paddock's own, optional."""

    type: Literal["step.started"] = "step.started"
    data: StepData


class StepFinished(_Envelope):
    """Paddock's own, optional."""

    type: Literal["step.finished"] = "step.finished"
    data: StepData


class ArtifactCreated(_Envelope):
    type: Literal["artifact.created"] = "artifact.created"
    data: ArtifactCreatedData


class StateUpdated(_Envelope):
    type: Literal["state.updated"] = "state.updated"
    data: StateUpdatedData


class ActionRequested(_Envelope):
    type: Literal["action.requested"] = "action.requested"
    data: ActionRequestedData


class RunCompleted(_Envelope):
    type: Literal["run.completed"] = "run.completed"
    data: RunCompletedData = RunCompletedData.model_construct()  # not validated: importing compiles nothing


class RunFailed(_Envelope):
    type: Literal["run.failed"] = "run.failed"
    data: RunFailedData


class UnknownResult(_Envelope):
    """A result of a type we do not know: kept as it came, to be ignored with a warning."""

    type: str
    data: Any = None


KnownResult = (
    MessageDelta
    | MessageCompleted
    | ToolCallStarted
    | ToolCallCompleted
    | StepStarted
    | StepFinished
    | ArtifactCreated
    | StateUpdated
    | ActionRequested
    | RunCompleted
    | RunFailed
)

KNOWN_RESULTS: Final[Mapping[str, type[KnownResult]]] = MappingProxyType(
    {known.model_fields["type"].default: known for known in get_args(KnownResult)}
)
TERMINAL_TYPES: Final = frozenset({"run.completed", "run.failed"})
"""The types that end a run."""


def parse_result(raw: Mapping[str, Any]) -> KnownResult | UnknownResult:
    """Read one result. Raises pydantic.ValidationError when a known type carries a wrong payload."""
    known = KNOWN_RESULTS.get(str(raw.get("type")))
    return (known or UnknownResult).model_validate(raw)
