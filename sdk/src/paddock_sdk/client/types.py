"""The shapes of the HTTP API. Made by `make types` from its OpenAPI document; not to be changed by hand."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class Accepted(TypedDict):
    """A run that is on record."""

    taskId: str
    threadId: str
    runId: str
    created: bool


class ActivityMessage(TypedDict):
    role: Literal["activity"]
    id: str
    activityType: str
    content: dict[str, Any]


class ActivitySnapshotEvent(TypedDict):
    type: Literal["ACTIVITY_SNAPSHOT"]
    messageId: str
    activityType: str
    content: dict[str, Any]
    metadata: NotRequired[dict[str, Any]]


class AssistantMessage(TypedDict):
    role: Literal["assistant"]
    id: str
    content: NotRequired[str | None]
    toolCalls: NotRequired[list[FunctionCall]]
    name: NotRequired[str | None]
    encryptedValue: NotRequired[str | None]


class CalledFunction(TypedDict):
    name: str
    arguments: str


class ClientContext(TypedDict):
    description: str
    value: str


class ClientTime(TypedDict):
    device_timezone: str
    client_now_iso: str
    client_epoch_ms: int


class ClientTool(TypedDict):
    name: str
    description: str
    parameters: dict[str, Any]


class CustomEvent(TypedDict):
    type: Literal["CUSTOM"]
    name: str
    value: Any
    metadata: NotRequired[dict[str, Any]]


class DeveloperMessage(TypedDict):
    role: Literal["developer"]
    id: str
    content: str
    name: NotRequired[str | None]
    encryptedValue: NotRequired[str | None]


class Edit(TypedDict):
    itemId: str
    content: str
    runId: NotRequired[str | None]
    agentId: NotRequired[str | None]


class Feedback(TypedDict):
    rating: Literal["down", "up"] | None
    comment: NotRequired[str | None]


class ForwardedProps(TypedDict):
    runtime_mode: Literal["automation", "chat"]
    client_time: NotRequired[ClientTime]


class Found(TypedDict):
    """Where the words of a search stand: in the title, in a message, or in both."""

    title: NotRequired[list[Piece]]
    message: NotRequired[FoundMessage]


class FoundMessage(TypedDict):
    itemId: str
    role: Literal["assistant", "user"]
    timestamp: str
    snippet: list[Piece]
    agentId: NotRequired[str]


class FunctionCall(TypedDict):
    id: str
    type: Literal["function"]
    function: CalledFunction
    encryptedValue: NotRequired[str | None]


class HistoryDay(TypedDict):
    """One day of a conversation; empty when there is no such day."""

    scope: Literal["history_day"]
    threadId: str | None
    day: str | None
    hasMore: bool
    messages: list[SaidByUser | SaidByAgent]
    truncated: NotRequired[bool]


class HistoryFile(TypedDict):
    mimeType: str
    url: str


class ImageBlock(TypedDict):
    type: Literal["binary"]
    mimeType: str
    url: str
    id: NotRequired[str]
    filename: NotRequired[str]


class InflightTurn(TypedDict):
    """A turn that has not ended."""

    turnId: str
    traceId: str
    requestedBy: str
    targetAgentId: str
    status: Literal["QUEUED", "ROUTING", "RUNNING"]
    createdAt: str
    lastOutputAt: str | None
    collectedOutput: str
    waiting: list[str]
    parentTurnId: str | None


class Interrupt(TypedDict):
    """A question for a person, without whose answer the run does not go on."""

    id: str
    reason: str
    message: NotRequired[str]
    toolCallId: NotRequired[str]
    responseSchema: NotRequired[dict[str, Any]]
    expiresAt: NotRequired[str]
    metadata: NotRequired[dict[str, Any]]


class Me(TypedDict):
    """You, as this host knows you."""

    userId: str
    workspaceId: str
    role: Literal["admin", "user"]
    profile: Profile


class MeChange(TypedDict):
    profile: NotRequired[ProfileChange]


class MessagesSnapshotEvent(TypedDict):
    type: Literal["MESSAGES_SNAPSHOT"]
    messages: list[dict[str, Any]]
    metadata: NotRequired[dict[str, Any]]


class NewSession(TypedDict):
    threadId: NotRequired[str | None]
    title: NotRequired[str | None]


class OpenTransaction(TypedDict):
    """Steps that have not ended: an agent joins, leaves or takes over, or the conversation opens or closes."""

    txId: str
    kind: str
    waiting: str
    agentId: str | None
    turnId: str | None
    reason: str
    summary: str
    fromAgentId: str | None


class Opinion(TypedDict):
    """The opinion of a conversation's owner on an answer."""

    rating: Literal["down", "up"]
    comment: str


class Outcome(TypedDict):
    type: Literal["cancelled", "interrupt", "success"]
    pendingToolCallIds: NotRequired[list[str]]
    interrupts: NotRequired[list[Interrupt]]


class Piece(TypedDict):
    """A stretch of text, and whether it is what was looked for."""

    text: str
    hit: bool


class Profile(TypedDict):
    settings: Settings


class ProfileChange(TypedDict):
    settings: NotRequired[SettingsChange]


class ReasoningMessage(TypedDict):
    role: Literal["reasoning"]
    id: str
    content: str
    encryptedValue: NotRequired[str | None]


class Regenerate(TypedDict):
    itemId: str
    runId: NotRequired[str | None]
    agentId: NotRequired[str | None]


class Run(TypedDict):
    taskId: str
    threadId: str
    runId: str
    status: Literal["cancelled", "completed", "failed", "queued", "running"]
    createdAt: str
    agentId: NotRequired[str]
    code: NotRequired[str]
    message: NotRequired[str]
    steeredInto: NotRequired[str]
    startedAt: NotRequired[str]
    endedAt: NotRequired[str]
    deadlineAt: NotRequired[str]
    usage: NotRequired[Usage]


class RunAgentInput(TypedDict):
    threadId: str
    runId: str
    messages: list[
        UserMessage
        | AssistantMessage
        | SystemMessage
        | DeveloperMessage
        | ToolMessage
        | ReasoningMessage
        | ActivityMessage
    ]
    forwardedProps: ForwardedProps
    parentRunId: NotRequired[str]
    state: NotRequired[Any]
    tools: NotRequired[list[ClientTool]]
    context: NotRequired[list[ClientContext]]


class RunEntry(TypedDict):
    """A run, and whose it is."""

    taskId: str
    threadId: str
    runId: str
    status: Literal["cancelled", "completed", "failed", "queued", "running"]
    createdAt: str
    agentId: NotRequired[str]
    code: NotRequired[str]
    message: NotRequired[str]
    steeredInto: NotRequired[str]
    startedAt: NotRequired[str]
    endedAt: NotRequired[str]
    deadlineAt: NotRequired[str]
    usage: NotRequired[Usage]
    userId: str
    runnerId: NotRequired[str]


class RunErrorEvent(TypedDict):
    type: Literal["RUN_ERROR"]
    message: str
    code: str
    timestamp: NotRequired[int]
    metadata: NotRequired[dict[str, Any]]


class RunFinishedEvent(TypedDict):
    type: Literal["RUN_FINISHED"]
    threadId: str
    runId: str
    timestamp: NotRequired[int]
    outcome: NotRequired[Outcome]
    usage: NotRequired[list[TokenUsage]]
    metadata: NotRequired[dict[str, Any]]


class RunList(TypedDict):
    runs: list[RunEntry]
    next: str | None


class RunStartedEvent(TypedDict):
    type: Literal["RUN_STARTED"]
    threadId: str
    runId: str
    timestamp: NotRequired[int]
    protocolVersion: NotRequired[str]
    parentRunId: NotRequired[str]
    input: NotRequired[dict[str, Any]]
    metadata: NotRequired[dict[str, Any]]


class SaidByAgent(TypedDict):
    role: Literal["assistant"]
    id: str
    taskId: str | None
    seq: int
    content: str
    ui_schema: dict[str, Any] | None
    timestamp: str
    agentId: NotRequired[str]
    name: NotRequired[str]
    partial: NotRequired[bool]
    erased: NotRequired[bool]
    feedback: NotRequired[Opinion]


class SaidByUser(TypedDict):
    role: Literal["user"]
    id: str
    itemId: str
    taskId: str | None
    seq: int
    content: str
    attachments: list[HistoryFile]
    timestamp: str
    erased: NotRequired[bool]


class Session(TypedDict):
    """A conversation at one moment."""

    threadId: str
    archived: bool
    closed: bool
    items: int
    createdAt: str
    updatedAt: str
    title: NotRequired[str]
    automationId: NotRequired[str]
    found: NotRequired[Found]
    activeAgentId: str | None
    agentsInSession: list[str]
    speakingAgentId: str | None
    userInterruptible: bool
    inflight: dict[str, InflightTurn]
    transactions: dict[str, OpenTransaction]
    cursor: str
    inflightCursor: str


class SessionEntry(TypedDict):
    """A conversation in a list."""

    threadId: str
    archived: bool
    closed: bool
    items: int
    createdAt: str
    updatedAt: str
    title: NotRequired[str]
    automationId: NotRequired[str]
    found: NotRequired[Found]


class SessionList(TypedDict):
    sessions: list[SessionEntry]
    next: int | None
    complete: NotRequired[bool]


class Settings(TypedDict):
    timezone: str | None
    locale: str | None


class SettingsChange(TypedDict):
    """Null takes a setting back; one that is left out stays."""

    timezone: NotRequired[str | None]
    locale: NotRequired[str | None]


class StepFinishedEvent(TypedDict):
    type: Literal["STEP_FINISHED"]
    stepName: str
    metadata: NotRequired[dict[str, Any]]


class StepStartedEvent(TypedDict):
    type: Literal["STEP_STARTED"]
    stepName: str
    metadata: NotRequired[dict[str, Any]]


class SystemMessage(TypedDict):
    role: Literal["system"]
    id: str
    content: str
    name: NotRequired[str | None]
    encryptedValue: NotRequired[str | None]


class TextBlock(TypedDict):
    type: Literal["text"]
    text: str


class TextMessageContentEvent(TypedDict):
    type: Literal["TEXT_MESSAGE_CONTENT"]
    messageId: str
    delta: str
    metadata: NotRequired[dict[str, Any]]


class TextMessageEndEvent(TypedDict):
    type: Literal["TEXT_MESSAGE_END"]
    messageId: str
    metadata: NotRequired[dict[str, Any]]


class TextMessageStartEvent(TypedDict):
    type: Literal["TEXT_MESSAGE_START"]
    messageId: str
    role: Literal["assistant"]
    metadata: NotRequired[dict[str, Any]]


class TokenUsage(TypedDict):
    provider: NotRequired[str]
    model: NotRequired[str]
    inputTokens: NotRequired[int]
    outputTokens: NotRequired[int]
    totalTokens: NotRequired[int]
    reasoningTokens: NotRequired[int]
    cachedInputTokens: NotRequired[int]
    cacheWriteInputTokens: NotRequired[int]


class ToolCallArgsEvent(TypedDict):
    type: Literal["TOOL_CALL_ARGS"]
    toolCallId: str
    delta: str
    metadata: NotRequired[dict[str, Any]]


class ToolCallEndEvent(TypedDict):
    type: Literal["TOOL_CALL_END"]
    toolCallId: str
    metadata: NotRequired[dict[str, Any]]


class ToolCallResultEvent(TypedDict):
    type: Literal["TOOL_CALL_RESULT"]
    messageId: str
    toolCallId: str
    content: str
    role: Literal["tool"]
    metadata: NotRequired[dict[str, Any]]


class ToolCallStartEvent(TypedDict):
    type: Literal["TOOL_CALL_START"]
    toolCallId: str
    toolCallName: str
    metadata: NotRequired[dict[str, Any]]


class ToolMessage(TypedDict):
    role: Literal["tool"]
    id: str
    content: str
    toolCallId: str
    error: NotRequired[str | None]
    encryptedValue: NotRequired[str | None]


class Usage(TypedDict):
    """Calls and tokens of a run's models. A cost of null: only models without a price were asked."""

    modelCalls: int
    promptTokens: int
    completionTokens: int
    totalTokens: int
    cost: float | None
    unpricedCalls: NotRequired[int]


class UserMessage(TypedDict):
    role: Literal["user"]
    id: str
    content: str | list[TextBlock | ImageBlock]
    name: NotRequired[str]
    encryptedValue: NotRequired[str]


AgUiEvent = (
    RunStartedEvent
    | RunFinishedEvent
    | RunErrorEvent
    | TextMessageStartEvent
    | TextMessageContentEvent
    | TextMessageEndEvent
    | ToolCallStartEvent
    | ToolCallArgsEvent
    | ToolCallEndEvent
    | ToolCallResultEvent
    | StepStartedEvent
    | StepFinishedEvent
    | ActivitySnapshotEvent
    | MessagesSnapshotEvent
    | CustomEvent
)
