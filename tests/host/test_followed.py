"""Words go to other hosts only of what is followed there, and who begins to follow misses nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from http_api.facts import delta, stored
from paddock.bus.in_process import InProcessBus, Meeting
from paddock.host.streams.live import MAX_SAID, SAID_SECONDS, Followed, Follows, Live, all_of
from paddock.host.streams.tails import Tails
from paddock.rules.errors import StorageUnavailableError
from stores import QuickStore

pytestmark = pytest.mark.anyio
A, B = 1, 2


# --- what is believed of the others


def test_alone_nobody_is_told_anything() -> None:
    assert not Followed().wants("s")


def test_who_has_not_said_what_it_follows_may_follow_anything() -> None:
    followed = Followed()
    followed.meet([A, B], 0.0)
    assert followed.wants("s")
    followed.hear(all_of(A, ["s"]), 0.0)
    assert followed.wants("t")  # for B, which may be of an older release
    followed.hear(all_of(B, []), 0.0)
    assert followed.wants("s")
    assert not followed.wants("t")


def test_who_was_silent_for_a_while_may_follow_anything_again() -> None:
    followed = Followed()
    followed.hear(all_of(A, ["s"]), 0.0)
    followed.meet([A], SAID_SECONDS)
    assert not followed.wants("t")
    followed.meet([A], SAID_SECONDS + 0.1)
    assert followed.wants("t")


def test_who_is_gone_wants_nothing_after_a_while() -> None:
    followed = Followed()
    followed.hear(all_of(A, ["s"]), 0.0)
    followed.meet([], SAID_SECONDS + 0.1)
    assert not followed.wants("s")


def test_what_is_followed_from_now_on_is_told_once() -> None:
    followed = Followed()
    assert set(followed.hear(all_of(A, ["s"]), 0.0)) == {"s"}
    assert set(followed.hear(Follows(A, ["s", "t"], also=True), 1.0)) == {"t"}
    assert not set(followed.hear(all_of(A, ["s", "t"]), 2.0))
    assert not set(followed.hear(all_of(A, ["t"]), 3.0))
    assert not followed.wants("s")
    assert set(followed.hear(all_of(A, ["s", "t"]), 4.0)) == {"s"}


def test_who_follows_very_much_follows_everything() -> None:
    followed, many = Followed(), [str(number) for number in range(MAX_SAID + 1)]
    followed.meet([A], 0.0)
    followed.hear(all_of(A, many[1:]), 0.0)
    assert not followed.wants("s")
    assert all_of(A, many).sessions is None
    followed.hear(all_of(A, many), 0.0)
    assert followed.wants("s")
    followed.hear(Follows(A, ["u"], also=True), 0.0)
    assert followed.wants("s")


# --- two hosts with one log


class Host:
    """As much of a host as words go through."""

    def __init__(self, boot: int, meeting: Meeting, log: QuickStore) -> None:
        self.bus = InProcessBus(meeting)
        self.live = Live(self.bus)
        self.owns = False
        self.tails = Tails(log, self.live, lambda _: self.owns)
        self.boot = boot
        self.said: list[str] = []
        publish = self.bus.publish
        self.bus.publish = lambda subject, word: (self.said.append(subject), publish(subject, word))[1]

    def words(self) -> int:
        """How many words about conversations it has said."""
        return sum(".live." in subject for subject in self.said)


@pytest.fixture
async def two(store: QuickStore) -> AsyncIterator[tuple[Host, Host]]:
    meeting = Meeting()
    async with AsyncExitStack() as stack:
        hosts = Host(A, meeting, store), Host(B, meeting, store)
        for host in hosts:
            await host.bus.open()
            stack.push_async_callback(host.bus.close)
            await host.live.join(host.boot)
        for host, other in (hosts, hosts[::-1]):
            host.live.meet([other.boot])
        await heard()
        yield hosts


async def heard() -> None:
    """Everything that was said has arrived."""
    for _ in range(3):
        await asyncio.sleep(0)


async def test_of_what_nobody_follows_elsewhere_nothing_is_said(two: tuple[Host, Host]) -> None:
    here, there = two
    here.owns = True
    facts = stored(delta("m", "hello", opens=True), delta("m", " you", opens=False))
    here.tails.publish("s", facts[:1])
    assert here.words() == 0
    follower = there.tails.follow("s", None, 0)
    following = asyncio.create_task(follower.next(60.0))
    await heard()
    assert here.words() == 1  # how far it is: the first words were not said
    here.tails.publish("s", facts[1:])
    here.tails.publish("another", facts)
    assert here.words() == 2
    async with asyncio.timeout(10):
        assert [entry.fact.seq for entry in await following] == [facts[1].seq]
    assert there.tails.came["bus"] == 1


async def test_who_follows_no_more_is_told_nothing_after_the_next_beat(two: tuple[Host, Host]) -> None:
    here, there = two
    follower = there.tails.follow("s", None, 0)
    following = asyncio.create_task(follower.next(60.0))
    await heard()
    assert here.live.wanted("s")
    following.cancel()
    follower.close()
    await heard()
    there.live.meet([A])
    await heard()
    assert not here.live.wanted("s")


async def test_who_follows_a_word_too_long_to_say_follows_everything(two: tuple[Host, Host]) -> None:
    here, there = two
    there.bus.max_bytes = 64
    listening = [await there.live.listen(f"conversation {number}", lambda _f, _l: None) for number in range(9)]
    there.live.meet([A])
    await heard()
    assert here.live.wanted("any")
    for one in listening:
        await one.stop()
    there.live.meet([A])
    await heard()
    assert not here.live.wanted("any")


async def test_who_follows_waits_while_the_log_cannot_be_read(two: tuple[Host, Host], store: QuickStore) -> None:
    here, _ = two
    here.live.patience = lambda quiet: 0.01
    follower = here.tails.follow("s", None, 0)
    here.owns = True
    facts = stored(delta("m", "hello", opens=True), delta("m", " you", opens=False))
    here.tails.publish("s", facts[:1])
    assert await follower.next(0.05)
    looks = 0

    async def away(*_: object, **__: object) -> None:
        nonlocal looks
        looks += 1
        raise StorageUnavailableError("away")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "read", away)
        assert await follower.next(0.1) == []
    assert looks
    here.tails.publish("s", facts[1:])
    assert [entry.fact.seq for entry in await follower.next(1.0)] == [facts[1].seq]


async def test_who_comes_when_the_last_words_were_just_said_is_told_how_far_it_is(two: tuple[Host, Host]) -> None:
    here, there = two
    here.tails.publish("s", stored(delta("m", "hello", opens=True)))
    assert here.words() == 0
    follower = there.tails.follow("s", None, 0)
    following = asyncio.create_task(follower.next(60.0))
    await heard()
    assert here.words() == 1
    following.cancel()
