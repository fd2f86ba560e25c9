"""Signed tokens that are giant, deep or odd, from strangers and from an issuer that lost its mind: all are a 401."""

import hashlib
import hmac
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.http_api.edge.tokens import IssuerKeys
from paddock.rules.errors import ErrorCode, HostError
from walk.hosts import HostProcess

SECRET = "a secret of thirty-two bytes and more, for tests"
HEADER = b'{"alg":"HS256"}'
SOON = int(time.time()) + 3600


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostProcess]:
    home = tmp_path_factory.mktemp("odd-tokens")
    (home / "secret").write_text(SECRET)
    (home / "secret").chmod(0o600)
    env = {"PADDOCK_CALLS_PER_SECOND": "0", "PADDOCK_JWT_SECRET_FILE": str(home / "secret")}
    host = HostProcess(home / "data", env=env).start()
    yield host
    assert host.stop() == 0


def part(raw: bytes) -> bytes:
    return urlsafe_b64encode(raw).rstrip(b"=")


def signed(payload: bytes, header: bytes = HEADER, secret: bytes = SECRET.encode()) -> bytes:
    told = part(header) + b"." + part(payload)
    return told + b"." + part(hmac.new(secret, told, hashlib.sha256).digest())


def claims(**more: object) -> bytes:
    return json.dumps({"sub": "ann", "exp": SOON, **more}).encode()


GOOD = signed(claims())
BY_STRANGERS = {
    "deep header": part(b'{"a":' * 3000) + b".e30.AAAA",
    "deep header that fits": part(b'{"alg":"HS256","a":' + b"[" * 490) + b".e30.AAAA",
    "header of digits": part(b'{"alg":"HS256","a":' + b"9" * 480 + b"}") + b".e30.AAAA",
    "giant header": part(b'{"alg":"HS256","a":"' + b"x" * 11_000 + b'"}') + b".e30.AAAA",
    "header of nothing": b".e30.AAAA",
    "header that is a list": part(b"[]") + b".e30.AAAA",
    "header that is no text": part(b"\xff\xfe\x00") + b".e30.AAAA",
    "algorithm of a list": signed(claims(), b'{"alg":["HS256"]}'),
    "algorithm of an object": signed(claims(), b'{"alg":{"HS256":1}}'),
    "algorithm that is no number": signed(claims(), b'{"alg":NaN}'),
    "no algorithm": signed(claims(), b'{"alg":"none"}'),
    "an algorithm of keys": signed(claims(), b'{"alg":"RS256"}'),
    "a critical header": signed(claims(), b'{"alg":"HS256","crit":["exp"],"exp":1}'),
    "a body that is not packed": signed(claims(), b'{"alg":"HS256","b64":false,"crit":["b64"]}'),
    "its own key in the header": signed(
        claims(), b'{"alg":"HS256","jwk":{"kty":"oct","k":"AAAA"},"kid":"../../x"}', b"\x00\x00\x00"
    ),
    "a signature of nothing": GOOD.rpartition(b".")[0] + b".",
    "a giant signature": GOOD + b"A" * 14_000,
    "only dots": b"..",
    "longer than any": b"a" * 30_000 + b".e30.AAAA",
    "other letters": b"\xe4\xf6\xfc.\xe4.\xf6",
    "spaces": GOOD.replace(b".", b" . "),
}
BY_ITS_ISSUER = {
    "an end of many digits": signed(b'{"sub":"ann","exp":' + b"9" * 5000 + b"}"),
    "an end of four hundred digits": signed(b'{"sub":"ann","exp":' + b"9" * 400 + b"}"),
    "an end beyond numbers": signed(b'{"sub":"ann","exp":1e999}'),
    "an end long ago": signed(b'{"sub":"ann","exp":-1e308}'),
    "an end in words": signed(claims(exp="tomorrow")),
    "an end that is true": signed(claims(exp=True)),
    "a beginning of four hundred digits": signed(b'{"sub":"ann","exp":%d,"nbf":' % SOON + b"9" * 400 + b"}"),
    "a deep body": signed(b'{"a":' + b"[" * 11_000),
    "a body that is a list": signed(b"[]"),
    "a body that is nothing": signed(b""),
    "a body that is no text": signed(b"\xff\xfe"),
    "a name without end": signed(claims(sub="x" * 10_000)),
    "a name of signs": signed(claims(sub="a\u0000b")),
    "a name that is an object": signed(claims(sub={"a": 1})),
    "no name": signed(json.dumps({"exp": SOON}).encode()),
}
TOKENS = BY_STRANGERS | BY_ITS_ISSUER


@pytest.mark.parametrize("what", TOKENS)
def test_an_odd_token_is_refused_and_holds_up_nobody(guarded: HostProcess, what: str) -> None:
    with guarded.client() as client:
        assert client.get("/api/v1/users/me", headers=[(b"authorization", b"Bearer " + GOOD)]).status_code == 200
        answer = client.get("/api/v1/users/me", headers=[(b"authorization", b"Bearer " + TOKENS[what])])
        assert answer.status_code in {401, 431}, answer.text
        assert "urn:paddock:problem" in answer.text


@pytest.mark.anyio
@pytest.mark.parametrize("keys", [b"[" * 100_000, b'{"keys":' * 5000, b'{"keys":[1]}', b"", b'{"keys":{}}', b"\xff"])
async def test_odd_keys_of_an_issuer_are_none_and_say_so(tmp_path: Path, keys: bytes) -> None:
    (tmp_path / "keys.json").write_bytes(keys)
    with pytest.raises(HostError, match="keys cannot be read") as refused:
        await IssuerKeys(str(tmp_path / "keys.json")).find(None)
    assert refused.value.code == ErrorCode.UNAVAILABLE
