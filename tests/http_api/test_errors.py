"""Every error is a problem with a status; what went wrong inside stays inside."""

import json

import pytest
from starlette.requests import Request
from starlette.types import ASGIApp

from http_api.test_stream import Wire
from paddock.http_api.edge.errors import STATUS, refusal
from paddock.http_api.edge.operations import Endpoint
from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError

pytestmark = pytest.mark.anyio


@pytest.mark.spec("http/problem")
def test_every_error_code_has_a_status() -> None:
    assert set(STATUS) == set(ErrorCode)
    assert all(400 <= status < 600 for status in STATUS.values())


@pytest.mark.spec("http/problem")
@pytest.mark.parametrize("code", list(ErrorCode))
def test_a_problem_says_what_it_is_in_five_fields(code: ErrorCode) -> None:
    answer = refusal(HostError(code, "do this instead"))
    problem = json.loads(bytes(answer.body))
    assert answer.status_code == problem["status"] == STATUS[code]
    assert (problem["detail"], problem["code"]) == ("do this instead", code)
    assert problem["type"] == f"urn:paddock:problem:{code}"
    assert problem["title"]
    assert answer.headers["content-type"] == "application/problem+json"


def test_who_may_try_again_hears_when() -> None:
    told = refusal(HostError(ErrorCode.RATE_LIMITED, "slow down", details={"retry_after": 7.2}))
    assert told.headers["retry-after"] == "7"
    assert refusal(HostError(ErrorCode.UNAVAILABLE, "later")).headers["retry-after"] == "1"
    assert "retry-after" not in refusal(HostError(ErrorCode.NOT_FOUND, "no")).headers


@pytest.mark.spec("http/no-internals")
@pytest.mark.parametrize(
    ("error", "status"),
    [(ValueError("password=hunter2 in /etc/secret"), 500), (StorageUnavailableError("/var/x"), 503)],
)
async def test_internals_never_leave_the_house(error: Exception, status: int) -> None:
    wire = await answered("GET", error)
    assert wire.sent[0]["status"] == status
    assert str(error).encode() not in wire.bodies[0]
    assert json.loads(wire.bodies[0])["detail"]


@pytest.mark.spec("http/unavailable")
async def test_who_only_reads_is_not_told_that_nothing_was_accepted() -> None:
    told = [(await answered(method, StorageUnavailableError("away"))).bodies[0] for method in ("GET", "POST")]
    assert [b"nothing was accepted" in body for body in told] == [False, True]
    assert all(b"try again shortly" in body for body in told)


async def answered(method: str, error: Exception) -> Wire:
    """What goes out when a handler fails so."""

    async def handler(_: Request) -> ASGIApp:
        raise error

    wire = Wire()
    scope = {"type": "http", "method": method, "path": "/x", "headers": [], "query_string": b"", "server": ("h", 1)}
    await Endpoint(handler)(scope, wire.receive, wire.send)
    return wire
