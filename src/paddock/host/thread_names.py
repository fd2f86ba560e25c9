"""The names clients give their threads. Inside, a thread is a UUID; outside, some clients call it what they like."""

from uuid import UUID, uuid5

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
        known = await self._records.thread_named(principal.workspace_id, principal.user_id, name)
        return known or await self._unused(principal, name)

    async def _unused(self, principal: Principal, name: str) -> str:
        whole, before = f"{principal.workspace_id}\0{principal.user_id}\0{name}", 0
        thread_id = str(uuid5(_NAMES, whole))
        while await self._records.is_buried(thread_id):
            before += 1
            thread_id = str(uuid5(_NAMES, f"{whole}\0{before}"))
        return thread_id
