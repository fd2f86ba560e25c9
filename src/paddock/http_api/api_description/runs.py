"""Runs, history, attachments of the native door, and the AG-UI door, described."""

from paddock.http_api.api_description.examples import MESSAGE_ID, TASK_ID, THREAD_ID
from paddock.http_api.api_description.words import (
    ANYTHING,
    COUNT,
    JSON,
    MOMENT,
    NUMBER,
    OBJECT,
    OF_THREAD,
    RUN,
    SSE,
    TEXT,
    TRUTH,
    Operation,
    Parameter,
    Said,
    list_of,
    one_of,
    or_null,
    ref,
    shape,
    text,
)
from paddock.rules.run.input import MAX_MESSAGES, MAX_RUN_ID

ROOM = "Runs"

_BLOCK = {
    "oneOf": [
        shape({"type": one_of("text"), "text": TEXT}),
        shape(
            {
                "type": one_of("binary"),
                "mimeType": {"type": "string", "pattern": "^image/"},
                "url": text(least=1, most=4096),
            },
            {"id": TEXT, "filename": TEXT},
        ),
    ]
}
_CALL = shape(
    {"id": TEXT, "type": one_of("function"), "function": shape({"name": TEXT, "arguments": TEXT})},
    {"encryptedValue": or_null(TEXT)},
)
_OURS = {"id": text(least=1, most=1024)}
_MORE = {"name": or_null(TEXT), "encryptedValue": or_null(TEXT)}

SCHEMAS = {
    "UserMessage": shape(
        {**_OURS, "role": one_of("user"), "content": {"anyOf": [TEXT, list_of(_BLOCK)]}},
        {"name": TEXT, "encryptedValue": TEXT},
    ),
    "OtherMessage": {
        "oneOf": [
            shape(
                {**_OURS, "role": one_of("assistant")}, {"content": or_null(TEXT), "toolCalls": list_of(_CALL), **_MORE}
            ),
            shape({**_OURS, "role": one_of("system", "developer"), "content": TEXT}, _MORE),
            shape(
                {**_OURS, "role": one_of("tool"), "content": TEXT, "toolCallId": TEXT},
                {"error": or_null(TEXT), "encryptedValue": or_null(TEXT)},
            ),
            shape({**_OURS, "role": one_of("reasoning"), "content": TEXT}, {"encryptedValue": or_null(TEXT)}),
            shape({**_OURS, "role": one_of("activity"), "activityType": TEXT, "content": OBJECT}),
        ]
    },
    "ForwardedProps": shape(
        {"runtime_mode": one_of("chat", "automation")},
        {
            "client_time": shape(
                {
                    "device_timezone": {**TEXT, "description": "An IANA zone."},
                    "client_now_iso": MOMENT,
                    "client_epoch_ms": COUNT,
                }
            )
        },
        strict=True,
    ),
    "RunAgentInput": shape(
        {
            "threadId": {"type": "string", "format": "uuid"},
            "runId": text(least=1, most=MAX_RUN_ID),
            "messages": {
                "type": "array",
                "minItems": 1,
                "maxItems": MAX_MESSAGES,
                "prefixItems": [ref("UserMessage")],
                "items": ref("OtherMessage"),
                "description": "Exactly one user message, and it comes first.",
            },
            "forwardedProps": ref("ForwardedProps"),
        },
        {
            "parentRunId": TEXT,
            "state": ANYTHING,
            "tools": list_of(shape({"name": TEXT, "description": TEXT, "parameters": OBJECT})),
            "context": list_of(shape({"description": TEXT, "value": TEXT})),
        },
    ),
    "TaskAccepted": shape({"taskId": TEXT, "threadId": TEXT, "runId": TEXT, "created": TRUTH}),
    "Run": shape(
        {
            "taskId": TEXT,
            "threadId": TEXT,
            "runId": TEXT,
            "status": one_of("queued", "running", "completed", "failed", "cancelled"),
            "createdAt": MOMENT,
        },
        {
            "agentId": TEXT,
            "code": TEXT,
            "message": TEXT,
            "steeredInto": TEXT,
            "startedAt": MOMENT,
            "endedAt": MOMENT,
            "deadlineAt": MOMENT,
            "usage": shape(
                {
                    "modelCalls": COUNT,
                    "promptTokens": COUNT,
                    "completionTokens": COUNT,
                    "totalTokens": COUNT,
                    "cost": or_null(NUMBER),
                },
                {"unpricedCalls": COUNT},
            ),
        },
    ),
    "HistoryMessage": {
        "oneOf": [
            shape(
                {
                    "id": TEXT,
                    "itemId": TEXT,
                    "taskId": TEXT,
                    "seq": COUNT,
                    "role": one_of("user"),
                    "content": TEXT,
                    "attachments": list_of(shape({"mimeType": TEXT, "url": TEXT})),
                    "timestamp": MOMENT,
                },
                {"erased": TRUTH},
            ),
            shape(
                {
                    "id": TEXT,
                    "taskId": TEXT,
                    "seq": COUNT,
                    "role": one_of("assistant"),
                    "content": TEXT,
                    "ui_schema": or_null(OBJECT),
                    "timestamp": MOMENT,
                },
                {
                    "agentId": TEXT,
                    "name": TEXT,
                    "partial": TRUTH,
                    "erased": TRUTH,
                    "feedback": shape({"rating": one_of("up", "down"), "comment": TEXT}),
                },
            ),
        ]
    },
    "HistoryDay": shape(
        {
            "scope": one_of("history_day"),
            "threadId": or_null(TEXT),
            "day": or_null({"type": "string", "format": "date"}),
            "hasMore": TRUTH,
            "messages": list_of(ref("HistoryMessage")),
        },
        {"truncated": TRUTH},
    ),
    "Explanation": OBJECT,
    "AgUiInput": shape(
        {"threadId": text(least=1, most=512), "runId": text(least=1, most=512), "messages": list_of(OBJECT)},
        {
            "protocolVersion": or_null(TEXT),
            "parentRunId": or_null(TEXT),
            "state": ANYTHING,
            "tools": or_null(list_of(OBJECT)),
            "context": or_null(list_of(OBJECT)),
            "forwardedProps": ANYTHING,
            "resume": or_null(list_of(OBJECT)),
        },
    ),
    "AgUiConnect": shape(
        {"threadId": text(least=1, most=512)},
        {"runId": or_null(text(least=1, most=512)), "protocolVersion": or_null(TEXT)},
    ),
}

_INPUT = {
    "threadId": THREAD_ID,
    "runId": "run-001",
    "state": {},
    "messages": [{"id": "msg-001", "role": "user", "content": "What is the weather in Oslo?"}],
    "tools": [],
    "context": [],
    "forwardedProps": {"runtime_mode": "chat"},
}
ACCEPTED = Said(ref("TaskAccepted"), {"taskId": TASK_ID, "threadId": THREAD_ID, "runId": "run-001", "created": True})
_RUN = Said(
    ref("Run"),
    {
        "taskId": TASK_ID,
        "threadId": THREAD_ID,
        "runId": "run-001",
        "agentId": "echo",
        "status": "completed",
        "createdAt": "2026-03-16T16:12:33.120Z",
        "startedAt": "2026-03-16T16:12:33.120Z",
        "endedAt": "2026-03-16T16:12:33.480Z",
        "deadlineAt": "2026-03-16T16:17:33.120Z",
    },
)
_FRAMES = Said(TEXT, 'id: 1.7.1\ndata: {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"hello"}\n\n', SSE)
_DAY = Said(
    ref("HistoryDay"),
    {
        "scope": "history_day",
        "threadId": THREAD_ID,
        "day": "2026-03-15",
        "hasMore": True,
        "messages": [
            {
                "id": "msg-001",
                "itemId": f"{TASK_ID}.0",
                "taskId": TASK_ID,
                "seq": 1,
                "role": "user",
                "content": "A meeting at ten, please",
                "attachments": [],
                "timestamp": "2026-03-15T10:00:00.000Z",
            },
            {
                "id": MESSAGE_ID,
                "taskId": TASK_ID,
                "seq": 4,
                "role": "assistant",
                "content": "Done.",
                "ui_schema": None,
                "timestamp": "2026-03-15T10:00:05.000Z",
                "agentId": "assistant",
                "name": "Assistant",
            },
        ],
    },
)
_AGENT = Parameter("agent", "The agent to talk to.", place="path")
_AG_UI_BODY = Said(
    ref("AgUiInput"), {"threadId": "main", "runId": "1", "messages": [{"id": "1", "role": "user", "content": "hello"}]}
)
RUNS = "/api/v1/agent/runs"
AG_UI = "/api/v1/agent/ag-ui"


def _ag_ui(path: str, *parameters: Parameter) -> tuple[Operation, ...]:
    return (
        Operation(
            "POST",
            path,
            "Run an agent and stream its events (AG-UI)",
            "AG-UI",
            {200: ("The run, as a stream of AG-UI events.", _FRAMES)},
            body=(_AG_UI_BODY,),
            parameters=parameters,
            problems=(404, 409, 413),
            says="Tolerant: what is not known is passed over. Losing the connection cancels nothing.",
        ),
        Operation(
            "POST",
            f"{path}/connect",
            "How a thread stands, and its live run (AG-UI)",
            "AG-UI",
            {200: ("What was said as a snapshot, then the live run if there is one, as a stream of events.", _FRAMES)},
            body=(Said(ref("AgUiConnect"), {"threadId": "main"}),),
            parameters=parameters,
            problems=(404, 413),
            says="For a client that comes to a thread. Ends with the open interrupts of the last run, if any.",
        ),
        Operation(
            "GET",
            f"{path}/capabilities",
            "What an AG-UI client may expect",
            "AG-UI",
            {200: ("The capabilities, in the official shape.", Said(OBJECT, {"tools": {"supported": True}}))},
            parameters=parameters,
            problems=(404,),
        ),
    )


OPERATIONS = (
    Operation(
        "POST",
        RUNS,
        "Hand in a run",
        ROOM,
        {202: ("The run is on record.", ACCEPTED)},
        body=(Said(ref("RunAgentInput"), _INPUT),),
        parameters=(Parameter("agent", "Who answers; else the thread's active agent, else the default one."),),
        problems=(404, 409, 413),
        says="Strict: exactly this shape. camelCase and snake_case are both read. The same request again gets the same "
        "answer; another one under the same runId is a 409.",
    ),
    Operation(
        "GET",
        f"{RUNS}/{{run}}",
        "Look at a run",
        ROOM,
        {200: ("The run as it is now.", _RUN)},
        parameters=(RUN, OF_THREAD),
        problems=(404, 409),
    ),
    Operation(
        "GET",
        f"{RUNS}/{{run}}/events",
        "Follow a run",
        ROOM,
        {200: ("Its events, from the beginning or after a cursor, to its end.", _FRAMES)},
        parameters=(
            RUN,
            OF_THREAD,
            Parameter("after", "A cursor: the id of the last event the reader has."),
            Parameter("Last-Event-ID", "The same; it comes before `after`.", place="header"),
            Parameter("dialect", "1 for AG-UI 1.0, 0 for 0.x.", one_of("0", "1")),
        ),
        problems=(404, 409, 410),
    ),
    Operation(
        "POST",
        f"{RUNS}/{{run}}/cancel",
        "Stop a run",
        ROOM,
        {202: ("The wish is on record.", _RUN), 200: ("It had ended already.", _RUN)},
        parameters=(RUN, OF_THREAD),
        problems=(404, 409),
    ),
    Operation(
        "GET",
        f"{RUNS}/{{run}}/explain",
        "Why a run may, or may not, make a host call",
        ROOM,
        {
            200: (
                "Which layer decided, in words.",
                Said(ref("Explanation"), {"action": "history.page", "granted": True}),
            )
        },
        parameters=(
            RUN,
            OF_THREAD,
            Parameter("action", "The host call, such as history.page.", required=True),
            Parameter("resource", "The model, tool or base it is about."),
        ),
        problems=(404, 409),
    ),
    Operation(
        "GET",
        "/api/v1/agent/history",
        "What was said on one day",
        ROOM,
        {200: ("The latest day with a message, in the caller's own time zone.", _DAY)},
        parameters=(
            Parameter("threadId", "The thread; else the one opened last that is not archived."),
            Parameter(
                "before",
                "The latest such day strictly before this one.",
                {"type": "string", "format": "date"},
                own_example="2026-03-15",
            ),
        ),
        problems=(404,),
    ),
    *_ag_ui(AG_UI),
    *_ag_ui(f"{AG_UI}/{{agent}}", _AGENT),
)

__all__ = ["ACCEPTED", "JSON", "OPERATIONS", "SCHEMAS"]
