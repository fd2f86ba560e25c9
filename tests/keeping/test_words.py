"""Words have a quota: what is counted is what the log holds, on every plug, and what is forgotten makes room again."""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from contracts.conftest import PLUGS, open_plug
from host.calling import a_gateway
from host.scripted import ANN, BOB, SmallHouse, small_house
from http_api.doors import a_body, assert_problem, open_doors
from keeping.conversations import THREAD, a_lively_conversation, a_turn
from paddock.host.keeping.retention import Retention
from paddock.host.session.word_quota import COUNT_SECONDS, WordLimits, Words
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.chain import word_bytes
from paddock.rules.log.forgetting import DAY, Periods

pytestmark = pytest.mark.anyio
Houses = Callable[[], Any]
OTHER = "0197a000-0000-7000-8000-000000000002"


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=PLUGS)
def a_house(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Houses:
    @asynccontextmanager
    async def open_house() -> AsyncGenerator[SmallHouse]:
        with open_plug(request.param, tmp_path) as store:
            async with small_house(store, gateway=a_gateway(), clock=clock) as house:
                yield house
                await store.close()

    return open_house


async def in_the_logs(house: SmallHouse, *threads: str) -> int:
    """What the logs really hold."""
    return sum([word_bytes(await house.store.read(thread, limit=10_000)) for thread in threads])


def counting(house: SmallHouse, limits: WordLimits | None = None, now: Callable[[], float] | None = None) -> Words:
    words = Words(
        house.store, spawn=asyncio.ensure_future, limits=limits or WordLimits(), **({"now": now} if now else {})
    )  # pyright: ignore[reportArgumentType]
    object.__setattr__(house.sessions.services, "words", words)  # in place of those it was built with
    return words


async def refused(work: Any) -> str:
    with pytest.raises(HostError) as error:
        await work
    assert error.value.code is ErrorCode.PAYLOAD_TOO_LARGE
    return error.value.message


async def test_what_is_counted_is_what_the_log_holds(a_house: Houses) -> None:
    async with a_house() as house:
        assert await house.store.words_of("default", "ann") == 0
        await a_lively_conversation(house)
        await a_turn(house, "second", "conversation", thread=OTHER)
        held = await in_the_logs(house, THREAD, OTHER)
        assert held > 500
        assert await house.store.words_of("default", "ann") == held
        assert await house.store.words_of("default", None) == held
        assert await house.store.words_of("default", "bob") == 0
        assert await house.store.words_of("elsewhere", None) == 0


async def test_what_is_erased_trimmed_or_deleted_does_not_count_any_more(a_house: Houses, clock: Clock) -> None:
    async with a_house() as house:
        accepted = await a_turn(house, "x" * 5000)
        before = await house.store.words_of("default", "ann")
        await house.keeping.erase(ANN, THREAD, f"{accepted.run_id}.0")
        after = await house.store.words_of("default", "ann")
        assert after == await in_the_logs(house, THREAD) < before - 4500
        clock.now += 20 * DAY
        await a_turn(house, "new")
        retention = Retention(
            house.store, house.sessions, house.keeping, clock=clock, periods=Periods(conversations=10)
        )
        assert (await retention.sweep())["trimmed"] == 1
        assert await house.store.words_of("default", "ann") == await in_the_logs(house, THREAD)
        await house.keeping.delete_thread(ANN, THREAD)
        assert await house.store.words_of("default", "ann") == 0


async def test_who_keeps_as_much_as_they_may_is_refused_and_has_room_again_after_deleting(a_house: Houses) -> None:
    async with a_house() as house:
        moment = [0.0]
        counting(house, WordLimits(of_user=20_000, of_workspace=0), lambda: moment[0])
        await a_turn(house, "x" * 5000)
        await a_turn(house, "still room")
        await a_turn(house, "y" * 15_000)
        text = await refused(house.say("one more", thread=OTHER))
        assert text.startswith("your conversations hold 0 MiB of words, as many as a user may keep; delete conv")
        assert "user_words_mib" in text
        row = (await house.store.audit())[0]
        assert (row.action, row.result) == ("run.accept", "payload_too_large")
        await refused(house.controls.open(ANN, str(uuid.uuid4())))
        await house.controls.open(BOB, str(uuid.uuid4()))
        moment[0] += 2
        await house.keeping.delete_thread(ANN, THREAD)
        await a_turn(house, "there is room", thread=OTHER)


async def test_the_limit_of_a_workspace_is_for_all_its_users(a_house: Houses) -> None:
    async with a_house() as house:
        counting(house, WordLimits(of_user=0, of_workspace=3000))
        await a_turn(house, "x" * 5000)
        text = await refused(house.controls.open(BOB, OTHER))
        assert text.startswith("the conversations of this workspace hold")


async def test_a_run_that_was_accepted_goes_on_and_the_same_request_gets_the_same_answer(a_house: Houses) -> None:
    async with a_house() as house:
        counting(house, WordLimits(of_user=3000, of_workspace=0))
        accepted = await house.say("x" * 5000, thread=THREAD, run="first")
        run = await house.gateway.next()
        await refused(house.say("no more", thread=THREAD))
        assert (await house.say("x" * 5000, thread=THREAD, run="first")).run_id == accepted.run_id
        run.message("the whole answer")
        run.say("run.completed")
        await house.story(accepted)


async def test_a_count_is_gone_on_from_and_made_anew_now_and_then() -> None:
    """Nothing is added up for a run: once when somebody comes, then every minute, because other hosts write too."""
    async with small_house(gateway=a_gateway()) as house:
        asked = list[Any]()
        add_up = house.store.words_of

        of_other_hosts = 0

        async def noted(workspace_id: str, user_id: str | None) -> int:
            asked.append(user_id)
            return await add_up(workspace_id, user_id) + of_other_hosts

        house.store.words_of = noted  # type: ignore[method-assign]
        moment = [0.0]
        words = counting(house, now=lambda: moment[0])
        for number in range(5):
            await a_turn(house, f"message {number}")
        assert asked == ["ann", None]
        assert words.counted("default", "ann") == await in_the_logs(house, THREAD)
        of_other_hosts = 1_000_000
        moment[0] += COUNT_SECONDS + 1
        await a_turn(house, "later")
        assert sorted(asked, key=str) == [None, None, "ann", "ann"]
        assert words.counted("default", "ann") > of_other_hosts


@pytest.mark.spec("http/words")
async def test_over_http_a_full_quota_is_a_413_that_says_what_to_do() -> None:
    async with open_doors() as doors:
        counting(doors.house, WordLimits(of_user=100, of_workspace=0))
        ann, bob = await doors.key_for("ann"), await doors.key_for("bob")
        first = a_body(text="x" * 3000)
        assert (await doors.post(first, headers=ann)).status_code == 202
        for path, body in (
            ("/api/v1/agent/runs", a_body()),
            ("/api/v1/agent/sessions", {}),
            (f"/api/v1/agent/sessions/{first['threadId']}/messages", {"payload": "hi"}),
            (
                "/api/v1/agent/ag-ui",
                {"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "hi"}]},
            ),
        ):
            answer = await doors.client.post(path, json=body, headers=ann)
            assert_problem(answer, 413, "payload_too_large", "your conversations hold")
        assert (await doors.post(a_body(), headers=bob)).status_code == 202
        await doors.answered(await doors.gateway.next(), "an answer")
