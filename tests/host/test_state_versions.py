"""State that several runs write at once: nobody's update is lost, through the gate."""

import asyncio

import pytest

from host.calling import a_gateway, a_run, ask, refusal
from host.scripted import AtRunner, SmallHouse, small_house
from paddock.rules.errors import ErrorCode, HostError

pytestmark = pytest.mark.anyio

KEY = {"scope": "actor", "key": "count"}


async def increment(house: SmallHouse, run: AtRunner) -> None:
    while True:
        said = await ask(house, run, "state.get", **KEY)
        try:
            value = said.get("value", 0) + 1
            await ask(house, run, "state.set", **KEY, value=value, expected_version=said.get("version", ""))
        except HostError as error:
            if error.code is not ErrorCode.CONFLICT:
                raise
        else:
            return


async def test_no_increment_is_lost_when_two_runs_of_an_agent_count_together() -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 0.05  # so that the rate never refuses
        return now[0]

    async with small_house(gateway=a_gateway(), clock=clock) as house:
        runs = [await a_run(house), await a_run(house)]
        await asyncio.gather(*(increment(house, run) for run in runs for _ in range(5)))
        assert (await ask(house, runs[0], "state.get", **KEY))["value"] == 10


async def test_a_value_that_changed_is_a_conflict_that_tells_the_version_it_has_now() -> None:
    async with small_house(gateway=a_gateway()) as house:
        run = await a_run(house)
        first = await ask(house, run, "state.set", **KEY, value=1, expected_version="")
        second = await ask(house, run, "state.set", **KEY, value=2, expected_version=first["version"])
        code, text = await refusal(house, run, "state.set", **KEY, value=3, expected_version=first["version"])
        assert code is ErrorCode.CONFLICT
        assert "read it again" in text
        said = await ask(house, run, "state.get", **KEY)
        assert (said["value"], said["version"]) == (2, second["version"])


async def test_a_subject_that_has_no_identity_has_no_state() -> None:
    async with small_house(gateway=a_gateway()) as house:
        run = await a_run(house)
        code, _ = await refusal(house, run, "state.get", scope="subject", key="k")
        assert code is ErrorCode.UNAUTHORIZED
