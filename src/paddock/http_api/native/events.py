"""`POST /api/v1/events`: a platform tells what happened there. It is known by its signature, not by a key."""

import asyncio
from collections.abc import Callable
from typing import Annotated

from starlette.requests import Request

from paddock.host.platforms.event_shapes import EventShape, inline_size
from paddock.host.platforms.ingress import Ingress
from paddock.host.platforms.platforms import Platform, Platforms, unknown_platform
from paddock.http_api.edge.operations import JSON, Content, Operations, Pydantic, operation
from paddock.http_api.edge.requests import declared_size, local, read_body
from paddock.http_api.edge.shapes import Answer, Query, about
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.platforms.webhook_signatures import WINDOW_SECONDS, is_fresh, is_signed
from paddock.rules.rows.rows import AuditRow
from paddock.rules.run.input import MAX_BODY_BYTES, decode_object
from paddock.rules.run.input_shapes import InvalidInputError

EVENTS = "/api/v1/events"
TOO_LARGE = f"an event has at most {MAX_BODY_BYTES} bytes besides its files"
BODY_BYTES = 8 * 1024 * 1024
LARGE_AT_ONCE = 4
"""Who sends is known only when all of it was read: few may make the host hold that much at the same time."""
SIGNATURE = "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="
EXAMPLE = {
    "event_id": "evt-1",
    "event_type": "message.received",
    "conversation_id": "room-7",
    "actor": {"actor_id": "u-42"},
    "input": {"text": "hello"},
}
UNSIGNED = "its signature is not that of a platform known here"


class EventAccepted(Answer):
    task_id: str
    thread_id: str
    run_id: Annotated[str, about(example="chat:evt-1")]


class EventQuery(Query):
    platform: Annotated[str, about("Which one; not needed when there is only one.", example="chat")] | None = None


class SignedEvent(EventQuery, kw_only=True):
    webhook_id: Annotated[str, about("The message's id.", header="webhook-id", example="evt-1")]
    webhook_timestamp: Annotated[
        str, about("When it was sent, in seconds.", header="webhook-timestamp", example="1773648000")
    ]
    webhook_signature: Annotated[
        str, about("`v1,` and the base64 of the HMAC.", header="webhook-signature", example=SIGNATURE)
    ]


class EventsDoor(Operations):
    group = "Platforms"

    def __init__(
        self,
        *,
        platforms: Platforms,
        ingress: Ingress,
        note: Callable[[AuditRow], None],
        clock: Callable[[], float],
        body_bytes: int = BODY_BYTES,
    ) -> None:
        self._platforms = platforms
        self._ingress = ingress
        self._note = note
        self._clock = clock
        self._body_bytes = body_bytes
        self._large = asyncio.Semaphore(LARGE_AT_ONCE)

    @operation(
        "POST",
        EVENTS,
        {202: "It is on record; the same event again gets the same answer."},
        role="anybody",
        rate="runs",
        errors=(401, 403, 404, 409, 413, 422, 503),
        request=[Content(JSON, Pydantic("PlatformEvent", EventShape), EXAMPLE)],
        parameters=SignedEvent,
    )
    async def post(self, request: Request, query: EventQuery) -> EventAccepted:
        """Tell what happened on a platform

        Signed by the Standard Webhooks convention with the platform's secret; keys do not count here."""
        platform = self._named(request, query)
        body = await self._body(request)
        self._check_signature(platform, request, body)
        try:
            given = decode_object(body, "the event")
        except InvalidInputError as error:
            raise HostError(ErrorCode.INVALID_ARGUMENT, str(error)) from error
        if len(body) - inline_size(given) > MAX_BODY_BYTES:
            raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, TOO_LARGE)
        accepted = await self._ingress.accept(platform, given, lambda url: local(request, url))
        return EventAccepted(accepted.task_id, accepted.thread_id, accepted.run_id)

    async def _body(self, request: Request) -> bytes:
        """All of it, because all of it is signed."""
        size = declared_size(request)
        if size is not None and size <= MAX_BODY_BYTES:
            return await read_body(request, MAX_BODY_BYTES, TOO_LARGE)
        if self._large.locked():
            raise HostError(ErrorCode.RATE_LIMITED, "too many large events at once; send it again", retryable=True)
        async with self._large:
            return await read_body(request, self._body_bytes, f"an event has at most {self._body_bytes} bytes")

    def _named(self, request: Request, query: EventQuery) -> Platform:
        """The platform it says it is of, before anything of the body is read; what nobody signed is not read either."""
        platform = self._platforms.find(query.platform)
        if platform is None or not all(_signing(request).values()):
            self._note(self._refused(platform, UNSIGNED))
            raise unknown_platform()
        return platform

    def _check_signature(self, platform: Platform, request: Request, body: bytes) -> None:
        """Unknown platforms and wrong signatures look the same; only who can sign hears more."""
        headers = _signing(request)
        if not is_signed(platform.incoming, headers, body):
            self._note(self._refused(platform, UNSIGNED))
            raise unknown_platform()
        if not is_fresh(headers, self._clock()):
            self._note(self._refused(platform, "it is older or newer than the window allows"))
            text = f"webhook-timestamp is more than {WINDOW_SECONDS:g} seconds off; sign the event when it is sent"
            raise HostError(ErrorCode.UNAUTHENTICATED, text)

    def _refused(self, platform: Platform | None, reason: str) -> AuditRow:
        name = platform.name if platform is not None else ""
        return AuditRow(
            time=self._clock(),
            workspace_id=platform.principal.workspace_id if platform is not None else "",
            actor=f"platform:{name}",
            action="events.accept",
            resource=name,
            scope="host",
            result="unauthenticated",
            reason=reason,
        )


def _signing(request: Request) -> dict[str, str]:
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    return {name: request.headers.get(name, "") for name in names}
