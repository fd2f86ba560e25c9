"""Settings of users. They are read for every run and therefore cached for a few seconds."""

import time
from collections.abc import Callable

from paddock.host.people.principals import Principal
from paddock.ports import PeopleRecords
from paddock.rules.rows.rows import UserRow

REMEMBER_SECONDS = 5.0
"""Another host of the same database may have changed them; changes made here count at once."""
REMEMBER_USERS = 4096


class Users:
    def __init__(
        self, records: PeopleRecords, *, clock: Callable[[], float], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._records = records
        self._clock = clock
        self._now = now
        self._known: dict[tuple[str, str], tuple[UserRow, float]] = {}

    async def profile(self, principal: Principal) -> UserRow:
        """Return the settings of a user: an empty row when nothing was set."""
        key = (principal.workspace_id, principal.user_id)
        found = self._known.get(key)
        if found is not None and found[1] > self._now():
            return found[0]
        return self._remember(await self._records.user(*key) or UserRow(*key, None, None, 0.0))

    async def change(self, principal: Principal, *, time_zone: str | None, locale: str | None) -> UserRow:
        """Store both settings; the caller has checked them."""
        now = self._clock()
        row = UserRow(principal.workspace_id, principal.user_id, time_zone, locale, now)
        await self._records.write([row, principal.audit("users.change", row.user_id, at=now, reason="themselves")])
        return self._remember(row)

    def _remember(self, row: UserRow) -> UserRow:
        if len(self._known) >= REMEMBER_USERS:
            self._known.clear()
        self._known[row.workspace_id, row.user_id] = (row, self._now() + REMEMBER_SECONDS)
        return row
