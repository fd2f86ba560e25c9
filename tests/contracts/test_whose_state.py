"""What agents kept under bare ids is given to whom it certainly belongs, when the store is brought up to date."""

from typing import Any, cast

import pytest

from host.scripted import ANN, AtRunner, SmallHouse
from paddock.host.people.principals import Principal
from paddock.ports import Store
from paddock.rules.access.permissions import scope_key
from paddock.rules.rows.rows import StateRow
from paddock.storage.tables.statements import HasEngine
from paddock.storage.tables.whose_state import give_to_owners
from safety.test_whose_memory import Speaks, a_house, by_api, by_schedule, ended, found, handed_over, on

pytestmark = pytest.mark.anyio

GROUP = {"subject_type": "group", "subject_id": "7"}
EVA = Principal("default", "eva")


def on_platform(platform: str, name: str | None, **event: Any) -> Speaks:
    return lambda house: on(house, platform, actor=name and {"actor_id": name}, **event)


async def taken_over(house: SmallHouse) -> AtRunner:
    return await handed_over(house, await by_api(house, ANN), ANN)


BELONGS: list[tuple[str, Speaks, bool]] = [
    ("ann of the workspace", lambda house: by_api(house, ANN), True),
    ("ann on a platform: there is one of the workspace", on_platform("chat", "ann"), False),
    ("ben, who is on one platform only", on_platform("chat", "ben"), True),
    ("carl on a platform: there is one on another", on_platform("chat", "carl"), False),
    ("carl on the other", on_platform("talk", "carl"), False),
    ("somebody on a platform, in the only room where nobody is named", on_platform("chat", None), True),
    ("ann's schedule: nobody else has one", lambda house: by_schedule(house, ANN), True),
    ("who takes over from one: only ann was handed over", taken_over, True),
]


async def keep_as_before(house: SmallHouse, run: AtRunner, value: str, scope: str = "actor") -> None:
    """Keep a value under the key that it had before the step."""
    live, about = house.runs.live.find(run.run_id), run.context[scope]
    assert live is not None
    at = live.grant.scope
    identity = tuple((f"{scope}_{name}", about[f"{scope}_{name}"]) for name in ("type", "id"))
    key = scope_key(scope, at.workspace_id, at.agent_id, live.grant.runner_id, identity)
    await house.store.write([StateRow(key, "told", f'"{value}"'.encode(), 1.0)])
    await ended(house, run)


async def upgrade(store: Store) -> None:
    await cast("HasEngine", store).engine.do(give_to_owners)


async def test_a_memory_goes_on_for_whom_it_certainly_belongs_to_and_for_nobody_else(store: Store) -> None:
    async with a_house(store) as house:
        for who, speaks, _ in BELONGS:
            await keep_as_before(house, await speaks(house), who)
        await upgrade(store)
        told: dict[str, Any] = {}
        for who, speaks, _ in BELONGS:
            run = await speaks(house)
            told[who] = await found(house, run)
            await ended(house, run)
        kept = {who: who if theirs else None for who, _, theirs in BELONGS}
        assert told == kept | {"ann of the workspace": "ann on a platform: there is one of the workspace"}
        later = await by_api(house, Principal("default", "carl"))
        assert await found(house, later) is None
        await ended(house, later)
        await upgrade(store)
        again = await on(house, "chat", actor={"actor_id": "ben"})
        assert await found(house, again) == "ben, who is on one platform only"
        again.say("run.completed")


async def test_what_was_kept_about_a_subject_goes_on_where_only_one_platform_knows_it(store: Store) -> None:
    async with a_house(store) as house:
        for platform, subject_id in (("chat", "7"), ("chat", "8"), ("talk", "8")):
            subject = GROUP | {"subject_id": subject_id}
            run = await on(house, platform, event_type="group.renamed", subject=subject)
            await keep_as_before(house, run, f"group {subject_id}", "subject")
        await upgrade(store)
        for platform, subject_id, value in (("chat", "7", "group 7"), ("talk", "7", None), ("chat", "8", None)):
            subject = GROUP | {"subject_id": subject_id}
            run = await on(house, platform, event_type="group.renamed", subject=subject)
            assert await found(house, run, "subject") == value
            await ended(house, run)


async def test_what_schedules_of_two_users_kept_together_is_nobodys(store: Store) -> None:
    async with a_house(store) as house:
        for who in (ANN, EVA):
            await keep_as_before(house, await by_schedule(house, who), "of both")
        await upgrade(store)
        for who in (ANN, EVA):
            run = await by_schedule(house, who)
            assert await found(house, run) is None
            await ended(house, run)


async def test_a_store_where_nothing_was_kept_stays_as_it_is(store: Store) -> None:
    await upgrade(store)
    assert await store.state("actor:1", "told") is None
