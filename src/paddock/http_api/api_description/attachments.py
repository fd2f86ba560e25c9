"""Attachments, and what cards ask, described."""

from typing import Any

from paddock.http_api.api_description.examples import ATTACHMENT_ID, DOT, TASK_ID
from paddock.http_api.api_description.runs import ACCEPTED
from paddock.http_api.api_description.words import (
    COUNT,
    MOMENT,
    OBJECT,
    TEXT,
    Operation,
    Parameter,
    Said,
    one_of,
    ref,
    shape,
    text,
)
from paddock.rules.conversations.attachment_urls import PATH

ROOM = "Attachments"
_ONE = f"{PATH}/{{attachment}}"
_ID = Parameter("attachment", "The attachment.", place="path")
_SIGNED = "Known by its signature: no key is needed, and none would help."
_BYTES = {"type": "string", "format": "binary"}

SCHEMAS = {
    "UiAnswer": shape({}, {"values": OBJECT}, strict=True),
    "NewAttachment": shape(
        {"mimeType": TEXT, "size": {"type": "integer", "minimum": 1}},
        {"filename": text(least=1, most=200), "sha256": text(least=64, most=64)},
        strict=True,
    ),
    "AttachmentForm": shape({"file": _BYTES}),
    "Attachment": shape(
        {"attachmentId": TEXT, "status": one_of("pending", "ready")},
        {
            "mimeType": TEXT,
            "size": COUNT,
            "filename": TEXT,
            "url": TEXT,
            "threadId": TEXT,
            "expiresAt": MOMENT,
            "width": COUNT,
            "height": COUNT,
            "upload": shape(
                {"method": one_of("PUT"), "url": TEXT, "headers": {"type": "object"}, "expiresAt": MOMENT},
            ),
        },
    ),
}
_READY: dict[str, Any] = {
    "attachmentId": ATTACHMENT_ID,
    "status": "ready",
    "mimeType": "image/png",
    "size": 5120,
    "filename": "map.png",
    "url": f"https://agents.example.com{PATH}/{ATTACHMENT_ID}/content?expires=1773677553&disposition=inline&key=1a&signature=9f",
    "expiresAt": "2026-03-17T09:12:33.000Z",
    "width": 640,
    "height": 480,
}
_PENDING: dict[str, Any] = {
    "attachmentId": ATTACHMENT_ID,
    "status": "pending",
    "upload": {
        "method": "PUT",
        "url": f"https://agents.example.com{PATH}/{ATTACHMENT_ID}/content?upload=eyJ&key=1a&signature=9f",
        "headers": {"Content-Type": "image/png"},
        "expiresAt": "2026-03-16T09:27:33.000Z",
    },
}
_ANSWER = ref("Attachment")

OPERATIONS = (
    Operation(
        "POST",
        PATH,
        "Upload a file for a message",
        ROOM,
        {
            201: (
                "It is kept (form), or may be uploaded under the address in the answer (JSON).",
                Said(_ANSWER, _PENDING),
            )
        },
        body=(
            Said(ref("NewAttachment"), {"filename": "map.png", "mimeType": "image/png", "size": 5120}),
            Said(ref("AttachmentForm"), {"file": DOT}, "multipart/form-data"),
        ),
        problems=(413, 429),
        says="An image (png, jpeg, webp, gif), judged by its content and drawn anew; PDF when the host allows it.",
    ),
    Operation(
        "GET",
        _ONE,
        "Look at a file, and get a fresh signed URL",
        ROOM,
        {200: ("As it is now.", Said(_ANSWER, _READY))},
        parameters=(_ID, Parameter("download", "`true` for a URL that a browser saves instead of showing.")),
        problems=(404,),
    ),
    Operation(
        "DELETE",
        _ONE,
        "Take back an upload that no message holds",
        ROOM,
        {204: ("It is gone.", None)},
        parameters=(_ID,),
        problems=(404, 409),
    ),
    Operation(
        "PUT",
        f"{_ONE}/content",
        "Upload the bytes an address was given for",
        ROOM,
        {201: ("It is kept.", Said(_ANSWER, _READY))},
        body=(Said(_BYTES, DOT, "application/octet-stream"),),
        parameters=(
            _ID,
            Parameter("upload", "As given.", required=True),
            Parameter("key", "As given.", required=True),
            Parameter("signature", "As given.", required=True),
        ),
        problems=(403, 409, 413, 422, 429, 503),
        says=_SIGNED,
        public=True,
    ),
    Operation(
        "GET",
        f"{_ONE}/content",
        "The file",
        ROOM,
        {200: ("Its bytes.", Said(_BYTES, DOT, "application/octet-stream"))},
        parameters=(
            _ID,
            Parameter("expires", "As given.", COUNT, required=True),
            Parameter("disposition", "As given.", one_of("inline", "attachment"), required=True),
            Parameter("key", "As given.", required=True),
            Parameter("signature", "As given.", required=True),
        ),
        problems=(403, 503),
        says=_SIGNED,
        public=True,
    ),
    Operation(
        "POST",
        "/api/v1/agent/ui-actions/{action}",
        "Press a button of a card, or send its form",
        "Cards",
        {202: ("The run that answers is on record; the same again gives the same answer.", ACCEPTED)},
        body=(Said(ref("UiAnswer"), {"values": {"day": "2026-03-15"}}),),
        body_optional=True,
        parameters=(
            Parameter(
                "action", "The `ref` of the button or form.", place="path", own_example=f"{TASK_ID}.rXkq3nVw0mZ4tUe7"
            ),
        ),
        problems=(404, 409, 413, 429),
        says="For actions of kind `say` and `answer`; clients do `open` and `copy` themselves.",
    ),
)
