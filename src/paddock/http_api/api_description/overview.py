"""Looking over a workspace, and the web console, described."""

from paddock.http_api.api_description.examples import PAGE, TASK_ID, THREAD_ID
from paddock.http_api.api_description.words import (
    COUNT,
    MOMENT,
    NUMBER,
    OBJECT,
    OF_THREAD,
    RUN,
    TEXT,
    TRUTH,
    Operation,
    Parameter,
    Said,
    Schema,
    list_of,
    one_of,
    or_null,
    ref,
    shape,
    text,
)

ROOM = "Overview"
RUNS = "/api/v1/agent/runs"
_ENDS: dict[str, Schema] = {"runs": COUNT, "completed": COUNT, "failed": COUNT, "cancelled": COUNT}
_TIMES: dict[str, Schema] = {"medianSeconds": NUMBER, "p95Seconds": NUMBER}
SCHEMAS: dict[str, Schema] = {
    "RunEntry": {"allOf": [ref("Run"), shape({"userId": TEXT}, {"runnerId": TEXT})]},
    "RunList": shape({"runs": list_of(ref("RunEntry")), "next": or_null(TEXT)}),
    "StoryEntry": shape(
        {
            "time": MOMENT,
            "kind": one_of("event", "process", "state", "decision", "tool", "model", "artifact"),
            "name": TEXT,
            "detail": OBJECT,
        },
        {"result": TEXT, "until": MOMENT},
    ),
    "Story": shape(
        {"run": ref("RunEntry"), "grant": OBJECT, "entries": list_of(ref("StoryEntry")), "truncated": TRUTH}
    ),
    "AuditedDecision": shape(
        {
            "number": COUNT,
            "time": MOMENT,
            "actor": TEXT,
            "action": TEXT,
            "resource": TEXT,
            "scope": TEXT,
            "result": TEXT,
            "reason": TEXT,
        },
        {"reasonCode": TEXT, "reasonParams": OBJECT, "taskId": TEXT, "runnerId": TEXT, "threadId": TEXT},
    ),
    "DecisionList": shape({"decisions": list_of(ref("AuditedDecision")), "next": or_null(TEXT)}),
    "Allowance": shape(
        {"agentId": TEXT, "runnerId": TEXT, "event": TEXT, "answers": TRUTH},
        {"grant": OBJECT, "context": OBJECT, "problem": TEXT},
    ),
    "UsageReport": shape(
        {
            "since": MOMENT,
            "everySeconds": COUNT,
            "usage": list_of(
                shape(
                    {
                        "start": MOMENT,
                        "agentId": TEXT,
                        "modelId": TEXT,
                        "modelCalls": COUNT,
                        "promptTokens": COUNT,
                        "completionTokens": COUNT,
                        "totalTokens": COUNT,
                        "cost": or_null(NUMBER),
                    },
                    {"unpricedCalls": COUNT},
                )
            ),
            "runs": list_of(shape({"start": MOMENT, **_ENDS}, _TIMES)),
            "total": shape(_ENDS, _TIMES),
        },
        {
            "people": list_of(
                shape(
                    {"userId": TEXT, "modelCalls": COUNT, "totalTokens": COUNT, "cost": or_null(NUMBER)},
                    {"unpricedCalls": COUNT},
                ),
            )
        },
    ),
}
_NO_RUNS = {"runs": 0, "completed": 0, "failed": 0, "cancelled": 0}
_ENTRY = {
    "taskId": TASK_ID,
    "threadId": THREAD_ID,
    "runId": "run-001",
    "agentId": "assistant",
    "status": "completed",
    "createdAt": "2026-03-16T16:12:33.120Z",
    "userId": "ann",
    "runnerId": "plugin:paddock/local-agent/default",
}
_CALL = {
    "time": "2026-03-16T16:12:33.200Z",
    "kind": "decision",
    "name": "history.page",
    "result": "allowed",
    "detail": {"actor": "run", "resource": "history", "scope": THREAD_ID},
}
_SCOPE = Parameter("scope", "`mine` (the default), or `workspace` for administrators.", one_of("mine", "workspace"))
_LIMIT = Parameter("limit", "At most so many; 50 by default.", {"type": "integer", "minimum": 1, "maximum": 200})
_HTML = Said(TEXT, PAGE, "text/html")
_ICON = Said(TEXT, '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"></svg>', "image/svg+xml")
_SHEET = Said(TEXT, "body{margin:0}", "text/css", other=_ICON)
_SCRIPT = Said(TEXT, "export const name = 'Paddock';", "text/javascript", other=_SHEET)

OPERATIONS = (
    Operation(
        "GET",
        RUNS,
        "List runs",
        ROOM,
        {200: ("The one begun last first.", Said(ref("RunList"), {"runs": [_ENTRY], "next": None}))},
        parameters=(
            Parameter("threadId", "Runs that said something in this thread."),
            Parameter("status", "One or several statuses, separated by commas.", own_example="queued,running"),
            Parameter("agent", "Runs of this agent."),
            Parameter("before", "`next` of the page before.", own_example=TASK_ID),
            _SCOPE,
            _LIMIT,
        ),
        problems=(403,),
    ),
    Operation(
        "GET",
        f"{RUNS}/{{run}}/story",
        "All that is on record about a run",
        ROOM,
        {
            200: (
                "In order of time.",
                Said(ref("Story"), {"run": _ENTRY, "grant": {}, "entries": [_CALL], "truncated": False}),
            )
        },
        parameters=(RUN, OF_THREAD),
        problems=(404, 409),
        says="For its owner, and for administrators of the workspace, whose look is itself on record. Why something "
        "was decided (`detail.reason`) is told to administrators.",
    ),
    Operation(
        "GET",
        "/api/v1/audit",
        "Search the audit trail",
        ROOM,
        {
            200: (
                "The newest first.",
                Said(
                    ref("DecisionList"),
                    {
                        "decisions": [
                            {
                                "number": 7,
                                "time": "2026-03-16T16:12:33.200Z",
                                "actor": "run",
                                "action": "history.page",
                                "resource": "history",
                                "scope": THREAD_ID,
                                "result": "allowed",
                                "reason": "granted",
                                "taskId": TASK_ID,
                            }
                        ],
                        "next": None,
                    },
                ),
            )
        },
        parameters=(
            Parameter("actor", "Who asked."),
            Parameter("action", "What for; `history.*` is every action that begins so."),
            Parameter("result", "`allowed`, or the code of the refusal."),
            Parameter("run", "Decisions about this run (a taskId)."),
            Parameter("threadId", "Decisions about this thread."),
            Parameter("since", "Not before this moment.", MOMENT),
            Parameter("until", "Before this moment.", MOMENT),
            Parameter("before", "`next` of the page before.", own_example="7"),
            _LIMIT,
        ),
        problems=(403,),
        admin=True,
    ),
    Operation(
        "GET",
        "/api/v1/usage",
        "What was used, and how long runs took",
        ROOM,
        {
            200: (
                "By span of time, the oldest first.",
                Said(
                    ref("UsageReport"),
                    {
                        "since": "2026-03-15T16:00:00.000Z",
                        "everySeconds": 3600,
                        "usage": [],
                        "runs": [],
                        "total": _NO_RUNS,
                    },
                ),
            )
        },
        parameters=(Parameter("span", "How far back; `day` by default.", one_of("day", "week", "month")), _SCOPE),
        problems=(403,),
    ),
    Operation(
        "GET",
        "/api/v1/agents/{agent}/allowance",
        "What an agent would get for an event",
        ROOM,
        {
            200: (
                "The grant of a run that started now.",
                Said(
                    ref("Allowance"),
                    {
                        "agentId": "assistant",
                        "runnerId": "plugin:paddock/local-agent/default",
                        "event": "message.received",
                        "answers": True,
                        "grant": {"actions": ["models.invoke"], "state_scopes": [], "storage_areas": []},
                        "context": {
                            "trigger": {"type": "message.received", "source": "api", "timestamp": 1773590400},
                            "input": {"text": "What is the weather?", "contents": [], "attachments": []},
                        },
                    },
                ),
            )
        },
        parameters=(
            Parameter("agent", "The agent.", place="path"),
            Parameter("event", "The type of the event; `message.received` by default.", text(most=128)),
            Parameter("text", "What somebody would say.", text(most=2000), own_example="What is the weather?"),
        ),
        problems=(403, 404),
        admin=True,
        says="Nothing is started: manifest, plugin file, agent and workspace are cut down as for a run.",
    ),
    Operation("GET", "/", "The web console", "Console", {200: ("HTML.", _HTML)}, public=True),
    Operation(
        "GET",
        "/assets/{name}",
        "A file of the web console",
        "Console",
        {200: ("The file.", _SCRIPT)},
        parameters=(Parameter("name", "Its name.", place="path", own_example="index-Bx2pQz4k.js"),),
        problems=(404,),
        public=True,
    ),
)
