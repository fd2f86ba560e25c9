"""What was just committed is kept for those who follow it, or are about to; the rest is let go."""

import pytest

from http_api.facts import delta, stored
from paddock.host.streams.tails import IDLE_TAILS, Tails
from stores import QuickStore

pytestmark = pytest.mark.anyio
MANY = 3 * IDLE_TAILS


async def test_where_something_goes_on_nothing_is_let_go_before_its_reader_comes(store: QuickStore) -> None:
    tails = Tails(store, owned=lambda session_id: session_id.startswith("busy"))
    facts = stored(delta("m", "hello", opens=True))
    for number in range(MANY):
        tails.publish(f"busy {number}", facts)
        tails.publish(f"over {number}", facts)
    readers = [tails.follow(f"busy {number}", None, 0) for number in range(MANY)]
    assert all([await reader.next(0) for reader in readers])  # the log has nothing


async def test_what_is_over_is_let_go_soon(store: QuickStore) -> None:
    busy = True
    tails = Tails(store, owned=lambda _: busy)
    facts = stored(delta("m", "hello", opens=True))
    for number in range(MANY):
        tails.publish(f"before {number}", facts)
    busy = False
    for number in range(MANY):
        tails.publish(f"after {number}", facts)
    assert len(tails) <= IDLE_TAILS
