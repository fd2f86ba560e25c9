"""Conversations as wholes, described."""

from paddock.http_api.api_description.examples import TASK_ID, THREAD_ID
from paddock.http_api.api_description.runs import ACCEPTED
from paddock.http_api.api_description.words import (
    COUNT,
    MOMENT,
    OBJECT,
    SSE,
    TEXT,
    THREAD,
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
from paddock.rules.search.thread_search import MAX_QUERY
from paddock.rules.session.bus import FROM_PEOPLE

ROOM = "Conversations"
BASE = "/api/v1/agent/sessions"
ONE = f"{BASE}/{{thread}}"

_ENTRY = {
    "threadId": TEXT,
    "archived": TRUTH,
    "closed": TRUTH,
    "items": COUNT,
    "createdAt": MOMENT,
    "updatedAt": MOMENT,
}
_ERASED = {"erased": True, "copies": 2, "artifacts": 0}
SCHEMAS = {
    "SessionEntry": shape(_ENTRY, {"title": TEXT, "automationId": TEXT, "found": ref("Found")}),
    "SessionList": shape({"sessions": list_of(ref("SessionEntry")), "next": or_null(COUNT)}, {"complete": TRUTH}),
    "Pieces": list_of(shape({"text": TEXT, "hit": TRUTH})),
    "Found": shape(
        {},
        {
            "title": ref("Pieces"),
            "message": shape(
                {
                    "itemId": TEXT,
                    "role": one_of("user", "assistant"),
                    "timestamp": MOMENT,
                    "snippet": ref("Pieces"),
                },
                {"agentId": TEXT},
            ),
        },
    ),
    "Session": shape(
        {
            **_ENTRY,
            "activeAgentId": or_null(TEXT),
            "agentsInSession": {"anyOf": [list_of(TEXT), OBJECT]},
            "speakingAgentId": or_null(TEXT),
            "userInterruptible": TRUTH,
            "inflight": OBJECT,
            "transactions": OBJECT,
            "cursor": TEXT,
        },
        {"title": TEXT},
    ),
    "Erased": shape({"erased": TRUTH, "copies": COUNT, "artifacts": COUNT}),
    "NewSession": shape({}, {"threadId": or_null(TEXT), "title": or_null(text(most=200))}, strict=True),
    "SessionChange": shape({}, {"title": or_null(text(most=200)), "archived": or_null(TRUTH)}, strict=True),
    "SessionMessage": shape(
        {"payload": {"anyOf": [text(least=1, most=10_000), {"type": "object", "minProperties": 1}]}},
        {
            "mentioned_agent_id": or_null(TEXT),
            "mentionedAgentId": or_null(TEXT),
            "agent_id": or_null(TEXT),
            "agentId": or_null(TEXT),
            "runId": or_null(text(most=128)),
            "metadata": or_null(OBJECT),
        },
        strict=True,
    ),
    "Control": shape(
        {"subtype": one_of(*sorted(FROM_PEOPLE))},
        {
            "payload": OBJECT,
            "txId": or_null(TEXT),
            "tx_id": or_null(TEXT),
            "turnId": or_null(TEXT),
            "turn_id": or_null(TEXT),
        },
        strict=True,
    ),
    "Edit": shape(
        {"itemId": text(least=1, most=512), "content": text(least=1, most=10_000)},
        {"runId": or_null(text(most=128)), "agentId": or_null(TEXT)},
        strict=True,
    ),
    "Regenerate": shape(
        {"itemId": text(least=1, most=512)}, {"runId": or_null(text(most=128)), "agentId": or_null(TEXT)}, strict=True
    ),
    "Feedback": shape({"rating": {"enum": ["up", "down", None]}}, {"comment": or_null(text(most=2_000))}, strict=True),
    "Export": shape(
        {
            "threadId": TEXT,
            "title": or_null(TEXT),
            "createdAt": MOMENT,
            "updatedAt": MOMENT,
            "messages": list_of(
                shape({"id": TEXT, "seq": COUNT, "role": TEXT, "type": TEXT, "content": TEXT, "timestamp": MOMENT})
            ),
        }
    ),
    "ControlAnswer": shape({"txId": TEXT, "said": list_of(TEXT)}, {"note": TEXT}),
}
_SEEN = {
    "threadId": THREAD_ID,
    "title": "Weather",
    "archived": False,
    "closed": False,
    "items": 2,
    "createdAt": "2026-03-16T16:12:33.120Z",
    "updatedAt": "2026-03-16T16:12:33.480Z",
}
_FOUND_LIST = {
    "sessions": [
        {
            **_SEEN,
            "found": {
                "title": [{"text": "Weather", "hit": True}],
                "message": {
                    "itemId": f"{TASK_ID}.0",
                    "role": "user",
                    "timestamp": "2026-03-16T16:12:33.120Z",
                    "snippet": [
                        {"text": "What is the ", "hit": False},
                        {"text": "weather", "hit": True},
                        {"text": " in ", "hit": False},
                        {"text": "Oslo", "hit": True},
                        {"text": "?", "hit": False},
                    ],
                },
            },
        }
    ],
    "next": None,
    "complete": True,
}
_WHOLE = Said(
    ref("Session"),
    {
        **_SEEN,
        "activeAgentId": "echo",
        "agentsInSession": ["echo"],
        "speakingAgentId": None,
        "userInterruptible": False,
        "inflight": {},
        "transactions": {},
        "cursor": "9",
    },
)
_MESSAGE = 'id: 1.7.0\ndata: {"session_id":"550e...","event":"EVENT","subtype":"AGENT_ADDED","target":"FRONTEND"}\n\n'

_ITEM = {"itemId": f"{TASK_ID}.0"}
_EXPORT_TEXT = Said(TEXT, "# A trip\n", "text/markdown")
_EXPORT = {
    "threadId": THREAD_ID,
    "title": "Weather",
    "createdAt": "2026-03-16T16:12:33.120Z",
    "updatedAt": "2026-03-16T16:12:33.480Z",
    "messages": [
        {
            "id": f"{TASK_ID}.0",
            "seq": 2,
            "role": "user",
            "type": "message",
            "content": "What is the weather in Oslo?",
            "taskId": TASK_ID,
            "timestamp": "2026-03-16T16:12:33.120Z",
        }
    ],
}

OPERATIONS = (
    Operation(
        "POST",
        f"{ONE}/edit",
        "Say an earlier message differently",
        ROOM,
        {202: ("The conversation goes on from there.", ACCEPTED)},
        body=(Said(ref("Edit"), {**_ITEM, "content": "And in Bergen?"}),),
        parameters=(THREAD,),
        problems=(404, 409, 413),
        says="What was said from that message on is left behind: it stays on record and is not read any more.",
    ),
    Operation(
        "POST",
        f"{ONE}/regenerate",
        "Have a message answered again",
        ROOM,
        {202: ("The conversation goes on from there.", ACCEPTED)},
        body=(Said(ref("Regenerate"), _ITEM),),
        parameters=(THREAD,),
        problems=(404, 409, 413),
    ),
    Operation(
        "PUT",
        f"{ONE}/messages/{{item}}/feedback",
        "Say what you think of an answer",
        ROOM,
        {204: ("It is on record.", None)},
        body=(Said(ref("Feedback"), {"rating": "up", "comment": "just right"}),),
        parameters=(THREAD, Parameter("item", "The id of the answer.", place="path")),
        problems=(404, 413),
    ),
    Operation(
        "POST",
        f"{ONE}/items/{{item}}/erase",
        "Erase the words of one message",
        ROOM,
        {200: ("Erased wherever it was stored; the log still verifies.", Said(ref("Erased"), _ERASED))},
        body=(Said(shape({}, {"artifacts": TRUTH}, strict=True), {"artifacts": True}),),
        body_optional=True,
        parameters=(THREAD, Parameter("item", "The id of the message.", place="path")),
        problems=(404, 409, 413),
        says="With `artifacts` the files that it refers to are forgotten too.",
    ),
    Operation(
        "GET",
        f"{ONE}/export",
        "Take a conversation away",
        ROOM,
        {200: ("All of it.", Said(ref("Export"), _EXPORT, other=_EXPORT_TEXT))},
        parameters=(
            THREAD,
            Parameter(
                "format",
                "json, or markdown (then it is text/markdown).",
                one_of("json", "markdown"),
                own_example="markdown",
            ),
        ),
        problems=(404,),
    ),
    Operation(
        "GET",
        BASE,
        "The caller's conversations",
        ROOM,
        {200: ("The one opened last first.", Said(ref("SessionList"), _FOUND_LIST))},
        parameters=(
            Parameter(
                "query",
                "Only those of which the title, or one message, holds all these words. What stands together must be "
                "found together; the last word may be the beginning of one, from three letters on.",
                text(least=1, most=MAX_QUERY, pattern=r"\S"),
                own_example="oslo weath",
            ),
            Parameter("limit", "At most so many.", {"type": "integer", "minimum": 1, "maximum": 200}),
            Parameter("before", "`next` of the page before.", {"type": "integer", "minimum": 1}, own_example=40),
            Parameter("archived", "Only these.", one_of("true", "false")),
        ),
        problems=(504,),
        says="With `query` every entry also tells where the words stand, and `complete` is false while older "
        "conversations are still on their way into the index: then ask again a moment later.",
    ),
    Operation(
        "POST",
        BASE,
        "Open a conversation",
        ROOM,
        {201: ("It is open now.", _WHOLE), 200: ("It was open already.", _WHOLE)},
        body=(Said(ref("NewSession"), {"title": "Weather"}),),
        problems=(404, 409, 413),
    ),
    Operation(
        "GET",
        ONE,
        "Look at a conversation",
        ROOM,
        {200: ("As it is now.", _WHOLE)},
        parameters=(THREAD,),
        problems=(404,),
    ),
    Operation(
        "PATCH",
        ONE,
        "Name or archive a conversation",
        ROOM,
        {200: ("As it is now.", _WHOLE)},
        body=(Said(ref("SessionChange"), {"title": "Oslo"}),),
        parameters=(THREAD,),
        problems=(404, 413),
    ),
    Operation(
        "DELETE",
        ONE,
        "Delete a conversation",
        ROOM,
        {204: ("It is gone.", None)},
        parameters=(THREAD,),
        problems=(404, 409),
    ),
    Operation(
        "POST",
        f"{ONE}/messages",
        "Say something",
        ROOM,
        {202: ("It is on record.", ACCEPTED)},
        body=(Said(ref("SessionMessage"), {"payload": "@writer and now in verse", "runId": "run-002"}),),
        parameters=(THREAD,),
        problems=(404, 409, 413),
    ),
    Operation(
        "POST",
        f"{ONE}/control",
        "Control a conversation",
        ROOM,
        {
            202: (
                "It is on record; what it leads to is in the stream.",
                Said(ref("ControlAnswer"), {"txId": TASK_ID, "said": ["CONTROL:SWITCH_AGENT"]}),
            )
        },
        body=(Said(ref("Control"), {"subtype": "SWITCH_AGENT", "payload": {"agent_id": "writer"}}),),
        parameters=(THREAD,),
        problems=(404, 409, 413),
    ),
    Operation(
        "GET",
        f"{ONE}/events",
        "Follow a conversation",
        ROOM,
        {200: ("Every message for front ends; it does not end.", Said(TEXT, _MESSAGE, SSE))},
        parameters=(
            THREAD,
            Parameter("after", "A cursor; 0 is the very beginning. Without one the stream begins now."),
            Parameter("Last-Event-ID", "The same; it comes before `after`.", place="header"),
            Parameter("format", "messages, or ag-ui.", one_of("messages", "ag-ui"), own_example="ag-ui"),
        ),
        problems=(404, 410),
    ),
)
