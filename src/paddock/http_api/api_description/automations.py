"""Automations, described."""

from paddock.http_api.api_description.examples import JOB_ID, TASK_ID, THREAD_ID
from paddock.http_api.api_description.runs import ACCEPTED
from paddock.http_api.api_description.words import (
    COUNT,
    MOMENT,
    NUMBER,
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

_NAME = text(least=1, most=200)
_ROOM = "Automations"
_JOB_FIELDS: dict[str, Schema] = {
    "cron": or_null(text(most=500)),
    "rrule": or_null(text(most=500)),
    "timeZone": or_null(text(most=64)),
    "startsAt": or_null({"type": ["string", "number"]}),
    "agentId": or_null(_NAME),
    "missed": one_of("skip", "run_once"),
    "enabled": TRUTH,
    "config": ref("AutomationConfig"),
}
_ASKED = {"name": _NAME, "prompt": text(least=1, most=10_000)}
SCHEMAS: dict[str, Schema] = {
    "AutomationConfig": shape(
        {},
        {
            "enabledTools": or_null({**list_of(_NAME), "maxItems": 100}),
            "context": {
                **list_of(shape({"description": text(most=1000), "value": text(most=10_000)}, strict=True)),
                "maxItems": 50,
            },
        },
        strict=True,
    ),
    "NewAutomation": shape(_ASKED, _JOB_FIELDS, strict=True),
    "AutomationChange": shape({}, {**_ASKED, **_JOB_FIELDS}, strict=True),
    "Automation": shape(
        {
            "jobId": TEXT,
            "threadId": TEXT,
            "name": TEXT,
            "prompt": TEXT,
            "timeZone": TEXT,
            "missed": TEXT,
            "enabled": TRUTH,
            "config": ref("AutomationConfig"),
            "nextAt": or_null(MOMENT),
            "upcoming": list_of(MOMENT),
            "createdAt": MOMENT,
            "updatedAt": MOMENT,
        },
        {"cron": TEXT, "rrule": TEXT, "agentId": or_null(TEXT), "startsAt": MOMENT},
    ),
    "AutomationList": shape({"automations": list_of(ref("Automation"))}),
    "Firing": shape(
        {"tick": {"type": "number"}, "scheduledAt": MOMENT, "result": TEXT, "at": MOMENT},
        {"through": MOMENT, "taskId": TEXT, "reason": TEXT},
    ),
    "FiringList": shape({"firings": list_of(ref("Firing"))}),
}
_NEW = {"name": "Morning", "prompt": "What is on today?", "cron": "0 9 * * 1-5", "timeZone": "Europe/Berlin"}
_JOB = {
    "jobId": JOB_ID,
    "threadId": THREAD_ID,
    **_NEW,
    "agentId": None,
    "missed": "skip",
    "enabled": True,
    "config": {"enabledTools": ["calendar_read"], "context": []},
    "startsAt": "2026-03-15T10:00:00.000Z",
    "nextAt": "2026-03-16T08:00:00.000Z",
    "upcoming": ["2026-03-16T08:00:00.000Z", "2026-03-17T08:00:00.000Z"],
    "createdAt": "2026-03-15T10:00:00.000Z",
    "updatedAt": "2026-03-15T10:00:00.000Z",
}
_FIRING = {
    "tick": 1773648000.0,
    "scheduledAt": "2026-03-16T08:00:00.000Z",
    "result": "fired",
    "taskId": TASK_ID,
    "at": "2026-03-16T08:00:00.120Z",
}
_ONE = Parameter("job", "Its jobId.", place="path")
OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "GET",
        "/api/v1/automations",
        "Your automations",
        _ROOM,
        {200: ("The oldest first.", Said(ref("AutomationList"), {"automations": [_JOB]}))},
    ),
    Operation(
        "POST",
        "/api/v1/automations",
        "Make one",
        _ROOM,
        {201: ("It fires from now on.", Said(ref("Automation"), _JOB))},
        body=(Said(ref("NewAutomation"), _NEW),),
        problems=(409, 413),
        says="Give either a cron line or an RRULE. Without a time zone your profile's counts, else UTC.",
    ),
    Operation(
        "GET",
        "/api/v1/automations/{job}",
        "Look at one",
        _ROOM,
        {200: ("With its next ticks.", Said(ref("Automation"), _JOB))},
        parameters=(_ONE,),
        problems=(404,),
    ),
    Operation(
        "PATCH",
        "/api/v1/automations/{job}",
        "Change one",
        _ROOM,
        {200: ("As it is now.", Said(ref("Automation"), {**_JOB, "enabled": False, "nextAt": None, "upcoming": []}))},
        body=(Said(ref("AutomationChange"), {"enabled": False}),),
        parameters=(_ONE,),
        problems=(404, 413),
    ),
    Operation(
        "DELETE",
        "/api/v1/automations/{job}",
        "Take one away",
        _ROOM,
        {204: ("It fires no more; its conversation stays.", None)},
        parameters=(_ONE,),
        problems=(404,),
    ),
    Operation(
        "POST",
        "/api/v1/automations/{job}/run",
        "Run one now",
        _ROOM,
        {202: ("Accepted.", ACCEPTED)},
        parameters=(_ONE,),
        problems=(404, 409, 429),
    ),
    Operation(
        "GET",
        "/api/v1/automations/{job}/firings",
        "What became of its ticks",
        _ROOM,
        {200: ("The latest first.", Said(ref("FiringList"), {"firings": [_FIRING]}))},
        parameters=(
            _ONE,
            Parameter(
                "before",
                "Only ticks before this one: the `tick` of the last one seen.",
                NUMBER,
                own_example=1773648000.0,
            ),
            Parameter("limit", "How many, at most 200.", {**COUNT, "minimum": 1, "maximum": 200}),
        ),
        problems=(404,),
    ),
)
