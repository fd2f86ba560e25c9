"""The names clients give their threads. Inside, a thread is a UUID; outside, some clients call it what they like."""

from uuid import UUID

from paddock.host.ids import id_of
from paddock.host.principals import Principal
from paddock.ports.users import UserRecords
from paddock.rules.run_input import is_uuid

_NAMES = UUID("6f1de2a1-7c34-5f0b-9a55-3d8e6b7f0c21")
"""Never change it: threads that were named before names were kept hang on it."""


class ThreadNames:
    def __init__(self, records: UserRecords) -> None:
        self._records = records

    async def find(self, principal: Principal, name: str) -> str:
        """The thread somebody means: a UUID is itself, any other name is its user's own and always the same thread.

        A name without a thread gets an id that whoever asks at the same moment gets too. The name of a conversation
        that was deleted can be used again, for a new one.
        """
        if is_uuid(name):
            return name.lower()
        whole = f"{principal.workspace_id}\0{principal.user_id}\0{name}"
        first = id_of(whole, _NAMES)
        found = await self._records.thread_named(principal.workspace_id, principal.user_id, name, first)
        return found or await self._unused(whole)

    async def _unused(self, whole: str) -> str:
        """Those before it were deleted."""
        before = 1
        while await self._records.is_buried(thread_id := id_of(f"{whole}\0{before}", _NAMES)):
            before += 1
        return thread_id
