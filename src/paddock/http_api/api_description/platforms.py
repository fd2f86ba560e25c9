"""Events in and deliveries out, described."""

from paddock.http_api.api_description.examples import DELIVERY_ID, TASK_ID, THREAD_ID
from paddock.http_api.api_description.words import (
    COUNT,
    MOMENT,
    OBJECT,
    TEXT,
    Operation,
    Parameter,
    Said,
    Schema,
    list_of,
    one_of,
    ref,
    shape,
    text,
)

_ROOM = "Platforms"
_ID = text(least=1, most=256)
_FILE = shape(
    {}, {"artifact_id": _ID, "url": text(least=1, most=4096), "content": TEXT, "name": text(least=1, most=200)}
)
_CHOICE = shape({}, {"interaction_id": _ID, "action_id": _ID, "values": OBJECT})
SCHEMAS: dict[str, Schema] = {
    "PlatformEvent": shape(
        {"event_id": _ID, "event_type": text(most=100, pattern=r"^[a-z0-9_]+(\.[a-z0-9_]+)+$")},
        {
            "event_time": {"type": ["number", "string", "null"]},
            "source_event_type": {"anyOf": [_ID, {"type": "null"}]},
            "bot_id": {"anyOf": [_ID, {"type": "null"}]},
            "conversation_id": {"anyOf": [_ID, {"type": "null"}]},
            "thread_id": {"anyOf": [_ID, {"type": "null"}]},
            "actor": {"anyOf": [shape({"actor_id": _ID}, {"actor_type": _ID}), {"type": "null"}]},
            "subject": {"anyOf": [shape({"subject_type": _ID}), {"type": "null"}]},
            "input": shape(
                {},
                {
                    "text": text(most=10_000),
                    "attachments": {**list_of(_FILE), "maxItems": 3},
                    "interaction": {"anyOf": [_CHOICE, {**list_of(_CHOICE), "minItems": 1}, {"type": "null"}]},
                },
            ),
            "delivery": shape({}, {"reply_target": OBJECT}),
            "data": OBJECT,
        },
    ),
    "EventAccepted": shape({"taskId": TEXT, "threadId": TEXT, "runId": TEXT}),
    "Delivery": shape(
        {
            "deliveryId": TEXT,
            "platform": TEXT,
            "type": TEXT,
            "threadId": TEXT,
            "taskId": TEXT,
            "status": one_of("pending", "delivered", "dead"),
            "attempts": COUNT,
            "createdAt": MOMENT,
        },
        {"detail": TEXT, "dueAt": MOMENT, "endedAt": MOMENT},
    ),
    "DeliveryList": shape({"deliveries": list_of(ref("Delivery"))}),
}
_DEAD = {
    "deliveryId": DELIVERY_ID,
    "platform": "chat",
    "type": "message.completed",
    "threadId": THREAD_ID,
    "taskId": TASK_ID,
    "status": "dead",
    "attempts": 8,
    "detail": "answered 500",
    "createdAt": "2026-03-15T10:00:00.000Z",
    "endedAt": "2026-03-15T14:38:00.000Z",
}
_EVENT = {
    "event_id": "evt-1",
    "event_type": "message.received",
    "conversation_id": "room-7",
    "actor": {"actor_id": "u-42"},
    "input": {"text": "hello"},
}
OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "POST",
        "/api/v1/events",
        "Something happened on a platform",
        _ROOM,
        {
            202: (
                "It is on record; the same event again gets the same answer.",
                Said(ref("EventAccepted"), {"taskId": TASK_ID, "threadId": THREAD_ID, "runId": "chat:evt-1"}),
            )
        },
        body=(Said(ref("PlatformEvent"), _EVENT),),
        parameters=(
            Parameter("platform", "Which one; not needed when there is only one."),
            Parameter("webhook-id", "The message's id.", place="header", required=True),
            Parameter("webhook-timestamp", "When it was sent, in seconds.", place="header", required=True),
            Parameter("webhook-signature", "`v1,` and the base64 of the HMAC.", place="header", required=True),
        ),
        problems=(403, 404, 409, 413, 429),
        says="Signed by the Standard Webhooks convention with the platform's secret; keys do not count here.",
    ),
    Operation(
        "GET",
        "/api/v1/deliveries",
        "What is delivered to platforms",
        _ROOM,
        {200: ("The newest first, without the words.", Said(ref("DeliveryList"), {"deliveries": [_DEAD]}))},
        parameters=(
            Parameter(
                "status",
                "Only these; `dead` is what was given up.",
                one_of("pending", "delivered", "dead"),
                own_example="dead",
            ),
            Parameter("before", "The deliveryId of the last one seen.", own_example=DELIVERY_ID),
            Parameter("limit", "How many, at most 200.", {**COUNT, "minimum": 1, "maximum": 200}),
        ),
        admin=True,
    ),
    Operation(
        "POST",
        "/api/v1/deliveries/{delivery}/redeliver",
        "Deliver something again that was given up",
        _ROOM,
        {202: ("It is tried anew.", Said(ref("Delivery"), {**_DEAD, "status": "pending", "attempts": 0}))},
        parameters=(Parameter("delivery", "Its deliveryId.", place="path"),),
        problems=(404, 409),
        admin=True,
    ),
)
