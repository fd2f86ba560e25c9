"""Keys, tokens and signed addresses pass through the host, and never into its log, however much it says."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey

import loopback
from safety.tenants import got, key_of, tenant
from walk.hosts import HostProcess

SECRET = "a secret of thirty-two bytes, or more"
ALL = {"PADDOCK_LOG_LEVEL": "debug", "PADDOCK_LOG_FORMAT": "json"}


@pytest.fixture
def talkative(tmp_path: Path) -> Iterator[HostProcess]:
    """A host that logs all it can."""
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    host = HostProcess(tmp_path / "data", env=ALL | {"PADDOCK_JWT_SECRET_FILE": str(secret)}).start()
    yield host
    host.stop()


def a_token() -> str:
    claims = {"sub": "ann", "exp": int(time.time()) + 600}
    return jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(SECRET), algorithms=["HS256"])


@pytest.mark.spec("http/secrets-not-logged")
def test_no_secret_is_in_the_log_of_a_host_that_logs_everything(talkative: HostProcess) -> None:
    host, token = talkative, a_token()
    key = key_of(host, "acme")
    acme = tenant(host, "acme", key)
    url = got(acme.client.get(f"/api/v1/agent/attachments/{acme.ids['attachment']}"))["url"]
    signature = parse_qs(urlsplit(url).query)["signature"][0]
    with host.client(headers={"Authorization": f"Bearer {token}"}) as ann:
        got(ann.get("/api/v1/users/me"))
    used_well_and_badly(host, key, token, url)
    host.stop()
    assert host.says("http.refused")  # it does log what happens at its doors
    log = "".join(host.output)
    for secret in (key, token, token.rsplit(".", 1)[1], signature, SECRET):
        assert secret not in log, log[max(0, log.find(secret) - 300) : log.find(secret) + 100]


def used_well_and_badly(host: HostProcess, key: str, token: str, url: str) -> None:
    """Secrets where they belong and where people put them by mistake: refusals must not repeat them either."""
    loopback.get(url).raise_for_status()
    for given in (f"Bearer {key}x", f"Bearer {token}x", f"Basic {key}", key):
        assert host.client().get("/api/v1/users/me", headers={"Authorization": given}).status_code == 401
    with host.client() as nobody:
        nobody.get(f"{url}&more=1")
        nobody.get(f"/api/v1/users/me?key={key}&token={token}")
        nobody.put(f"{url}&upload=x", content=b"x")
        nobody.post(f"/api/v1/nothing?key={key}", json={"key": key})
    with socket.create_connection(("127.0.0.1", urlsplit(host.url).port)) as broken:
        broken.sendall(f"GET /?key={key} HTTP/1.1\r\nauthorization Bearer {key}\r\n\r\n".encode())
        assert broken.recv(100).startswith(b"HTTP/1.1 400")
