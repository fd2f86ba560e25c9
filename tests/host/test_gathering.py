"""What comes right behind one another is written down together; nothing waits for longer than it may."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence

import pytest

from host.scripted import CountingStore, SmallHouse, small_house
from host.still_loop import StillLoop
from paddock.host.audit import FLUSH_SECONDS, Audit
from paddock.host.session.arrivals import PIECE_SECONDS, QUIET_SECONDS
from paddock.rules.rows.rows import AuditRow, NotedRow

pytestmark = pytest.mark.usefixtures("no_threads")


def in_a_small_house(story: Callable[[SmallHouse, CountingStore], Awaitable[None]]) -> None:
    """Tell a story where time passes only when nothing else can happen."""

    async def told() -> None:
        store = CountingStore()
        loop.wait_for(lambda: store.is_idle)
        async with small_house(store) as house:
            await story(house, store)

    loop = StillLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(told())


def test_an_answer_whose_end_is_right_behind_its_first_words_is_one_commit() -> None:
    async def story(house: SmallHouse, store: CountingStore) -> None:
        accepted = await house.say("hello", thread=str(uuid.uuid4()))
        run = await house.gateway.next()
        await asyncio.sleep(QUIET_SECONDS / 2)
        run.delta("hel")
        await asyncio.sleep(PIECE_SECONDS / 2)
        run.message("hello")
        run.say("run.completed")
        await house.story(accepted)
        assert store.commits == 2

    in_a_small_house(story)


@pytest.mark.parametrize("after_the_ack", [0.0, QUIET_SECONDS / 5, 3 * QUIET_SECONDS])
def test_words_that_stay_alone_are_shown_after_two_milliseconds(after_the_ack: float) -> None:
    async def story(house: SmallHouse, _store: CountingStore) -> None:
        thread = str(uuid.uuid4())
        accepted = await house.say("hello", thread=thread)
        follower = house.tails.follow(thread, accepted.run_id, 0)
        run = await house.gateway.next()
        await asyncio.sleep(after_the_ack)
        said_at = asyncio.get_running_loop().time()
        run.delta("hel")
        while not any(entry.fact.is_delta for entry in await follower.next(2)):
            pass
        waited = asyncio.get_running_loop().time() - said_at
        assert waited == pytest.approx(PIECE_SECONDS, abs=1e-9)

    in_a_small_house(story)


def test_words_behind_an_ack_that_has_waited_nearly_long_enough_go_with_it() -> None:
    async def story(house: SmallHouse, store: CountingStore) -> None:
        thread = str(uuid.uuid4())
        accepted = await house.say("hello", thread=thread)
        follower = house.tails.follow(thread, accepted.run_id, 0)
        said_at = asyncio.get_running_loop().time()
        run = await house.gateway.next()
        await asyncio.sleep(QUIET_SECONDS - PIECE_SECONDS / 4)
        run.delta("hel")
        while not any(entry.fact.is_delta for entry in await follower.next(2)):
            pass
        assert asyncio.get_running_loop().time() - said_at == pytest.approx(QUIET_SECONDS, abs=1e-9)
        assert store.commits == 2

    in_a_small_house(story)


def a_row(run_id: str) -> AuditRow:
    return AuditRow(1.0, "w", "user:ann", "models.stream", "m", "w", "allowed", "in the grant", run_id=run_id)


class _Written:
    """Notes when rows were written."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, str | None]] = []

    async def write(self, rows: Sequence[NotedRow]) -> None:
        self.rows += [(asyncio.get_running_loop().time(), row.run_id) for row in rows]


def test_the_rows_of_a_run_get_their_own_time_also_right_behind_another_run() -> None:
    """The end of the first run took its rows along; a timer set for those must not ring for the second's."""

    async def story() -> list[tuple[float, str | None]]:
        written = _Written()
        audit = Audit(written, asyncio.ensure_future)  # pyright: ignore[reportArgumentType]
        audit.soon(a_row("first"))
        await asyncio.sleep(FLUSH_SECONDS / 2)
        assert [row.run_id for row in audit.hand_over("first")] == ["first"]
        audit.soon(a_row("second"))
        await asyncio.sleep(FLUSH_SECONDS * 2)
        return written.rows

    with asyncio.Runner(loop_factory=StillLoop) as runner:
        [(at, run_id)] = runner.run(story())
    assert run_id == "second"
    assert at == pytest.approx(1.5 * FLUSH_SECONDS, abs=1e-9)
