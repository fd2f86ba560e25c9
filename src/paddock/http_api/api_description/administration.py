"""People, keys, agents, runners, approvals, and the probes, described."""

from paddock.host.agents.shapes import AgentShape
from paddock.http_api.api_description.examples import KEY_ID, METRICS, PAGE, TASK_ID, THREAD_ID
from paddock.http_api.api_description.words import (
    ANYTHING,
    COUNT,
    MOMENT,
    OBJECT,
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
from paddock.rules.cluster.attach_addresses import PATH, TOKENS

_NAME = text(least=1, most=128)
_STATUS = one_of("pending", "granted", "denied", "expired")
_SETTINGS = {"timezone": or_null(TEXT), "locale": or_null(TEXT)}
SCHEMAS: dict[str, Schema] = {
    "Resources": shape(
        {
            "models": list_of(shape({"modelId": TEXT, "type": TEXT, "provider": TEXT, "default": TRUTH})),
            "tools": list_of(shape({"name": TEXT, "type": TEXT, "description": TEXT, "readOnly": TRUTH})),
            "knowledgeBases": list_of(shape({"kbId": TEXT, "name": TEXT})),
        }
    ),
    "Me": shape(
        {
            "userId": TEXT,
            "workspaceId": TEXT,
            "role": one_of("user", "admin"),
            "profile": shape({"settings": shape(_SETTINGS)}),
        }
    ),
    "MeChange": shape(
        {},
        {"profile": shape({}, {"settings": shape({}, _SETTINGS, strict=True)}, strict=True)},
        strict=True,
    ),
    "Agent": shape(
        {"agentId": TEXT, "label": TEXT, "runnerId": TEXT, "default": TRUTH, "origin": TEXT, "health": TEXT},
        {
            "description": TEXT,
            "isolation": TEXT,
            "problem": TEXT,
            "runnerLabel": ANYTHING,
            "runnerDescription": ANYTHING,
            "definition": OBJECT,
        },
    ),
    "AgentList": shape({"agents": list_of(ref("Agent"))}, {"problem": TEXT}),
    "Runner": shape(
        {"runnerId": TEXT, "plugin": TEXT, "state": TEXT},
        {
            "isolation": TEXT,
            "manifest": OBJECT,
            "detail": TEXT,
            "pid": COUNT,
            "failing": TRUTH,
            "unhealthyFor": list_of(TEXT),
        },
    ),
    "RunnerList": shape({"runners": list_of(ref("Runner"))}),
    "NewAttachToken": shape({"author": _NAME, "name": _NAME}, {"permissions": OBJECT}, strict=True),
    "AttachToken": shape({"token": TEXT, "path": TEXT}),
    "NewKey": shape({"user": _NAME}, {"workspace": _NAME, "role": one_of("user", "admin")}, strict=True),
    "Key": shape({"keyId": TEXT, "key": TEXT, "workspace": TEXT, "user": TEXT, "role": TEXT}),
    "KeyList": shape(
        {
            "keys": list_of(
                shape(
                    {"keyId": TEXT, "workspace": TEXT, "user": TEXT, "role": TEXT, "createdAt": MOMENT},
                    {"revokedAt": MOMENT},
                )
            )
        }
    ),
    "Approval": shape(
        {
            "approvalId": TEXT,
            "taskId": TEXT,
            "threadId": TEXT,
            "agentId": TEXT,
            "action": TEXT,
            "target": ANYTHING,
            "payload": ANYTHING,
            "status": _STATUS,
            "outcome": TEXT,
            "createdAt": MOMENT,
            "expiresAt": MOMENT,
        },
        {"detail": TEXT, "decidedAt": MOMENT},
    ),
    "ApprovalList": shape({"approvals": list_of(ref("Approval"))}),
    "Decision": shape({"decision": one_of("grant", "deny")}, strict=True),
    "Alive": shape({"status": TEXT}),
    "Ready": shape({"status": TEXT, "reason": TEXT}),
}
_ME = {
    "userId": "ann",
    "workspaceId": "default",
    "role": "user",
    "profile": {"settings": {"timezone": "Asia/Shanghai", "locale": "zh-CN"}},
}
_AGENT = {
    "agentId": "echo",
    "label": "Echo",
    "description": "",
    "runnerId": "plugin:paddock/echo/default",
    "default": True,
    "origin": "built-in",
    "health": "ok",
}
_RUNNER = {"runnerId": "plugin:paddock/echo/default", "plugin": "paddock/echo", "state": "ready", "isolation": "L0"}
_KEY = {"keyId": KEY_ID, "workspace": "default", "user": "ann", "role": "user"}
_APPROVAL = {
    "approvalId": TASK_ID,
    "taskId": TASK_ID,
    "threadId": THREAD_ID,
    "agentId": "echo",
    "action": "message.edit",
    "target": {"message_id": "5"},
    "payload": {"text": "better"},
    "status": "pending",
    "outcome": "pending",
    "createdAt": "2026-03-16T16:12:33.120Z",
    "expiresAt": "2026-03-16T17:12:33.120Z",
}
_THIS: dict[str, object] = {
    "openapi": "3.1.0",
    "info": {"title": "Paddock", "version": "0.1.0"},
    "paths": {"/healthz": {"get": {}}},
}
_NAMED = Parameter("agent", "The agent's name.", place="path")
_SEEN = Said(ref("Agent"), _AGENT)


def agent_definition() -> Schema:
    """The keys of the agents file, as editors know them."""
    return AgentShape.model_json_schema(by_alias=True, ref_template="#/components/schemas/{model}")


OPERATIONS = (
    Operation("GET", "/api/v1/users/me", "Who you are here", "People", {200: ("You.", Said(ref("Me"), _ME))}),
    Operation(
        "PATCH",
        "/api/v1/users/me",
        "Set your time zone and language",
        "People",
        {200: ("You, as you are now.", Said(ref("Me"), _ME))},
        body=(Said(ref("MeChange"), {"profile": {"settings": {"timezone": "Asia/Shanghai"}}}),),
        problems=(413,),
    ),
    Operation(
        "GET",
        "/api/v1/api-keys",
        "Who has keys",
        "People",
        {
            200: (
                "The keys of the workspace, without the keys themselves.",
                Said(ref("KeyList"), {"keys": [{**_KEY, "createdAt": "2026-03-16T16:12:33.120Z"}]}),
            )
        },
        admin=True,
    ),
    Operation(
        "POST",
        "/api/v1/api-keys",
        "Make a key",
        "People",
        {201: ("The key; it is shown only now.", Said(ref("Key"), {**_KEY, "key": "pdk_..."}))},
        body=(Said(ref("NewKey"), {"user": "ann"}),),
        problems=(413,),
        admin=True,
    ),
    Operation(
        "DELETE",
        "/api/v1/api-keys/{key}",
        "Revoke a key",
        "People",
        {204: ("Nobody is let in with it any more.", None)},
        parameters=(Parameter("key", "Its keyId.", place="path", own_example=KEY_ID),),
        problems=(404,),
        admin=True,
    ),
    Operation(
        "GET",
        "/api/v1/take-over",
        "What dev said that somebody could take over",
        "People",
        {
            200: (
                "How much there is.",
                Said(
                    shape({"user": TEXT, "workspace": TEXT, "conversations": COUNT, "automations": COUNT}),
                    {"user": "dev", "workspace": "default", "conversations": 12, "automations": 1},
                ),
            )
        },
        admin=True,
        says="For whoever runs the host.",
    ),
    Operation(
        "POST",
        "/api/v1/take-over",
        "Hand what dev said to a user",
        "People",
        {
            200: (
                "What was handed over, and what is left: ask again while that is more than `busy`.",
                Said(
                    shape({"conversations": COUNT, "busy": COUNT, "left": COUNT}),
                    {"conversations": 12, "busy": 0, "left": 0},
                ),
            )
        },
        body=(Said(shape({"user": TEXT}, strict=True), {"user": "ann"}),),
        problems=(413,),
        admin=True,
        says="For whoever runs the host. Conversations go with their files, then automations and the calendar.",
    ),
    Operation(
        "GET",
        "/api/v1/agents",
        "The agents there are",
        "Agents",
        {200: ("All of the workspace.", Said(ref("AgentList"), {"agents": [_AGENT]}))},
    ),
    Operation(
        "GET",
        "/api/v1/agents/{agent}",
        "One agent",
        "Agents",
        {200: ("As it is now.", _SEEN)},
        parameters=(_NAMED,),
        problems=(404,),
    ),
    Operation(
        "PUT",
        "/api/v1/agents/{agent}",
        "Make or change an agent",
        "Agents",
        {201: ("It was made.", _SEEN), 200: ("It was changed.", _SEEN)},
        body=(Said(ref("AgentShape"), {"runner": "plugin:paddock/echo/default"}),),
        parameters=(
            _NAMED,
            Parameter("If-None-Match", "`*`: only make it, and never change one.", place="header", own_example="*"),
        ),
        problems=(404, 409, 413),
        admin=True,
    ),
    Operation(
        "DELETE",
        "/api/v1/agents/{agent}",
        "Take an agent away",
        "Agents",
        {204: ("It is gone.", None)},
        parameters=(_NAMED,),
        problems=(404, 409),
        admin=True,
    ),
    Operation(
        "GET",
        "/api/v1/resources",
        "All that agents can be given",
        "Agents",
        {
            200: (
                "The default model first, then by price.",
                Said(
                    ref("Resources"),
                    {
                        "models": [{"modelId": "demo", "type": "llm", "provider": "paddock", "default": True}],
                        "tools": [{"name": "add", "type": "python", "description": "Add.", "readOnly": True}],
                        "knowledgeBases": [{"kbId": "handbook", "name": "Handbook"}],
                    },
                ),
            )
        },
        admin=True,
    ),
    Operation(
        "GET",
        "/api/v1/runners",
        "The runners there are",
        "Agents",
        {200: ("And how they are.", Said(ref("RunnerList"), {"runners": [_RUNNER]}))},
    ),
    Operation(
        "POST",
        "/api/v1/runners/{author}/{name}/refresh",
        "Read what a plugin offers once more",
        "Agents",
        {200: ("Its runners, as they are now.", Said(ref("RunnerList"), {"runners": [_RUNNER]}))},
        parameters=(
            Parameter("author", "Of the plugin.", TEXT, place="path", own_example="paddock"),
            Parameter("name", "Of the plugin.", TEXT, place="path", own_example="echo"),
        ),
        problems=(404,),
        admin=True,
    ),
    Operation(
        "POST",
        TOKENS,
        "Let a runner attach from elsewhere",
        "Agents",
        {
            201: (
                "A token, good once and for a minute.",
                Said(ref("AttachToken"), {"token": "...", "path": PATH}),
            )
        },
        body=(Said(ref("NewAttachToken"), {"author": "ann", "name": "weather"}),),
        problems=(413,),
        admin=True,
    ),
    Operation(
        "GET",
        "/api/v1/approvals",
        "What your agents asked for",
        "Approvals",
        {200: ("Newest first, at most 100.", Said(ref("ApprovalList"), {"approvals": [_APPROVAL]}))},
        parameters=(Parameter("status", "Only these.", _STATUS, own_example="pending"),),
    ),
    Operation(
        "POST",
        "/api/v1/approvals/{approval}",
        "Grant or deny",
        "Approvals",
        {200: ("It is decided.", Said(ref("Approval"), {**_APPROVAL, "status": "granted", "outcome": "done"}))},
        body=(Said(ref("Decision"), {"decision": "grant"}),),
        parameters=(Parameter("approval", "Its approvalId.", place="path"),),
        problems=(404, 409, 413),
    ),
    Operation(
        "GET",
        "/healthz",
        "Is it alive?",
        "Probes",
        {200: ("Yes.", Said(ref("Alive"), {"status": "alive"}))},
        public=True,
    ),
    Operation(
        "GET",
        "/metrics",
        "Numbers for Prometheus",
        "Probes",
        {200: ("In its text format.", Said(TEXT, METRICS, "text/plain"))},
        admin=True,
    ),
    Operation(
        "GET",
        "/readyz",
        "Is it ready?",
        "Probes",
        {
            200: ("Yes.", Said(ref("Ready"), {"status": "ready", "reason": "ready"})),
            503: ("Not now.", Said(ref("Ready"), {"status": "not ready", "reason": "starting"})),
        },
        public=True,
    ),
    Operation(
        "GET",
        "/api/openapi.json",
        "This description",
        "Probes",
        {200: ("OpenAPI 3.1.", Said(OBJECT, _THIS))},
        public=True,
    ),
    Operation(
        "GET",
        "/api/docs",
        "This description, for people",
        "Probes",
        {200: ("HTML, without anything from elsewhere.", Said(TEXT, PAGE, "text/html"))},
        public=True,
    ),
)
