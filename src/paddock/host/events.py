"""The events of a run's own conversation, newest first. Large payloads are read like artifacts, by their `raw_ref`."""

from collections.abc import Mapping
from hashlib import sha256

from paddock.host.artifacts import RawContent
from paddock.host.work import Work
from paddock.ports.events import EventRecords
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.events import KINDS, cursor_at, number_in, number_of_raw, position_of, raw_bytes, record, told
from paddock.rules.limits import MAX_PAGE
from paddock.rules.permissions import Grant
from paddock_sdk.protocol.artifacts import ArtifactMetadata
from paddock_sdk.protocol.history import AgentEventRecord, EventPage
from paddock_sdk.protocol.host_calls import EventsGetParams, EventsPageParams

READS_EVENTS = frozenset({"events.get", "events.page"})


class Events:
    def __init__(self, records: EventRecords) -> None:
        self._records = records

    @property
    def work(self) -> Mapping[str, Work]:
        return {"events.get": Work(read=self.get), "events.page": Work(read=self.page)}

    async def get(self, grant: Grant, asked: EventsGetParams) -> AgentEventRecord:
        """One event. An id of elsewhere, of nothing, and of a fact that is no event are all the same."""
        at = grant.scope
        seq = number_in(at.conversation_id, asked.event_id)
        fact = await self._records.fact(at.conversation_id, seq) if seq is not None else None
        event = told(fact) if fact is not None else None
        if fact is None or event is None:
            raise HostError(ErrorCode.NOT_FOUND, "there is no such event")
        return record(fact, event, at.conversation_id, at.workspace_id)

    async def page(self, grant: Grant, asked: EventsPageParams) -> EventPage:
        at, limit = grant.scope, max(1, min(asked.limit, MAX_PAGE))
        before = _place(asked.before_cursor)
        facts = await self._records.events(at.conversation_id, kinds=KINDS, before=before, limit=limit + 1)
        shown = [(fact, event) for fact in facts[:limit] if (event := told(fact)) is not None]
        return EventPage(
            items=[record(fact, event, at.conversation_id, at.workspace_id) for fact, event in shown],
            next_cursor=cursor_at(facts[limit - 1].position) if len(facts) > limit else None,
            prev_cursor=cursor_at(facts[0].position) if facts else None,
            has_more=len(facts) > limit,
        )

    async def raw(self, grant: Grant, ref: str) -> RawContent | None:
        """The whole data of an event, for a run that may read events at all."""
        at = grant.scope
        seq = number_of_raw(at.conversation_id, ref)
        if seq is None or not READS_EVENTS & grant.actions:
            return None
        fact = await self._records.fact(at.conversation_id, seq)
        event = told(fact) if fact is not None else None
        if fact is None or event is None:
            return None
        content = raw_bytes(event)
        about = ArtifactMetadata(
            artifact_id=ref,
            artifact_type="event",
            mime_type="application/json",
            size_bytes=len(content),
            sha256=sha256(content).hexdigest(),
            source="system",
            conversation_id=at.conversation_id,
            run_id=fact.turn_id,
            created_at=fact.time,
        )
        return RawContent(about, content)


def _place(cursor: str | None) -> int | None:
    place = None if cursor is None else position_of(cursor)
    if cursor is not None and place is None:
        raise HostError(ErrorCode.NOT_FOUND, "there is no such place among this conversation's events")
    return place
