"""What every store promises about calendars."""

import pytest

from paddock.ports import Store
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.automation import CalendarEventGone, CalendarEventRow, CalendarState, CalendarTurn
from paddock.rules.values import replace

pytestmark = pytest.mark.anyio


def an_event(event_id: str, starts_at: float, ends_at: float | None, *, user: str = "ann") -> CalendarEventRow:
    return CalendarEventRow(event_id, "w", user, b'{"title":"x"}', ends_at is None, starts_at, ends_at, 1.0, 1.0)


async def between(store: Store, since: float, until: float, limit: int = 100) -> list[str]:
    found = await store.calendar_events("w", "ann", since=since, until=until, limit=limit)
    return [row.event_id for row in found]


async def test_events_are_found_by_when_they_are_and_belong_to_their_user(store: Store) -> None:
    always, early, late = an_event("always", 5.0, None), an_event("early", 10.0, 20.0), an_event("late", 30.0, 40.0)
    await store.write([late, early, always, an_event("bobs", 10.0, 20.0, user="bob")])
    assert await between(store, 0.0, 100.0) == ["always", "early", "late"]
    assert await between(store, 20.0, 30.0) == ["always"]
    assert await between(store, 19.0, 31.0, limit=2) == ["always", "early"]
    assert await store.calendar_events("v", "ann", since=0.0, until=100.0, limit=9) == []
    assert await store.calendar_state("w", "ann") == CalendarState(0, 3, 1)
    assert await store.calendar_event("early") == early
    assert await store.calendar_event("nobody") is None


async def test_an_event_is_written_whole_keeps_its_beginning_and_goes(store: Store) -> None:
    await store.write([an_event("e", 10.0, 20.0)])
    changed = replace(an_event("e", 50.0, None), body=b"{}", created_at=9.0, updated_at=9.0)
    await store.write([changed])
    assert await store.calendar_event("e") == replace(changed, created_at=1.0)
    await store.write([CalendarEventGone("e")])
    assert await store.calendar_event("e") is None
    assert await store.calendar_state("w", "ann") == CalendarState(0, 0, 0)


@pytest.mark.parametrize("turns", [0, 2])
async def test_of_two_changes_that_did_not_see_each_other_one_is_refused_whole(store: Store, turns: int) -> None:
    for turn in range(turns):
        await store.write([CalendarTurn("w", "ann", turn)])
    await store.write([CalendarTurn("w", "bob", 0)])
    await store.write([CalendarTurn("w", "ann", turns), an_event("mine", 1.0, 2.0)])
    with pytest.raises(HostError) as refused:
        await store.write([CalendarTurn("w", "ann", turns), an_event("yours", 1.0, 2.0)])
    assert refused.value.code is ErrorCode.CONFLICT
    assert await store.calendar_event("yours") is None
    assert await store.calendar_state("w", "ann") == CalendarState(turns + 1, 1, 0)
    with pytest.raises(HostError):
        await store.write([CalendarTurn("w", "new", 1)])
