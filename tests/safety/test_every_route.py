"""Every operation that the host describes, asked by callers who must get nothing by it: without a key, with a forged
one, from another workspace, from the same one."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator

import httpx
import pytest

from safety.every_route import Route, ask, requests_of, routes_of, unknown_names
from safety.furnished import PRIVATE, SHARED, Furnished, a_furnished_host

NOTHING = "0199d2a5-1d50-7c3e-9b1f-0c9a5a7f4e10"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Furnished]:
    with a_furnished_host(tmp_path_factory.mktemp("every_route")) as house:
        yield house


@pytest.fixture(scope="module")
def routes(house: Furnished) -> list[Route]:
    return routes_of(house.owner.client)


def unsigned() -> str:
    """A token that names an administrator and signs nothing."""
    parts = ({"alg": "none", "typ": "JWT"}, {"sub": "acme-ann", "workspace": "acme", "role": "admin", "exp": 4e9})
    return ".".join(urlsafe_b64encode(json.dumps(one).encode()).decode().rstrip("=") for one in parts) + "."


def forgeries(house: Furnished) -> list[dict[str, str]]:
    key = house.owner.key
    bearers = [key[:-1] + ("a" if key[-1] != "a" else "b"), key[:-1], f"{key}.", "pdk_", unsigned(), "dev", "null"]
    named = [{"Authorization": f"Bearer {one}"} for one in bearers]
    others = [{"Authorization": f"Basic {key}"}, {"Cookie": f"key={key}"}, {"X-Forwarded-For": "127.0.0.1"}]
    return [{}, *named, *others, {"Host": "localhost"}, {"Forwarded": "for=127.0.0.1"}]


def test_the_walk_knows_every_name_in_every_path(house: Furnished, routes: list[Route]) -> None:
    assert not unknown_names(routes, house.owner.ids), "say in furnished.py how a tenant gets one"


def test_nothing_but_public_pages_is_answered_without_a_key_that_is_known(
    house: Furnished, routes: list[Route], record_property: Callable[[str, object], None]
) -> None:
    before, asked = house.owner.seen(), 0
    closed = [route for route in routes if not route.public and route.path != "/api/v1/events"]
    assert len(closed) > 60
    for headers in forgeries(house):
        with house.host.client(headers=headers) as nobody:
            for route in closed:
                said = ask(nobody, route, next(requests_of(route, house.owner.ids)))
                asked += 1
                assert said.status in {401, 403}, f"{route} with {headers}: {said}"
                assert not said.shows(PRIVATE, SHARED)
    record_property("attempts", asked)
    assert house.owner.seen() == before


CALLERS = {
    "an administrator of another workspace": ("eve", "other", "admin"),
    "a user of the same workspace": ("bob", "acme", "user"),
    "another administrator of the same workspace": ("carl", "acme", "admin"),
}
ALLOWED = {
    "another administrator of the same workspace": {
        "DELETE /api/v1/agent/sessions/{thread}",
        "GET /api/v1/agent/runs/{run}/story",
        "POST /api/v1/agent/sessions/{thread}/items/{item}/erase",
        "DELETE /api/v1/agents/{agent}",
        "DELETE /api/v1/api-keys/{key}",
        "DELETE /api/v1/knowledge/{kb}",
        "DELETE /api/v1/knowledge/{kb}/documents/{document}",
        "POST /api/v1/knowledge/{kb}/documents",
        "PUT /api/v1/agents/{agent}",
    }
}
"""Administrators may, by the spec, look into runs of their workspace, forget conversations and words of others, and
change what is the workspace's own. The walk leaves these alone."""


@pytest.mark.spec("http/foreign-ids")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("caller", CALLERS)
def test_no_route_shows_or_changes_what_is_somebody_elses(
    house: Furnished, routes: list[Route], caller: str, record_property: Callable[[str, object], None]
) -> None:
    user, workspace, role = CALLERS[caller]
    hidden = [PRIVATE] if workspace == "acme" else [PRIVATE, SHARED]
    before, asked = house.owner.seen(), 0
    with house.person(user, workspace, role) as client:
        for route in routes:
            if str(route) in ALLOWED.get(caller, ()):
                continue
            for request in requests_of(route, house.owner.ids):
                said = ask(client, route, request)
                asked += 1
                assert said.status < 500, f"{route}: {said}"
                assert not said.shows(*hidden), f"{route} {request} shows {caller}: {said.body[:2000]}"
    record_property("attempts", asked)
    assert without_keys(house.owner.seen()) == without_keys(before)


def without_keys(seen: dict[str, object]) -> dict[str, object]:
    """Administrators of a workspace make keys; the walk does, too."""
    return {path: value for path, value in seen.items() if path != "api-keys"}


@pytest.mark.spec("http/foreign-ids")
@pytest.mark.timeout(300)
def test_to_another_workspace_each_route_answers_for_real_ids_as_for_invented_ones(
    house: Furnished, routes: list[Route], record_property: Callable[[str, object], None]
) -> None:
    real = house.owner.ids
    invented = {**{name: _invented(one) for name, one in real.items()}, "name": real["name"]}
    named, asked = [route for route in routes if route.named and not route.public], 0
    with house.person("eve", "other", "admin") as client:
        for route in named:
            if str(route) in {"PUT /api/v1/agents/{agent}", "POST /api/v1/agent/sessions/{thread}/messages"}:
                continue  # by these the caller takes a name for itself, or opens a thread
            pairs = zip(requests_of(route, real), requests_of(route, invented), strict=True)
            for one, other in pairs:
                got, want = _answer(client, route, one, real), _answer(client, route, other, invented)
                asked += 2
                assert got == want, f"{route} {one}"
    record_property("attempts", asked)


def _invented(real: str) -> str:
    return (
        NOTHING if len(real) == 36 and real.count("-") == 4 else f"nobody{real[6:]}" if len(real) > 8 else f"no{real}"
    )


def _answer(client: httpx.Client, route: Route, request: dict[str, object], ids: dict[str, str]) -> tuple[int, str]:
    said = ask(client, route, request)
    body = said.body
    for one in sorted(ids.values(), key=len, reverse=True):
        body = body.replace(one, "ID")
    return said.status, body


def test_the_owner_finds_the_marks_that_nobody_else_may_find(house: Furnished) -> None:
    ids, client = house.owner.ids, house.owner.client
    for path in (f"agent/sessions/{ids['thread']}", "agent/sessions", f"automations/{ids['job']}", "calendar.ics"):
        assert PRIVATE in client.get(f"/api/v1/{path}").text, path
    for path in (f"agents/{ids['agent']}", f"knowledge/{ids['kb']}", f"knowledge/{ids['kb']}/documents", "api-keys"):
        assert SHARED in client.get(f"/api/v1/{path}").text, path
