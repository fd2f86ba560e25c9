"""Who may call an operation is what it declares: every one is asked by callers below its role."""

import re

import httpx
import pytest

from http_api.described import OPERATIONS, Described
from http_api.doors import Doors, open_doors

pytestmark = pytest.mark.anyio
SIGNED = "/api/v1/events"
"""Known by the signature of its platform, which is checked in its own tests."""


async def asked(doors: Doors, operation: Described, headers: dict[str, str]) -> httpx.Response:
    examples = {one["name"]: str(one["example"]) for one in operation.about.get("parameters", ())}
    path = re.sub(r"{(\w+)}", lambda found: examples[found[1]], operation.path)
    body = {} if operation.body is None else {"json": operation.body}
    return await doors.client.request(operation.method, path, headers=headers, **body)


@pytest.mark.spec("http/roles")
async def test_nobody_calls_what_is_above_their_role() -> None:
    async with open_doors() as doors:
        user, admin = await doors.key_for("ann"), await doors.key_for("ada", role="admin")
        for one in OPERATIONS:
            if one.role != "anybody":
                assert (await asked(doors, one, {})).status_code == 401, f"{one.method} {one.path} without a key"
            if one.role in {"admin", "operator"}:
                assert (await asked(doors, one, user)).status_code == 403, f"{one.method} {one.path} as a user"
            if one.role == "operator":
                assert (await asked(doors, one, admin)).status_code == 403, f"{one.method} {one.path} as an admin"


@pytest.mark.spec("http/roles")
async def test_what_is_open_to_anybody_needs_no_key() -> None:
    async with open_doors() as doors:
        await doors.key_for("ann")
        open_to_all = [one for one in OPERATIONS if one.role == "anybody" and one.path != SIGNED]
        assert len(open_to_all) > 5
        for one in open_to_all:
            assert one.public
            assert (await asked(doors, one, {})).status_code != 401, f"{one.method} {one.path}"


@pytest.mark.spec("http/roles")
def test_every_operation_says_its_role_and_its_rate() -> None:
    for one in OPERATIONS:
        assert one.role in {"anybody", "user", "admin", "operator"}
        assert one.about["x-rate"] in {"none", "calls", "runs", "streams", "uploads"}
        assert one.role == "anybody" or one.about["x-rate"] != "none"
