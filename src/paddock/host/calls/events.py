"""The events of a run's own conversation, newest first. Large payloads are read like artifacts, by their `raw_ref`.

Where a conversation has threads on its platform, these are the events of the run's own thread and those without a run.
Calls of tools and deliveries are rows beside the log; each is placed after the fact it followed.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Protocol

from paddock.host.calls.work import CallHandler
from paddock.ports import CallRecords, ConversationRecords, DeliveryRecords
from paddock.ports.artifacts import RawContent
from paddock.rules.access.limits import MAX_PAGE
from paddock.rules.access.permissions import Grant, RunScope
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.events import (
    CALLS,
    DELIVERIES,
    KINDS,
    MAX_SEQ,
    Place,
    PlacedEvent,
    call_in,
    cursor_of,
    delivery_in,
    event_of_raw,
    number_in,
    of_call,
    of_delivery,
    of_fact,
    place_of,
    raw_bytes,
    record,
)
from paddock.rules.log.payloads import is_large
from paddock.rules.rows.deliveries import PARTS
from paddock.rules.rows.rows import View
from paddock_sdk.protocol.artifacts import ArtifactMetadata
from paddock_sdk.protocol.history import AgentEventRecord, EventPage
from paddock_sdk.protocol.host_calls import EventsGetParams, EventsPageParams

READS_EVENTS = frozenset({"events.get", "events.page"})
NO_END = Place(MAX_SEQ)


class _Records(CallRecords, ConversationRecords, DeliveryRecords, Protocol): ...


class Events:
    def __init__(self, records: _Records) -> None:
        self._records = records

    @property
    def work(self) -> Mapping[str, CallHandler]:
        return {"events.get": CallHandler(read=self.get), "events.page": CallHandler(read=self.page)}

    async def get(self, grant: Grant, asked: EventsGetParams) -> AgentEventRecord:
        """Return one event. Foreign and unknown ids, and those of facts that are not events, are refused alike."""
        at = grant.scope
        found = await self._find(at, asked.event_id)
        if found is None:
            raise HostError(ErrorCode.NOT_FOUND, "there is no such event")
        return record(found, at, _cursor(at, found))

    async def page(self, grant: Grant, asked: EventsPageParams) -> EventPage:
        at, limit = grant.scope, max(1, min(asked.limit, MAX_PAGE))
        found = await self._before(at, _place(at, asked.before_cursor), limit + 1)
        shown = found[:limit]
        return EventPage(
            items=[record(one, at, _cursor(at, one)) for one in shown],
            next_cursor=_cursor(at, shown[-1]) if len(found) > limit else None,
            prev_cursor=_cursor(at, shown[0]) if shown else None,
            has_more=len(found) > limit,
        )

    async def _before(self, at: RunScope, place: Place, limit: int) -> list[PlacedEvent]:
        session, view = at.session_id, View(at.subthread_id)
        after = place.seq + 1 if place.after else place.seq  # rows that follow a fact come after it
        facts = await self._records.events(session, kinds=KINDS, before=after, limit=limit, view=view)
        called = (place.seq, place.number) if place.after == CALLS else (after, 0)
        calls = await self._records.placed_calls(session, before=called, limit=limit, view=view)
        number = place.number if place.after == DELIVERIES else place.seq * PARTS
        deliveries = await self._records.deliveries_of_session(session, before=number, limit=limit, view=view)
        events = [
            *(one for fact in facts if (one := of_fact(fact, session)) is not None),
            *(of_call(call, at.agent_id) for call in calls),
            *map(of_delivery, deliveries),
        ]
        return sorted(events, key=lambda one: one.order, reverse=True)[:limit]

    async def raw(self, grant: Grant, ref: str) -> RawContent | None:
        """Return all data of an event, for a run that may read events; of its own event, for any run."""
        at = grant.scope
        event_id = event_of_raw(ref)
        found = await self._find(at, event_id) if event_id is not None else None
        if found is None or found.erased:
            return None
        own = found.run_id == at.run_id and is_large(found.told.given)
        if not (own or READS_EVENTS & grant.actions):
            return None
        content = raw_bytes(found.told)
        about = ArtifactMetadata(
            artifact_id=ref,
            artifact_type="event",
            mime_type="application/json",
            size_bytes=len(content),
            sha256=sha256(content).hexdigest(),
            source="system",
            conversation_id=at.session_id,
            run_id=found.run_id,
            created_at=found.time,
        )
        return RawContent(about, content)

    async def _find(self, at: RunScope, event_id: str) -> PlacedEvent | None:
        """Find an event of this conversation, and of the run's own thread if it has one."""
        found = await self._on_record(at, event_id)
        if found is None or found.run_id is None:
            return found
        run = await self._records.run(found.run_id)
        return found if run is not None and run.subthread_id == at.subthread_id else None

    async def _on_record(self, at: RunScope, event_id: str) -> PlacedEvent | None:
        session = at.session_id
        if (seq := number_in(session, event_id)) is not None:
            fact = await self._records.fact(session, seq)
            return of_fact(fact, session) if fact is not None else None
        if (call_id := call_in(session, event_id)) is not None:
            call = await self._records.placed_call(call_id)
            return of_call(call, at.agent_id) if call is not None and call.row.session_id == session else None
        if (delivery_id := delivery_in(session, event_id)) is not None:
            row = await self._records.delivery(delivery_id)
            return of_delivery(row) if row is not None and row.session_id == session else None
        return None


def _cursor(at: RunScope, event: PlacedEvent) -> str:
    return cursor_of(event.place, at.session_id, View(at.subthread_id))


def _place(at: RunScope, cursor: str | None) -> Place:
    if cursor is None:
        return NO_END
    place = place_of(cursor, at.session_id, View(at.subthread_id))
    if place is None:
        raise HostError(ErrorCode.NOT_FOUND, "there is no such place among this conversation's events")
    return place
