"""What every answer carries, and that no header a stranger makes up turns one into a server error."""

import asyncio
import json

import pytest
from starlette.routing import Route

from http_api.doors import Doors, a_body, assert_problem, open_doors

pytestmark = pytest.mark.anyio
ODD = ["http://[", "[", "http://[::1", "http://]", "//", "null", "http://a:b:c", "http://\xff", "", "[::1]:x", "a b"]
NAMES = ["Origin", "Host", "Referer", "Forwarded", "X-Forwarded-Host", "X-Forwarded-For"]


def calls(doors: Doors) -> list[tuple[str, str]]:
    """Every method of every route, with something for each part of its path that differs."""
    found: list[tuple[str, str]] = []
    for route in doors.app.routes:
        if isinstance(route, Route):
            path = "/".join("x" if part.startswith("{") else part for part in route.path.split("/"))
            found += [(method, path) for method in sorted(route.methods or ())]
    assert len(found) > 70
    return found


async def raw(doors: Doors, method: str, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """One request as it is written here, and its answer: clients of ours would not send such headers."""
    host, port = doors.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    told = {"Host": f"{host}:{port}", "Content-Type": "application/json", "Content-Length": "2", **headers}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in told.items()), "Connection: close"]
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + b"{}")
    try:
        async with asyncio.timeout(10):
            answer = await reader.read()
    finally:
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *rest = head.decode("latin-1").split("\r\n")
    known = dict(line.lower().split(": ", 1) for line in rest)
    return int(status.split()[1]), known, body


@pytest.mark.spec("http/guarded")
async def test_every_answer_in_json_says_what_it_is_and_is_kept_by_nobody() -> None:
    async with open_doors() as doors:
        seen = 0
        for method, path in [*calls(doors), ("GET", "/nowhere"), ("DELETE", "/healthz")]:
            for who in ({}, {"Authorization": "Bearer pdk_nobody"}):
                status, headers, _ = await raw(doors, method, path, **who)
                if "json" in headers.get("content-type", ""):
                    seen += 1
                    where = f"{method} {path} {status}"
                    assert headers.get("x-content-type-options") == "nosniff", where
                    assert headers.get("cache-control") == "no-store", where
        assert seen > 100


@pytest.mark.spec("http/guarded")
async def test_accepted_runs_and_streams_say_so_too() -> None:
    async with open_doors() as doors:
        accepted = await doors.post(a_body())
        assert accepted.status_code == 202
        run = await doors.gateway.next()
        await doors.answered(run, "fine")
        stream = await doors.client.get(f"/api/v1/agent/runs/{run.run_id}/events")
        for answer in (accepted, stream):
            assert (answer.headers["x-content-type-options"], answer.headers["cache-control"]) == (
                "nosniff",
                "no-store",
            )


@pytest.mark.spec("http/guarded")
async def test_the_description_for_people_runs_nothing_and_shows_its_own_style() -> None:
    async with open_doors() as doors:
        page = await doors.client.get("/api/docs")
        policy = page.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; style-src 'sha256-")
        assert "frame-ancestors 'none'" in policy
        assert page.headers["x-content-type-options"] == "nosniff"
        assert "<script" not in page.text


@pytest.mark.spec("http/any-request")
@pytest.mark.parametrize("name", NAMES)
async def test_no_made_up_header_is_a_server_error(name: str) -> None:
    async with open_doors() as doors:
        for method, path in [*calls(doors), ("GET", "/nowhere")]:
            if path.endswith("/events"):
                continue
            for value in ODD:
                status, _, body = await raw(doors, method, path, **{name: value})
                assert status < 500, (method, path, value, body[:200])


@pytest.mark.spec("http/keyless")
@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", "text/plain", "application/x-www-form-urlencoded"])
async def test_without_a_key_json_has_to_be_declared_as_json(kind: str) -> None:
    async with open_doors() as doors:
        for path, body in (
            ("/api/v1/api-keys", {"user": "eve", "role": "admin"}),
            ("/api/v1/agent/runs", a_body()),
            ("/api/v1/agent/sessions", {}),
        ):
            answer = await doors.client.post(path, content=json.dumps(body), headers={"Content-Type": kind})
            text = "without a key only this machine itself may call, and the body is not declared as application/json"
            assert_problem(answer, 401, "unauthenticated", text)
        assert doors.gateway.started.empty()
