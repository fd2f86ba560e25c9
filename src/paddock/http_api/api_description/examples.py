"""One example for each thing that many operations ask for or answer with: what it looks like in a real call.

A parameter is known here by its name; where the same name means something else, the parameter carries its own example.
"""

from collections.abc import Mapping
from typing import Any

THREAD_ID = "550e8400-e29b-41d4-a716-446655440000"
TASK_ID = "0199a8c4-5b1e-7c3a-9d2f-0123456789ab"
MESSAGE_ID = f"{TASK_ID}.1"
ATTACHMENT_ID = "art_0f3c8a1b5d7e4f2096c1b8d3e7a45f60"
DOCUMENT_ID = "2b7e4d90-8c15-4f3a-a6d2-91e0c7b3f584"
JOB_ID = "0199d2a5-1d50-7c3e-9b1f-0c9a5a7f4e10"
KEY_ID = "6f1d2c7e-3b5a-4d8e-9c21-7a0b4e5d6f12"
DELIVERY_ID = f"{TASK_ID}.000000000004000"

DOT = "GIF89a\x01\x00\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"
"""A picture of one point, whole: every byte of it is ASCII, so JSON can carry it as it is."""

METRICS = (
    "# HELP paddock_runs_in_flight Runs that have not ended.\n"
    "# TYPE paddock_runs_in_flight gauge\n"
    "paddock_runs_in_flight 3\n"
)
PAGE = '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Paddock</title>\n'

BY_NAME: Mapping[str, Any] = {
    "Last-Event-ID": "1.7.1",
    "action": "history.page",
    "actor": "run",
    "after": "1.7.1",
    "agent": "echo",
    "approval": TASK_ID,
    "archived": "false",
    "attachment": ATTACHMENT_ID,
    "delivery": DELIVERY_ID,
    "dialect": "1",
    "disposition": "inline",
    "document": DOCUMENT_ID,
    "download": "true",
    "event": "message.received",
    "expires": 1773677553,
    "from": "2026-03-15",
    "item": MESSAGE_ID,
    "job": JOB_ID,
    "kb": "handbook",
    "key": "1a",
    "limit": 50,
    "platform": "chat",
    "resource": "demo",
    "result": "allowed",
    "run": TASK_ID,
    "scope": "mine",
    "signature": "9f",
    "since": "2026-03-15T00:00:00Z",
    "span": "week",
    "thread": THREAD_ID,
    "threadId": THREAD_ID,
    "timeZone": "Asia/Shanghai",
    "to": "2026-03-31",
    "until": "2026-03-16T00:00:00Z",
    "upload": "eyJ",
    "webhook-id": "evt-1",
    "webhook-timestamp": "1773648000",
    "webhook-signature": "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
}
