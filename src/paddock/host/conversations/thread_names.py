"""Names that clients and platforms give their threads. Inside, a thread is a UUID; outside, it is called as they like.

A name leads to the thread that is on record under it. The id of a new one is made with the cluster's secret, so that
nobody who knows the name can take the id before its owner does.
"""

from uuid import UUID

from paddock.host.ids import id_of, keyed_id
from paddock.host.people.principals import Principal
from paddock.ports.people import PeopleRecords
from paddock.rules.run.input import is_uuid

PURPOSE = "names"
"""What the key of the cluster's secret is made for."""
_NAMES = UUID("6f1de2a1-7c34-5f0b-9a55-3d8e6b7f0c21")
_ROOMS = UUID("2c1a7d0e-58b5-5b0e-8a3c-9f4f1d6e7b52")
"""Never change them: threads whose names are not on record have ids that were made with these."""


class ThreadNames:
    def __init__(self, records: PeopleRecords, key: bytes) -> None:
        self._records = records
        self._key = key

    async def find(self, principal: Principal, name: str) -> str:
        """The thread somebody means: a UUID is itself, any other name is its user's own and always the same thread.

        A name without a thread gets an id that whoever asks at the same moment gets too. The name of a conversation
        that was deleted can be used again, for a new one.
        """
        if is_uuid(name):
            return name.lower()
        whole = f"{principal.workspace_id}\0{principal.user_id}\0{name}"
        return await self._named(principal, name, whole, id_of(whole, _NAMES))

    async def find_room(self, principal: Principal, room: str) -> str:
        """The thread of a platform's room; `room` is the name under which it is on record (`room_name`)."""
        old = id_of(f"{principal.workspace_id}\0{room}", _ROOMS)
        return await self._named(principal, room, f"{principal.workspace_id}\0{principal.user_id}\0{room}", old)

    async def _named(self, principal: Principal, name: str, whole: str, old: str) -> str:
        """`old` is the id that an earlier version gave it: it counts where its owner has a thread of that id."""
        first = keyed_id(whole, self._key)
        found = await self._records.thread_named(principal.workspace_id, principal.user_id, name, first, old)
        return found or await self._unused(whole)

    async def _unused(self, whole: str) -> str:
        """Those before it were deleted."""
        before = 1
        while await self._records.is_buried(thread_id := keyed_id(f"{whole}\0{before}", self._key)):
            before += 1
        return thread_id


def room_name(platform: str, place: str) -> str:
    """Stored name of a platform's room, among the names of the platform's own user."""
    return f"{platform}\0{place}"
