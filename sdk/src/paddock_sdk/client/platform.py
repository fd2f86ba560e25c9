"""The side of a chat platform's adapter: hands events to a host, and reads what the host delivers. Both are signed.

    from paddock_sdk.client import Platform

    chat = Platform("http://127.0.0.1:8484", "chat", secret)
    chat.message("hello", conversation_id="room-7", actor_id="u-42")

Standard library only, like the rest of the client. How events look is in the host's guide on platforms.
"""

import hmac
import json
import time
import uuid
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from paddock_sdk.client.shapes import Accepted
from paddock_sdk.client.wire import Wire

EVENTS = "/api/v1/events"
WINDOW_SECONDS = 300.0


class NotSignedError(Exception):
    """A delivery that the host did not sign, or not just now: answer it with 401 and look no further."""


@dataclass(frozen=True, slots=True)
class File:
    """Something that comes along with a message: its bytes, or what the host calls a file that was uploaded before."""

    content: bytes | None = None
    artifact_id: str | None = None
    name: str | None = None

    def as_json(self) -> dict[str, str]:
        inline = None if self.content is None else b64encode(self.content).decode()
        told = {"content": inline, "artifact_id": self.artifact_id, "name": self.name}
        return {name: value for name, value in told.items() if value is not None}


class Platform:
    def __init__(self, url: str, name: str, secret: str, *, webhook_secret: str | None = None) -> None:
        """The secrets are those of the platform in the host's settings; most need only one."""
        self._wire = Wire(url.rstrip("/"))
        self._name = name
        self._key = _key_of(secret)
        self._other_key = self._key if webhook_secret is None else _key_of(webhook_secret)

    def message(
        self,
        text: str,
        *,
        conversation_id: str,
        actor_id: str | None = None,
        event_id: str | None = None,
        files: Sequence[File] = (),
    ) -> Accepted:
        """Somebody said something. The same again, under the same `event_id`, is taken once.

        Without `actor_id` it is not known who: what the agent asks then cannot be answered in the chat.
        """
        said = {"text": text, **({"attachments": [file.as_json() for file in files]} if files else {})}
        return self.event(_event("message.received", conversation_id, actor_id, event_id, said))

    def answer(
        self,
        action_id: str | None = None,
        *,
        conversation_id: str,
        actor_id: str | None = None,
        interaction_id: str | None = None,
        values: Mapping[str, Any] | None = None,
        event_id: str | None = None,
    ) -> Accepted:
        """Somebody took one of the choices of an `interaction.requested`; without an id it answers all of them."""
        choice = {"interaction_id": interaction_id, "action_id": action_id, "values": values}
        taken = {"interaction": {name: value for name, value in choice.items() if value is not None}}
        return self.event(_event("interaction.submitted", conversation_id, actor_id, event_id, taken))

    def event(self, event: Mapping[str, Any]) -> Accepted:
        """Hand in any event, as the guide describes it. Raises RefusedError, GoneError."""
        body = json.dumps(event).encode()
        headers = _signed(self._key, str(event.get("event_id") or uuid.uuid4()), int(time.time()), body)
        given = self._wire.post(f"{EVENTS}?platform={quote(self._name, safe='')}", body, headers)
        return Accepted(given["taskId"], given["threadId"], given["runId"], False)

    def delivery(self, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
        """Check the signature of a delivery and return its content. Raises NotSignedError.

        One `delivery_id` may arrive more than once: the host repeats an attempt whose end it did not hear.
        """
        told = {name.lower(): value for name, value in headers.items()}
        stamp = told.get("webhook-timestamp", "")
        if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12):
            raise NotSignedError("webhook-timestamp is missing or is no time")
        expected = _signed(self._other_key, told.get("webhook-id", ""), int(stamp), body)["webhook-signature"]
        given = told.get("webhook-signature", "").split()
        if not any(hmac.compare_digest(expected.encode(), one.encode("utf-8", "replace")) for one in given):
            raise NotSignedError("it is not signed with the secret of this platform")
        if abs(int(stamp) - time.time()) > WINDOW_SECONDS:
            raise NotSignedError("it was signed too long ago, or the clocks differ")
        return dict(json.loads(body))


def _event(
    event_type: str, conversation_id: str, actor_id: str | None, event_id: str | None, said: Mapping[str, Any]
) -> dict[str, Any]:
    event = {"event_id": event_id or str(uuid.uuid4()), "event_type": event_type, "conversation_id": conversation_id}
    return {**event, **({"actor": {"actor_id": actor_id}} if actor_id is not None else {}), "input": said}


def _key_of(secret: str) -> bytes:
    return b64decode(secret.removeprefix("whsec_"), validate=True) if secret.startswith("whsec_") else secret.encode()


def _signed(key: bytes, message_id: str, stamp: int, body: bytes) -> dict[str, str]:
    digest = hmac.digest(key, b"%b.%d.%b" % (message_id.encode(), stamp, body), sha256)
    return {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(stamp),
        "webhook-signature": f"v1,{b64encode(digest).decode()}",
    }
