"""Deliveries over HTTP, for administrators: what waits, what was given up, and once more."""

from dataclasses import dataclass
from typing import Annotated, Literal

from paddock.host.people.principals import Principal
from paddock.host.platforms.deliveries import Deliveries, type_of
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.operations import Operations, operation
from paddock.http_api.edge.shapes import Answer, Count, Moment, Query, about, seen
from paddock.rules.rows.deliveries import DeliveryRow

BASE = "/api/v1/deliveries"
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

    @operation("GET", BASE, {200: "The newest first, without the words."}, role="admin")
    async def list(self, who: Principal, query: DeliveriesQuery) -> DeliveryList:
        """List what is delivered to platforms"""
        found = await self.deliveries.list(who, status=query.status, before=query.before, limit=query.limit)
        return DeliveryList([_seen(row) for row in found])

    @operation("POST", f"{BASE}/{{delivery}}/redeliver", {202: "It is tried anew."}, role="admin", errors=(404, 409))
    async def again(self, who: Principal, delivery: DeliveryId) -> Delivery:
        """Deliver something again that was given up"""
        return _seen(await self.deliveries.again(who, delivery))


def _seen(row: DeliveryRow) -> Delivery:
    own = {"type": type_of(row), "thread_id": row.session_id, "task_id": row.run_id, "detail": row.detail or None}
    return seen(Delivery, row, **own, due_at=row.due_at if row.status == "pending" else None)
