"""Who may come in: by key, by the host's own token, or keyless from this very machine and from nowhere else."""

from collections.abc import Collection, Sequence
from hashlib import sha256
from typing import Any

import pytest
from starlette.routing import Route

from http_api.doors import LOCAL_TOKEN, a_body, assert_problem, open_doors
from paddock.host.people.principals import DEV, Principal
from paddock.http_api.edge.auth import REMEMBER_SECONDS, Auth
from paddock.ports import ApiKeyRow
from paddock.rules.conversations.attachments import PATH
from paddock.rules.errors import ErrorCode, HostError

pytestmark = pytest.mark.anyio


class CountedKeys:
    """API keys in memory that count how often they are asked."""

    def __init__(self) -> None:
        self.rows: dict[bytes, ApiKeyRow] = {}
        self.asked = 0

    async def add_key(self, row: ApiKeyRow) -> None:
        self.rows[row.key_hash] = row

    async def find_key(self, key_hash: bytes) -> ApiKeyRow | None:
        self.asked += 1
        return self.rows.get(key_hash)

    async def live_keys(self, key_ids: Sequence[str]) -> Collection[str]:
        return {row.key_id for row in self.rows.values()} & set(key_ids)

    async def any_key(self) -> bool:
        self.asked += 1
        return bool(self.rows)

    async def api_keys(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("nobody lists keys here")

    async def revoke_key(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("nobody revokes keys here")


def a_scope(
    *, client: tuple[str, int] | None = ("127.0.0.1", 5), scheme: str = "http", headers: Any = (), **named: str
) -> dict[str, Any]:
    given = {"host": "127.0.0.1:8484"} | {name.replace("_", "-"): value for name, value in named.items()}
    pairs = [(name.encode(), value.encode()) for name, value in given.items() if value]
    return {"type": "http", "client": client, "scheme": scheme, "path": PATH, "headers": [*pairs, *headers]}


@pytest.mark.spec("http/keyless")
@pytest.mark.parametrize(
    "scope",
    [
        a_scope(),
        a_scope(client=("127.8.8.8", 5), host="127.8.8.8"),
        a_scope(client=("::1", 5), host="[::1]:8484"),
        a_scope(host="localhost:8484"),
        a_scope(host="LocalHost"),
        a_scope(origin="http://127.0.0.1:8484"),
        a_scope(host="localhost:8484", origin="http://LOCALHOST:8484"),
        a_scope(content_length="5", content_type="application/json; charset=utf-8"),
        a_scope(transfer_encoding="chunked", content_type="multipart/form-data; boundary=x"),
        a_scope(content_length="0"),
        a_scope(sec_fetch_site="none"),
        a_scope(sec_fetch_site="same-origin"),
        a_scope(origin="http://127.0.0.1:8484", sec_fetch_site="same-origin"),
    ],
)
async def test_before_any_key_exists_this_machine_itself_is_dev(scope: dict[str, Any]) -> None:
    assert await Auth(CountedKeys()).principal(scope) == DEV


@pytest.mark.spec("http/keyless")
@pytest.mark.parametrize(
    ("scope", "reason"),
    [
        (a_scope(client=("10.0.0.7", 5)), "the call came from another one"),
        (a_scope(client=None), "the call came from another one"),
        (a_scope(client=("testclient", 5)), "the call came from another one"),
        (a_scope(host="paddock.example"), "the Host header does not name a loopback address"),
        (a_scope(host="localhost.evil.example"), "the Host header does not name a loopback address"),
        (a_scope(host="127.0.0.1.evil.example"), "the Host header does not name a loopback address"),
        (a_scope(host="evil@127.0.0.1"), "the Host header does not name a loopback address"),
        (a_scope(host="[::1]evil.example"), "the Host header does not name a loopback address"),
        (a_scope(host="127.0.0.1:evil.example"), "the Host header does not name a loopback address"),
        (a_scope(host=""), "the Host header does not name a loopback address"),
        (a_scope(headers=[(b"host", b"127.0.0.1")]), "the Host header does not name a loopback address"),
        (a_scope(forwarded="for=1.2.3.4"), "the call came through a proxy"),
        (a_scope(x_forwarded_for="1.2.3.4"), "the call came through a proxy"),
        (a_scope(x_forwarded_proto="https"), "the call came through a proxy"),
        (a_scope(x_real_ip="1.2.3.4"), "the call came through a proxy"),
        (a_scope(via="1.1 proxy"), "the call came through a proxy"),
        (a_scope(origin="https://evil.example"), "the call came from a web page of another origin"),
        (a_scope(origin="http://127.0.0.1:3000"), "another origin: name it in the setting `cors_origins`, or send"),
        (a_scope(origin="https://127.0.0.1:8484"), "the call came from a web page of another origin"),
        (a_scope(origin="null"), "the call came from a web page of another origin"),
        (a_scope(sec_fetch_site="cross-site"), "the call came from a web page of another origin"),  # a picture, a frame
        (a_scope(sec_fetch_site="same-site"), "the call came from a web page of another origin"),
        (
            a_scope(sec_fetch_site="none", headers=[(b"sec-fetch-site", b"cross-site")]),
            "the call came from a web page of another origin",
        ),
        (
            a_scope(content_length="5"),
            "not declared as application/json: add the header `Content-Type: application/json`, or",
        ),
        (a_scope(content_length="5", content_type="text/plain"), "the body is not declared as application/json"),
        (a_scope(content_length="5", content_type="application/jsonp"), "the body is not declared as application/json"),
        (
            a_scope(transfer_encoding="chunked", content_type="application/x-www-form-urlencoded"),
            "the body is not declared as",
        ),
    ],
)
async def test_whoever_is_not_provably_on_this_machine_needs_a_key(scope: dict[str, Any], reason: str) -> None:
    with pytest.raises(HostError) as refused:
        await Auth(CountedKeys()).principal(scope)
    assert refused.value.code is ErrorCode.UNAUTHENTICATED
    assert reason in refused.value.message
    assert "paddock keys create" in refused.value.message


@pytest.mark.spec("http/key")
async def test_what_was_looked_up_is_believed_for_seconds_and_no_longer() -> None:
    now, keys = 100.0, CountedKeys()
    auth = Auth(keys, now=lambda: now)
    for _ in range(5):
        await auth.principal(a_scope())
    assert keys.asked == 1
    row = ApiKeyRow("k", sha256(b"pdk_1").digest(), "w", "ann", "user", 0.0)
    await keys.add_key(row)
    bearer = a_scope(authorization="Bearer pdk_1", client=("10.0.0.7", 1))
    for _ in range(5):
        assert await auth.principal(bearer) == Principal("w", "ann", "user")
    assert keys.asked == 2
    now += REMEMBER_SECONDS
    keys.rows.clear()
    with pytest.raises(HostError, match="this key is not known here"):
        await auth.principal(bearer)


@pytest.mark.spec("http/key")
@pytest.mark.parametrize("given", ["Basic YTpi", "Bearer", "Bearer ", "pdk_1", "Bearer pdk_unknown", ""])
async def test_a_wrong_key_is_refused_also_where_none_would_be_needed(given: str) -> None:
    scope = a_scope(headers=[(b"authorization", given.encode())])
    with pytest.raises(HostError) as refused:
        await Auth(CountedKeys()).principal(scope)
    assert refused.value.code is ErrorCode.UNAUTHENTICATED


@pytest.mark.spec("http/keyless-ends")
@pytest.mark.spec("http/local-token")
async def test_the_first_key_ends_keyless_access_at_once_and_the_local_token_stays() -> None:
    async with open_doors() as doors:
        local = {"Authorization": f"Bearer {LOCAL_TOKEN}"}
        assert (await doors.client.get("/api/v1/agents")).status_code == 200
        made = await doors.client.post("/api/v1/api-keys", json={"user": "ann"}, headers=local)
        assert (made.status_code, made.json()["role"]) == (201, "user")
        key = {"Authorization": f"Bearer {made.json()['key']}"}
        refused = await doors.client.get("/api/v1/agents")
        assert_problem(
            refused, 401, "unauthenticated", "this host knows its callers by key: send `Authorization: Bearer"
        )
        assert refused.headers["www-authenticate"].startswith("Bearer")
        assert (await doors.client.get("/api/v1/agents", headers=key)).status_code == 200
        assert (await doors.client.get("/api/v1/agents", headers=local)).status_code == 200
        assert (await doors.post(a_body(), headers=key)).status_code == 202


@pytest.mark.spec("http/admin-only")
async def test_only_administrators_make_keys_and_tokens() -> None:
    async with open_doors() as doors:
        ann, root = await doors.key_for("ann"), await doors.key_for("root", role="admin")
        for path, body in (("api-keys", {"user": "x"}), ("runners/attach-tokens", {"author": "a", "name": "b"})):
            refused = await doors.client.post(f"/api/v1/{path}", json=body, headers=ann)
            assert_problem(refused, 403, "unauthorized", "this needs a key with the role admin")
            assert (await doors.client.post(f"/api/v1/{path}", json=body, headers=root)).status_code == 201


@pytest.mark.spec("http/no-stranger")
async def test_no_call_of_the_api_answers_a_stranger() -> None:
    async with open_doors() as doors:
        routes = [route for route in doors.app.routes if isinstance(route, Route) and route.path.startswith("/api/")]
        calls = [(method, route.path) for route in routes for method in route.methods or ()]
        assert ("POST", "/api/v1/agent/runs") in calls
        signed = {(method, "/api/v1/agent/attachments/{attachment}/content") for method in ("GET", "PUT")}
        for method, path in signed:
            answer = await doors.client.request(method, path)
            assert_problem(answer, 403, "unauthorized", "this address is not valid")
        events = ("POST", "/api/v1/events")  # by a platform's signature, never by a key
        answer = await doors.client.post(events[1], params={"platform": "nobody"}, json={})
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
        for method, path in sorted({*calls} - signed - {events, ("GET", "/api/openapi.json"), ("GET", "/api/docs")}):
            answer = await doors.client.request(method, path, headers={"X-Forwarded-For": "1.2.3.4"})
            assert_problem(answer, 401, "unauthenticated", "without a key only this machine itself may call")
