"""What every store promises about platforms: an event once, deliveries in order, one at a time, and never lost."""

import pytest

from contracts.builders import SESSION, Owner, a_run, an_item, said
from paddock.ports import Store
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.deliveries import (
    DeliveryAgain,
    DeliveryClaim,
    DeliveryOutcome,
    DeliveryRow,
    PlatformConversationRow,
    PlatformEventRow,
)
from paddock.rules.rows.forgetting import ItemErased, SessionGone
from paddock.rules.values import replace

pytestmark = pytest.mark.anyio
EVENT = PlatformEventRow("chat", "e1", SESSION, "r1", b"h", 5.0)


def a_delivery(number: int, *, session: str = SESSION, due: float = 10.0, workspace: str = "w") -> DeliveryRow:
    return DeliveryRow(f"{session}.{number}", workspace, "chat", session, "r1", number, b"{}", 1.0, due_at=due)


async def test_an_event_is_accepted_once_with_its_run(store: Store) -> None:
    await (await Owner.of(store)).write(said("x", None), rows=[a_run("r1"), EVENT])
    again = await Owner.of(store)
    with pytest.raises(HostError) as refused:
        await again.write(said("x", None), rows=[a_run("r2"), replace(EVENT, run_id="r2")])
    assert refused.value.code is ErrorCode.CONFLICT
    assert await store.run("r2") is None
    assert await store.platform_event("chat", "e1") == EVENT
    assert await store.platform_event("other", "e1") is None


async def test_where_a_conversation_lives_is_the_last_word(store: Store) -> None:
    await store.write([PlatformConversationRow(SESSION, "chat", b"1", 1.0)])
    await store.write([PlatformConversationRow(SESSION, "chat", b"2", 2.0)])
    assert await store.platform_conversation(SESSION) == PlatformConversationRow(SESSION, "chat", b"2", 2.0)
    assert await store.platform_conversation("nobody") is None


async def test_of_each_conversation_only_the_first_is_due(store: Store) -> None:
    rows = [a_delivery(2, due=1.0), a_delivery(1, due=5.0), a_delivery(1, session="other", due=3.0)]
    await store.write([*rows, a_delivery(9, session="late", due=99.0)])
    assert [row.delivery_id for row in await store.due_deliveries(10.0)] == ["other.1", f"{SESSION}.1"]
    assert await store.due_deliveries(2.0) == []
    assert await store.next_delivery_at() == 3.0
    await store.write([DeliveryClaim("other.1", "me", 50.0, 4.0)])
    assert await store.next_delivery_at() == 5.0
    await store.write([DeliveryClaim(f"{SESSION}.1", "me", 60.0, 6.0)])
    assert await store.next_delivery_at() == 50.0


async def test_only_whoever_holds_the_claim_says_how_it_went(store: Store) -> None:
    row = a_delivery(1)
    await store.write([row])
    await store.write([row, DeliveryClaim(row.delivery_id, "me", 40.0, 10.0)])
    await store.write([DeliveryClaim(row.delivery_id, "you", 50.0, 20.0)])
    assert await store.delivery_claim(row.delivery_id) == "me"
    assert await store.due_deliveries(20.0) == []
    await store.write([DeliveryOutcome(row.delivery_id, "you", "delivered", 1, None, "", 21.0)])
    assert await store.delivery(row.delivery_id) == row
    await store.write([DeliveryOutcome(row.delivery_id, "me", "pending", 1, 30.0, "503", None)])
    assert await store.due_deliveries(29.0) == []
    assert [one.attempts for one in await store.due_deliveries(30.0)] == [1]
    assert await store.delivery_claim("nobody") == ""
    await store.write([DeliveryClaim(row.delivery_id, "late", 90.0, 30.0)])  # from before that attempt
    assert await store.delivery_claim(row.delivery_id) == "me"
    await store.write([DeliveryClaim(row.delivery_id, "you", 90.0, 30.0, 1)])
    assert await store.delivery_claim(row.delivery_id) == "you"


async def test_what_was_given_up_can_be_delivered_again_and_nothing_else_can(store: Store) -> None:
    row = a_delivery(1)
    await store.write([row, a_delivery(2)])
    with pytest.raises(HostError):
        await store.write([DeliveryAgain(row.delivery_id, 50.0)])
    await store.write([DeliveryClaim(row.delivery_id, "me", 40.0, 10.0)])
    await store.write([DeliveryOutcome(row.delivery_id, "me", "dead", 8, None, "410", 12.0)])
    assert [one.delivery_id for one in await store.deliveries("w", status="dead")] == [row.delivery_id]
    assert [one.number for one in await store.due_deliveries(12.0)] == [2]
    await store.write([DeliveryAgain(row.delivery_id, 50.0)])
    found = await store.delivery(row.delivery_id)
    assert found is not None
    assert (found.status, found.attempts, found.due_at, found.ended_at) == ("pending", 0, 50.0, None)


async def test_deliveries_are_listed_for_their_workspace_newest_first(store: Store) -> None:
    await store.write([*(a_delivery(number) for number in range(1, 4)), a_delivery(1, session="x", workspace="v")])
    assert [row.number for row in await store.deliveries("w", limit=2)] == [3, 2]
    assert [row.number for row in await store.deliveries("w", before=f"{SESSION}.2")] == [1]
    assert await store.deliveries("w", status="dead") == []
    assert await store.next_delivery_at() == 10.0


async def test_they_go_with_their_conversation_with_erased_words_and_with_age(store: Store) -> None:
    await (await Owner.of(store)).write(said("x", None), rows=[an_item(1), EVENT, a_delivery(1000), a_delivery(2001)])
    await store.write([PlatformConversationRow(SESSION, "chat", b"1", 1.0), a_delivery(1, session="old")])
    await store.write([ItemErased(SESSION, 1, "", b"", b"")])
    assert [row.number for row in await store.deliveries("w")] == [1, 2001]
    await store.write([SessionGone(SESSION, ())])
    assert [row.session_id for row in await store.deliveries("w")] == ["old"]
    assert await store.platform_event("chat", "e1") is None
    assert await store.platform_conversation(SESSION) is None
    assert await store.forget_old("deliveries", 2.0) == 1
    await store.write([EVENT])
    assert await store.forget_old("platform_events", 5.0) == 0
    assert await store.forget_old("platform_events", 6.0) == 1
    assert await store.forget_old("automation_ticks", 6.0) == 0


async def test_what_is_due_is_told_by_turns_of_the_workspaces(store: Store) -> None:
    loud = [a_delivery(1, session=f"loud{number}", due=1.0, workspace="loud") for number in range(5)]
    await store.write([*loud, a_delivery(1, session="quiet", due=5.0, workspace="quiet")])
    told = [row.delivery_id for row in await store.due_deliveries(10.0, limit=3)]
    assert told == ["loud0.1", "quiet.1", "loud1.1"]
