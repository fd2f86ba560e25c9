"""Web pages of elsewhere: none may call unless the operator named it, and keyless access is never theirs."""

import httpx
import pytest
from structlog.testing import capture_logs

from http_api.doors import a_body, assert_problem, open_doors
from http_api.ordering import events_in
from http_api.test_auth import CountedKeys, a_scope
from paddock.host.people.principals import DEV
from paddock.http_api.edge.app import LOGGED_PAGES, MAX_PAGE
from paddock.http_api.edge.auth import Auth, CallerLimits, Callers
from paddock.rules.access.limits import MAX_BUCKETS
from paddock.rules.errors import HostError

pytestmark = pytest.mark.anyio
AG_UI = "/api/v1/agent/ag-ui"
APP, EVIL = "https://app.example", "https://evil.example"
ASKS = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}


def allows(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control")}


@pytest.mark.spec("http/cors")
async def test_no_page_of_elsewhere_is_let_in_by_default_and_none_is_dev() -> None:
    async with open_doors() as doors:
        for method, path in (("OPTIONS", AG_UI), ("OPTIONS", "/api/v1/agent/runs")):
            assert allows(await doors.client.request(method, path, headers={"Origin": EVIL, **ASKS})) == {}
        for path in (AG_UI, "/api/v1/agent/runs", f"{AG_UI}/connect"):
            answer = await doors.client.post(path, json=a_body(), headers={"Origin": EVIL})
            assert_problem(
                answer, 401, "unauthenticated", "without a key only this machine itself may call, and the call"
            )
            assert allows(answer) == {}


@pytest.mark.spec("http/cors")
@pytest.mark.parametrize("origins", [[], [APP]])
async def test_a_page_that_was_not_named_is_refused_with_the_cure_which_the_log_says_once(origins: list[str]) -> None:
    page = "http://localhost:3000"
    async with open_doors(origins=origins) as doors:
        with capture_logs() as logs:
            await doors.client.request("OPTIONS", AG_UI, headers={"Origin": page, **ASKS})
            answer = await doors.client.request("OPTIONS", AG_UI, headers={"Origin": page, **ASKS})
    told = f"web pages of {page} may not call this host: name that origin in the setting `cors_origins`"
    assert_problem(answer, 403, "unauthorized", told)
    assert [(line["log_level"], line["origin"]) for line in logs if line["action"] == "http.page_refused"] == [
        ("warning", page)
    ]


async def test_of_a_made_up_origin_only_its_beginning_is_repeated() -> None:
    page = "http://" + "x" * 50_000
    async with open_doors() as doors:
        with capture_logs() as logs:
            answer = await doors.client.request("OPTIONS", AG_UI, headers={"Origin": page, **ASKS})
    assert len(answer.text) < 1000
    assert [line["origin"] for line in logs if line["action"] == "http.page_refused"] == [page[:MAX_PAGE]]


async def test_origins_that_are_made_up_do_not_fill_the_log() -> None:
    async with open_doors() as doors:
        with capture_logs() as logs:
            for number in range(LOGGED_PAGES + 5):
                page = f"http://localhost:{number}"
                await doors.client.request("OPTIONS", AG_UI, headers={"Origin": page, **ASKS})
    assert sum(line["action"] == "http.page_refused" for line in logs) == LOGGED_PAGES


@pytest.mark.spec("http/cors")
async def test_a_page_that_was_named_is_told_so_and_needs_a_key_all_the_same() -> None:
    async with open_doors(origins=[APP]) as doors:
        asked = await doors.client.request("OPTIONS", AG_UI, headers={"Origin": APP, **ASKS})
        assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (200, APP)
        assert "authorization" in asked.headers["access-control-allow-headers"]
        assert "access-control-allow-credentials" not in asked.headers
        assert allows(await doors.client.request("OPTIONS", AG_UI, headers={"Origin": EVIL, **ASKS})) == {}
        refused = await doors.client.post(AG_UI, json=a_body(), headers={"Origin": APP})
        assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, APP)
        headers = {"Origin": APP, **await doors.key_for("ann")}
        told = await doors.client.post(f"{AG_UI}/connect", json={"threadId": "t"}, headers=headers)
        assert (told.headers["access-control-allow-origin"], told.headers["vary"]) == (APP, "Origin")
        assert events_in(told.content)[0]["type"] == "RUN_STARTED"


@pytest.mark.spec("http/cors")
@pytest.mark.parametrize(
    ("page", "named", "let_in"),
    [
        ("http://localhost:3000", ("http://localhost:3000",), True),
        ("http://localhost:3001", ("http://localhost:3000",), False),
        (APP, (APP,), False),
        (EVIL, ("*",), False),
        ("http://localhost:3000", ("*",), False),
        ("http://localhost.evil.example", ("http://localhost.evil.example",), False),
    ],
)
async def test_without_a_key_only_named_pages_of_this_machine_may_call(
    page: str, named: tuple[str, ...], let_in: bool
) -> None:
    auth = Auth(CountedKeys(), Callers(origins=named))
    if let_in:
        assert await auth.principal(a_scope(origin=page)) == DEV
    else:
        with pytest.raises(HostError, match="web page of another origin"):
            await auth.principal(a_scope(origin=page))


@pytest.mark.spec("http/rate")
async def test_a_key_that_calls_too_often_is_told_how_long_to_wait_and_others_are_not() -> None:
    async with open_doors(calls_per_second=1.0) as doors:
        ann, bob = await doors.key_for("ann"), await doors.key_for("bob")
        answers = [await doors.client.get("/api/v1/users/me", headers=ann) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert_problem(answers[2], 429, "rate_limited", "this key may call 1 times a second")
        assert answers[2].headers["retry-after"] == "1"
        assert (await doors.client.get("/api/v1/users/me", headers=bob)).status_code == 200


def test_callers_who_stay_away_are_forgotten() -> None:
    limits = CallerLimits(1.0, now=lambda: 0.0)
    for number in range(MAX_BUCKETS + 5):
        limits.take(str(number).encode())
    assert limits.remembered == MAX_BUCKETS
