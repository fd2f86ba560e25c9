"""Platforms: what happened there comes in as signed events, what is said to them goes out as deliveries."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Literal

import anyio
from starlette.requests import Request

from paddock.host.people.principals import Principal
from paddock.host.platforms.deliveries import Deliveries, type_of
from paddock.host.platforms.event_shapes import EventShape, inline_size
from paddock.host.platforms.ingress import Ingress
from paddock.host.platforms.platforms import Platform, Platforms, unknown_platform
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.operations import JSON, Content, Operations, Pydantic, operation
from paddock.http_api.edge.requests import local, read_body
from paddock.http_api.edge.shapes import Answer, Count, Moment, Query, about, seen
from paddock.ports.places import Places
from paddock.rules.access.signatures import WEBHOOK_WINDOW_SECONDS, is_fresh_webhook, is_signed_webhook
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.deliveries import DeliveryRow
from paddock.rules.rows.rows import AuditRow
from paddock.rules.run.input import MAX_BODY_BYTES
from paddock.rules.run.request_bodies import InvalidInputError, decode_object, holds_more_values

EVENTS = "/api/v1/events"
MAX_VALUES = MAX_BODY_BYTES // 2
"""More values cannot be in an event that has its size."""
TOO_LARGE = f"an event has at most {MAX_BODY_BYTES} bytes besides its files"
BODY_BYTES = 8 * 1024 * 1024
LARGE_AT_ONCE, LARGE_EACH = 4, 3
WAITING, WAITING_IN_ALL = 2, 8
"""Large events that are kept at once and that wait for it, of one workspace and in all; those that wait are in memory.
Only events whose signature holds count: while one is on its way it is bounded like any unfinished request."""
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


@dataclass(frozen=True, kw_only=True)
class EventsDoor(Operations):
    group = "Platforms"

    platforms: Platforms
    ingress: Ingress
    note: Callable[[AuditRow], None]
    clock: Callable[[], float]
    body_bytes: int = BODY_BYTES
    _large: Places = field(
        default_factory=lambda: Places(
            LARGE_AT_ONCE, each=LARGE_EACH, alone=LARGE_AT_ONCE, waiting=WAITING, waiting_in_all=WAITING_IN_ALL
        ),
        init=False,
    )

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
        body = await read_body(request, self.body_bytes, f"an event has at most {self.body_bytes} bytes")
        self._check_signature(platform, request, body)
        if len(body) <= MAX_BODY_BYTES:
            return await self._accepted(platform, request, body)
        async with self._large.taken(platform.principal.workspace_id):
            if await anyio.to_thread.run_sync(holds_more_values, body, MAX_VALUES):
                raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, TOO_LARGE)
            return await self._accepted(platform, request, body)

    async def _accepted(self, platform: Platform, request: Request, body: bytes) -> EventAccepted:
        try:
            given = decode_object(body, "the event")
        except InvalidInputError as error:
            raise HostError(ErrorCode.INVALID_ARGUMENT, str(error)) from error
        if len(body) - inline_size(given) > MAX_BODY_BYTES:
            raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, TOO_LARGE)
        accepted = await self.ingress.accept(platform, given, lambda url: local(request, url))
        return EventAccepted(accepted.run_id, accepted.session_id, accepted.client_run_id)

    def _named(self, request: Request, query: EventQuery) -> Platform:
        """Find the platform before the body is read. Refuses unknown platforms and requests without a signature."""
        platform = self.platforms.find(query.platform)
        if platform is None or not all(_signing(request).values()):
            self.note(self._refused(platform, UNSIGNED))
            raise unknown_platform()
        return platform

    def _check_signature(self, platform: Platform, request: Request, body: bytes) -> None:
        """Refuse a wrong signature like an unknown platform. Only a signed request learns that it is too old."""
        headers = _signing(request)
        if not is_signed_webhook(platform.incoming, headers, body):
            self.note(self._refused(platform, UNSIGNED))
            raise unknown_platform()
        if not is_fresh_webhook(headers, self.clock()):
            self.note(self._refused(platform, "it is older or newer than the window allows"))
            text = (
                f"webhook-timestamp is more than {WEBHOOK_WINDOW_SECONDS:g} seconds off; sign the event when it is sent"
            )
            raise HostError(ErrorCode.UNAUTHENTICATED, text)

    def _refused(self, platform: Platform | None, reason: str) -> AuditRow:
        name = platform.name if platform is not None else ""
        return AuditRow(
            time=self.clock(),
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


# --- deliveries, for administrators: what waits, what was given up, and once more -------------------------------------


DELIVERIES = "/api/v1/deliveries"
MAX_LISTED = 200
Status = Literal["pending", "delivered", "dead"]
DeliveryId = Annotated[str, about("Its deliveryId.", example="0199a8c4-5b1e-7c3a-9d2f-0123456789ab.000000000004000")]


class Delivery(Answer):
    """Everything of a delivery but its words: those are in the conversation, for whom it belongs to."""

    delivery_id: DeliveryId
    platform: Annotated[str, about(example="chat")]
    type: Annotated[str, about(example="message.completed")]
    thread_id: str
    task_id: str
    status: Annotated[Status, about(example="dead")]
    attempts: Count
    created_at: Moment
    detail: Annotated[str, about(example="answered 500")] | None = None
    due_at: Moment | None = None
    ended_at: Moment | None = None


class DeliveryList(Answer):
    deliveries: list[Delivery]


class DeliveriesQuery(Query):
    status: Annotated[Status, about("Only these; `dead` is what was given up.", example="dead")] | None = None
    before: Annotated[str, about("The deliveryId of the last one seen.", example="0199a8c4.000000000004000")] | None = (
        None
    )
    limit: Annotated[int, about("How many, at most 200.", ge=1, le=MAX_LISTED)] = 50


@dataclass(frozen=True, kw_only=True)
class DeliveriesDoor(Operations):
    group = "Platforms"
    auth: Auth
    deliveries: Deliveries

    @operation("GET", DELIVERIES, {200: "The newest first, without the words."}, role="admin")
    async def list(self, who: Principal, query: DeliveriesQuery) -> DeliveryList:
        """List what is delivered to platforms"""
        found = await self.deliveries.list(who, status=query.status, before=query.before, limit=query.limit)
        return DeliveryList([_delivery(row) for row in found])

    @operation(
        "POST", f"{DELIVERIES}/{{delivery}}/redeliver", {202: "It is tried anew."}, role="admin", errors=(404, 409)
    )
    async def again(self, who: Principal, delivery: DeliveryId) -> Delivery:
        """Deliver something again that was given up"""
        return _delivery(await self.deliveries.again(who, delivery))


def _delivery(row: DeliveryRow) -> Delivery:
    own = {"type": type_of(row), "thread_id": row.session_id, "task_id": row.run_id, "detail": row.detail or None}
    return seen(Delivery, row, **own, due_at=row.due_at if row.status == "pending" else None)
