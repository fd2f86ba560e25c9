"""Who the caller is here, what they set, and what of it their agents are told."""

from typing import Any

import pytest

from http_api.doors import a_body, assert_problem, open_doors

pytestmark = pytest.mark.anyio
ME = "/api/v1/users/me"


def settings(**given: Any) -> dict[str, Any]:
    return {"profile": {"settings": given}}


@pytest.mark.spec("http/me")
async def test_everybody_sees_themselves_and_changes_nobody_else() -> None:
    async with open_doors() as doors:
        ann, bob = await doors.key_for("ann"), await doors.key_for("bob", role="admin")
        answer = await doors.client.patch(ME, json=settings(timezone="Asia/Tokyo", locale="ja"), headers=ann)
        expected = {
            "userId": "ann",
            "workspaceId": "default",
            "role": "user",
            **settings(timezone="Asia/Tokyo", locale="ja"),
        }
        assert answer.json() == expected == (await doors.client.get(ME, headers=ann)).json()
        seen = (await doors.client.get(ME, headers=bob)).json()
        assert (seen["userId"], seen["role"]) == ("bob", "admin")
        assert seen["profile"] == settings(timezone=None, locale=None)["profile"]
        [row] = [row for row in await doors.house.store.audit() if row.action == "users.change"]
        assert (row.actor, row.result) == ("user:ann", "allowed")


@pytest.mark.spec("http/me")
async def test_what_is_left_out_stays_and_null_takes_it_back() -> None:
    async with open_doors() as doors:
        await doors.client.patch(ME, json=settings(timezone="Asia/Tokyo", locale="ja"))
        assert (await doors.client.patch(ME, json={})).json()["profile"] == settings(
            timezone="Asia/Tokyo", locale="ja"
        )["profile"]
        answer = await doors.client.patch(ME, json=settings(locale=None))
        assert answer.json()["profile"] == settings(timezone="Asia/Tokyo", locale=None)["profile"]


@pytest.mark.spec("http/me")
@pytest.mark.parametrize(
    ("body", "says"),
    [
        (settings(timezone="Mars/Olympus"), "timezone must be the name of an IANA zone"),
        (settings(timezone=8), "timezone must be"),
        (settings(locale="日本"), "locale must be a language tag"),
        (settings(locale="x" * 40), "locale must be"),
        (settings(zone="UTC"), "settings has no 'zone'; known are timezone, locale"),
        ({"profile": []}, "profile must be an object"),
        ({"profile": {"settings": "UTC"}}, "settings must be an object"),
        ({"role": "admin"}, "unknown field 'role'"),
    ],
)
async def test_what_makes_no_sense_is_refused_and_nothing_is_changed(body: Any, says: str) -> None:
    async with open_doors() as doors:
        assert_problem(await doors.client.patch(ME, json=body), 422, "invalid_argument", says)
        assert (await doors.client.get(ME)).json()["profile"] == settings(timezone=None, locale=None)["profile"]


@pytest.mark.spec("http/time-zone")
async def test_an_agent_is_told_the_zone_of_the_device_else_of_the_profile_else_utc() -> None:
    async with open_doors() as doors:
        told: list[tuple[str, str | None]] = []

        async def say(run: str, **props: Any) -> None:
            body = a_body(run=run, forwardedProps={"runtime_mode": "chat", **props})
            assert (await doors.post(body)).status_code == 202
            runtime = (await doors.gateway.next()).context["runtime"]
            told.append((runtime["timezone"], runtime.get("locale")))

        device = {"device_timezone": "Europe/Oslo", "client_now_iso": "2026-03-16T09:12:33Z", "client_epoch_ms": 0}
        await say("1")
        await doors.client.patch(ME, json=settings(timezone="Asia/Shanghai", locale="zh-CN"))
        await say("2")
        await say("3", client_time=device)
        assert told == [("UTC", None), ("Asia/Shanghai", "zh-CN"), ("Europe/Oslo", "zh-CN")]
