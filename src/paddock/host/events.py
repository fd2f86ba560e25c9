"""The events of a run's own conversation, newest first. Large payloads are read like artifacts, by their `raw_ref`.

Of a conversation with threads of its platform, those of the run's own thread and those of no run.
"""

from collections.abc import Mapping
from hashlib import sha256

from paddock.host.artifacts import RawContent
from paddock.host.work import Work
from paddock.ports import Records
from paddock.rules.chain import StoredFact
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.events import KINDS, Told, number_in, number_of_raw, raw_bytes, record, told
from paddock.rules.limits import MAX_PAGE
from paddock.rules.permissions import Grant, RunScope
from paddock.rules.places import Place, cursor_of, place_of
from paddock.rules.rows import View
from paddock.rules.run_events import is_large
from paddock_sdk.protocol.artifacts import ArtifactMetadata
from paddock_sdk.protocol.history import AgentEventRecord, EventPage
from paddock_sdk.protocol.host_calls import EventsGetParams, EventsPageParams

READS_EVENTS = frozenset({"events.get", "events.page"})


class Events:
    def __init__(self, records: Records) -> None:
        self._records = records

    @property
    def work(self) -> Mapping[str, Work]:
        return {"events.get": Work(read=self.get), "events.page": Work(read=self.page)}

    async def get(self, grant: Grant, asked: EventsGetParams) -> AgentEventRecord:
        """One event. An id of elsewhere, of nothing, and of a fact that is no event are all the same."""
        at = grant.scope
        found = await self._find(at, number_in(at.conversation_id, asked.event_id))
        if found is None:
            raise HostError(ErrorCode.NOT_FOUND, "there is no such event")
        fact, event = found
        return record(fact, event, at, _cursor(at, fact))

    async def page(self, grant: Grant, asked: EventsPageParams) -> EventPage:
        at, limit = grant.scope, max(1, min(asked.limit, MAX_PAGE))
        before, view = _place(at, asked.before_cursor), View(at.subthread_id)
        facts = await self._records.events(at.conversation_id, kinds=KINDS, before=before, limit=limit + 1, view=view)
        shown = [(fact, event) for fact in facts[:limit] if (event := told(fact)) is not None]
        return EventPage(
            items=[record(fact, event, at, _cursor(at, fact)) for fact, event in shown],
            next_cursor=_cursor(at, facts[limit - 1]) if len(facts) > limit else None,
            prev_cursor=_cursor(at, facts[0]) if facts else None,
            has_more=len(facts) > limit,
        )

    async def raw(self, grant: Grant, ref: str) -> RawContent | None:
        """The whole data of an event, for a run that may read events at all; of its own event, for any."""
        at = grant.scope
        found = await self._find(at, number_of_raw(at.conversation_id, ref))
        if found is None:
            return None
        fact, event = found
        own = fact.turn_id == at.run_id and is_large(event.given)
        if not (own or READS_EVENTS & grant.actions):
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

    async def _find(self, at: RunScope, seq: int | None) -> tuple[StoredFact, Told] | None:
        """A fact of this conversation that is an event, and of the run's own thread if it is of any."""
        fact = await self._records.fact(at.conversation_id, seq) if seq is not None else None
        event = told(fact) if fact is not None else None
        if fact is None or event is None:
            return None
        run = await self._records.run(fact.turn_id) if fact.turn_id is not None else None
        there = fact.turn_id is None or (run is not None and run.subthread_id == at.subthread_id)
        return (fact, event) if there else None


def _cursor(at: RunScope, fact: StoredFact) -> str:
    return cursor_of(Place(fact.position), at.conversation_id, View(at.subthread_id))


def _place(at: RunScope, cursor: str | None) -> int | None:
    place = None if cursor is None else place_of(cursor, at.conversation_id, View(at.subthread_id))
    if cursor is not None and place is None:
        raise HostError(ErrorCode.NOT_FOUND, "there is no such place among this conversation's events")
    return place.seq if place is not None else None
