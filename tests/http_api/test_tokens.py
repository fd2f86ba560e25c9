"""Callers by signed token: only what the right party signed, for us, in time; and keys that can be taken away again."""

import hmac
import json
import socket
import threading
import time
from base64 import urlsafe_b64encode
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey

from http_api.doors import assert_problem, open_doors
from paddock.compose.doors import tokens_of
from paddock.host.people.principals import Principal
from paddock.http_api.edge.tokens import RETRY_SECONDS, STALE_SECONDS, IssuerKeys, TokenRules, Tokens
from paddock.rules.errors import ErrorCode, HostError
from paddock.settings import SettingsError, load
from patience import at_most

pytestmark = pytest.mark.anyio
NOW = 1_700_000_000.0
SECRET = b"a secret of thirty-two bytes, or more"
RULES = TokenRules(issuer="https://id.example", audience="paddock", workspace_claim="org", role_claim="roles")
CLAIMS = {"sub": "ann", "iss": "https://id.example", "aud": "paddock", "org": "acme", "exp": NOW + 60}
EC = ECKey.generate_key("P-256", {"kid": "one"})
RSA = RSAKey.generate_key(2048, {"kid": "two"})


def signed(algorithm: str = "HS256", key: Any = None, **claims: Any) -> bytes:
    given = {name: value for name, value in (CLAIMS | claims).items() if value is not None}
    header = {"alg": algorithm} | ({"kid": key.kid} if key is not None and key.kid else {})
    return jwt.encode(header, given, key or OctKey.import_key(SECRET), algorithms=[algorithm]).encode()


def published(*keys: Any) -> dict[str, Any]:
    return {"keys": [key.as_dict(private=False) for key in keys]}


def by_secret(rules: TokenRules = RULES) -> Tokens:
    return Tokens(rules, secret=SECRET, clock=lambda: NOW)


def by_keys(*keys: Any) -> Tokens:
    async def find(_kid: str | None) -> Any:
        return published(*keys)

    return Tokens(RULES, keys=find, clock=lambda: NOW)


async def refusal(tokens: Tokens, token: bytes) -> str:
    with pytest.raises(HostError) as raised:
        await tokens.principal(token)
    assert raised.value.code is ErrorCode.UNAUTHENTICATED
    return raised.value.message.removeprefix("this token is not accepted: ")


@pytest.mark.spec("http/token")
async def test_a_token_names_user_workspace_and_role() -> None:
    found, seconds = await by_secret().principal(signed(roles=["x", "admin"]))
    assert found == Principal("acme", "ann", "admin")
    assert not found.operator
    assert 60 <= seconds <= 120
    plain, _ = await by_secret(TokenRules()).principal(signed(roles=["admin"]))
    assert plain == Principal("default", "ann", "user")


@pytest.mark.spec("http/token")
@pytest.mark.parametrize(("algorithm", "key"), [("ES256", EC), ("RS256", RSA), ("PS256", RSA)])
async def test_a_token_of_the_issuer_is_checked_with_its_published_keys(algorithm: str, key: Any) -> None:
    assert (await by_keys(EC, RSA).principal(signed(algorithm, key)))[0] == Principal("acme", "ann")
    stranger = ECKey.generate_key("P-256", {"kid": "one"})
    assert await refusal(by_keys(EC, RSA), signed("ES256", stranger)) == "its signature does not hold"


@pytest.mark.spec("http/token")
@pytest.mark.parametrize(
    ("claims", "says"),
    [
        ({"exp": NOW - 31}, "it has expired"),
        ({"exp": None}, "it does not say when it ends (exp)"),
        ({"exp": "tomorrow"}, "it does not say when it ends (exp)"),
        ({"exp": True}, "it does not say when it ends (exp)"),
        ({"nbf": NOW + 31}, "it is not valid yet"),
        ({"iss": "https://other.example"}, "another issuer made it"),
        ({"iss": None}, "another issuer made it"),
        ({"aud": "others"}, "it is meant for another audience"),
        ({"aud": ["others"]}, "it is meant for another audience"),
        ({"aud": None}, "it is meant for another audience"),
        ({"sub": None}, "its claim sub is not a name"),
        ({"sub": 7}, "its claim sub is not a name"),
        ({"sub": "a\nb"}, "its claim sub is not a name"),
        ({"org": None}, "its claim org is not a name"),
    ],
)
async def test_a_token_that_is_not_for_us_now_is_refused_with_the_reason(claims: dict[str, Any], says: str) -> None:
    assert (await refusal(by_secret(), signed(**claims))).startswith(says)


def _part(value: Any) -> bytes:
    return urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=")


@pytest.mark.spec("http/token")
async def test_nobody_signs_with_what_is_public_or_not_at_all() -> None:
    start = b".".join(_part(part) for part in ({"alg": "HS256", "kid": "two"}, CLAIMS))
    mac = hmac.digest(RSA.as_pem(private=False), start, "sha256")
    confused = start + b"." + urlsafe_b64encode(mac).rstrip(b"=")
    assert await refusal(by_keys(RSA), confused) == "it is signed in a way this host does not take"
    assert await refusal(by_secret(), signed("RS256", RSA)) == "it is signed in a way this host does not take"
    head, body, _ = signed().split(b".")
    unsigned = b"eyJhbGciOiJub25lIn0." + body + b"."
    assert await refusal(by_secret(), unsigned) == "it is signed in a way this host does not take"
    for broken in (b"..", b"a.b.c", head + b"." + body + b".AAAA", b"x" * 20_000 + b"..", b"\xff.\xff.\xff"):
        assert await refusal(by_secret(), broken)


@pytest.mark.spec("http/token")
async def test_over_http_a_token_is_a_caller_and_keyless_access_is_over() -> None:
    tokens = Tokens(TokenRules(), secret=SECRET)
    async with open_doors(tokens=tokens) as doors:
        assert_problem(
            await doors.client.get("/api/v1/users/me"), 401, "unauthenticated", "this host knows its callers"
        )
        good = {"Authorization": f"Bearer {signed(exp=time.time() + 60).decode()}"}
        for _ in range(2):
            assert (await doors.client.get("/api/v1/users/me", headers=good)).json()["userId"] == "ann"
        bad = {"Authorization": f"Bearer {signed(exp=1).decode()}"}
        answer = await doors.client.get("/api/v1/users/me", headers=bad)
        assert_problem(answer, 401, "unauthenticated", "this token is not accepted: it has expired")
        key = await doors.key_for("bob")
        assert (await doors.client.get("/api/v1/users/me", headers=key)).json()["userId"] == "bob"


class Issuer:
    """An issuer on loopback that publishes keys, and its OpenID configuration, and counts who looks at the keys."""

    def __init__(self) -> None:
        self.keys = published(EC)
        self.status, self.looks = 200, 0
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                about = self.path == "/.well-known/openid-configuration"
                issuer.looks += not about
                self.send_response(issuer.status)
                self.end_headers()
                self.wfile.write(json.dumps(issuer.configuration if about else issuer.keys).encode())

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.name = f"http://127.0.0.1:{self.server.server_port}"
        self.url = f"{self.name}/keys"
        self.configuration: dict[str, Any] = {"issuer": self.name, "jwks_uri": self.url}
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.mark.spec("http/issuer-keys")
async def test_keys_are_fetched_when_needed_and_again_for_one_that_is_new_but_not_all_the_time() -> None:
    issuer, now = Issuer(), [0.0]
    keys = IssuerKeys(issuer.url, now=lambda: now[0])
    assert issuer.looks == 0
    for kid in ("one", "two", "three"):
        await keys.find(kid)
    assert issuer.looks == 1
    issuer.keys = published(EC, RSA)
    now[0] += RETRY_SECONDS
    assert len((await keys.find("two"))["keys"]) == 2
    now[0] += RETRY_SECONDS
    issuer.status = 500
    assert len((await keys.find("new"))["keys"]) == 2
    assert issuer.looks == 3
    issuer.server.shutdown()
    now[0] += STALE_SECONDS
    with pytest.raises(HostError, match="cannot be read") as raised:
        await keys.find("one")
    assert raised.value.code is ErrorCode.UNAVAILABLE


@pytest.mark.spec("http/issuer-discovery")
async def test_an_issuers_name_is_enough_to_know_its_callers_also_after_it_changed_its_keys(tmp_path: Path) -> None:
    issuer, now = Issuer(), [0.0]
    settings = load({"data": tmp_path, "jwt_issuer": issuer.name, "jwt_audience": "paddock"}, environ={})
    assert settings.takes_tokens
    source = settings.issuer_keys
    assert source is not None
    keys = IssuerKeys(source, issuer=issuer.name, now=lambda: now[0])
    rules = TokenRules(issuer=issuer.name, audience="paddock")
    async with open_doors(tokens=Tokens(rules, keys=keys.find)) as doors:

        async def asked(algorithm: str, key: Any, **claims: Any) -> int:
            token = signed(algorithm, key, iss=issuer.name, exp=time.time() + 60, **claims).decode()
            answer = await doors.client.get("/api/v1/users/me", headers={"Authorization": f"Bearer {token}"})
            return answer.status_code

        assert issuer.looks == 0
        assert [await asked("ES256", EC), await asked("RS256", RSA)] == [200, 401]
        issuer.keys = published(RSA)  # rotated, and moved
        issuer.configuration["jwks_uri"] = f"{issuer.name}/elsewhere"
        now[0] += RETRY_SECONDS
        assert [await asked("RS256", RSA), await asked("ES256", EC, sub="late")] == [200, 401]
        assert issuer.looks == 2


@pytest.mark.spec("http/issuer-discovery")
async def test_the_host_looks_up_the_issuer_that_is_set(tmp_path: Path) -> None:
    issuer = Issuer()
    tokens = tokens_of(load({"data": tmp_path, "jwt_issuer": issuer.name, "jwt_audience": "paddock"}, environ={}))
    assert tokens is not None
    token = signed("ES256", EC, iss=issuer.name, exp=time.time() + 60)
    assert (await tokens.principal(token))[0] == Principal("default", "ann")


@pytest.mark.spec("http/issuer-discovery")
@pytest.mark.parametrize(
    "said",
    [
        {"issuer": "https://other.example"},
        {"jwks_uri": "http://id.example/keys"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": 5},
        {"jwks_uri": None},
    ],
)
async def test_a_configuration_of_another_or_that_leads_elsewhere_is_not_followed(said: dict[str, Any]) -> None:
    issuer = Issuer()
    issuer.configuration |= said
    keys = IssuerKeys(f"{issuer.name}/.well-known/openid-configuration", issuer=issuer.name)
    with pytest.raises(HostError, match="cannot be read"):
        await keys.find("one")
    assert issuer.looks == 0


@pytest.mark.spec("http/issuer-keys")
async def test_keys_of_a_file_are_read_and_what_is_no_key_set_is_not(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    secret = {"kty": "oct", "k": "AAAA"}
    file.write_text(json.dumps({"keys": [*published(EC)["keys"], secret]}))
    assert [key["kty"] for key in (await IssuerKeys(str(file)).find(None))["keys"]] == ["EC"]
    for rubbish in ("", "[]", "{}", '{"keys": 5}', '{"keys": [5]}', '{"keys": []}' + " " * 300_000):
        file.write_text(rubbish)
        with pytest.raises(HostError, match="cannot be read"):
            await IssuerKeys(str(file)).find(None)


async def test_an_issuer_that_never_answers_costs_seconds_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paddock.http_api.edge.tokens.FETCH_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        start = time.monotonic()
        with pytest.raises(HostError, match="cannot be read"):
            await IssuerKeys(f"http://127.0.0.1:{silent.getsockname()[1]}/").find(None)
        assert time.monotonic() - start < at_most(1)


@pytest.mark.spec("http/revoke-key")
async def test_a_revoked_key_is_dead_at_once_and_keyless_access_does_not_come_back() -> None:
    async with open_doors() as doors:
        made = (await doors.client.post("/api/v1/api-keys", json={"user": "ann", "role": "admin"})).json()
        ann = {"Authorization": f"Bearer {made['key']}"}
        other = (await doors.client.post("/api/v1/api-keys", json={"user": "bob"}, headers=ann)).json()
        bob = {"Authorization": f"Bearer {other['key']}"}
        assert (await doors.client.get("/api/v1/users/me", headers=bob)).status_code == 200
        for _ in range(2):
            assert (await doors.client.delete(f"/api/v1/api-keys/{other['keyId']}", headers=ann)).status_code == 204
        assert_problem(
            await doors.client.get("/api/v1/users/me", headers=bob), 401, "unauthenticated", "this key is not"
        )
        listed = (await doors.client.get("/api/v1/api-keys", headers=ann)).json()["keys"]
        assert {row["user"]: "revokedAt" in row for row in listed} == {"ann": False, "bob": True}
        assert "key" not in listed[0]
        await doors.client.delete(f"/api/v1/api-keys/{made['keyId']}", headers=ann)
        assert_problem(await doors.client.get("/api/v1/users/me"), 401, "unauthenticated", "this host knows")
        assert [row.action for row in await doors.house.store.audit()].count("api_keys.revoke") == 3


@pytest.mark.spec("http/revoke-key")
async def test_keys_are_for_administrators_of_their_workspace() -> None:
    async with open_doors() as doors:
        await doors.key_for("eve", workspace="other")
        ann, bob = await doors.key_for("ann", role="admin"), await doors.key_for("bob")
        listed = (await doors.client.get("/api/v1/api-keys", headers=ann)).json()["keys"]
        assert {row["user"] for row in listed} == {"ann", "bob"}
        for name in ("pdk_eve_other_user", "nobody"):
            answer = await doors.client.delete(f"/api/v1/api-keys/{name}", headers=ann)
            assert_problem(answer, 404, "not_found", "there is no such key")
        assert (await doors.client.get("/api/v1/api-keys", headers=bob)).status_code == 403
        assert (await doors.client.delete("/api/v1/api-keys/x", headers=bob)).status_code == 403


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"jwt_keys": "https://id.example/keys"}, "needs jwt_issuer and jwt_audience"),
        ({"jwt_keys": "http://id.example/keys", "jwt_issuer": "i", "jwt_audience": "a"}, "https:// address"),
        ({"jwt_issuer": "https://id.example"}, "jwt_issuer needs jwt_audience"),
        ({"jwt_issuer": "http://id.example", "jwt_audience": "a"}, "must be an https:// address"),
        ({"jwt_issuer": "id", "jwt_audience": "a"}, "must be an https:// address"),
        ({"jwt_keys": "nowhere.json", "jwt_issuer": "i", "jwt_audience": "a"}, "no such file"),
    ],
)
def test_half_a_set_up_of_tokens_is_refused_at_start(given: dict[str, str], says: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=says):
        load({"data": tmp_path, **given}, environ={})


def test_a_short_secret_is_refused_at_start(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("short")
    with pytest.raises(SettingsError, match="too short"):
        load({"data": tmp_path, "jwt_secret_file": tmp_path / "secret"}, environ={})
