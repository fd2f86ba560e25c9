"""A chat platform that tells the host what was said there. No tests live here."""

import json
import time
import uuid

from browser.conftest import SECRET
from paddock.rules.access.signatures import webhook_headers
from walk.hosts import HostProcess


def the_platform_says(host: HostProcess, text: str) -> str:
    """An event of the chat platform's; the conversation it is in."""
    event = {"event_id": uuid.uuid4().hex, "event_type": "message.received", "conversation_id": uuid.uuid4().hex}
    body = json.dumps({**event, "actor": {"actor_id": "u-42"}, "input": {"text": text}}).encode()
    signed = webhook_headers(SECRET.encode(), event["event_id"], time.time(), body)
    with host.client() as client:
        answer = client.post("/api/v1/events?platform=chat", content=body, headers=signed)
    assert answer.status_code == 202, answer.text
    return answer.json()["threadId"]
