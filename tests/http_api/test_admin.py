"""What there is: agents, runners, keys; is it ready; and a page for whoever looks with a browser."""

from hashlib import sha256

import pytest

from host.scripted import manifest_of
from http_api.doors import LOCAL_TOKEN, assert_problem, open_doors
from paddock.ports import RunnerStatus

pytestmark = pytest.mark.anyio
LOCAL = {"Authorization": f"Bearer {LOCAL_TOKEN}"}


@pytest.mark.spec("http/agents")
async def test_agents_are_listed_without_their_config() -> None:
    async with open_doors() as doors:
        one, two = (await doors.client.get("/api/v1/agents")).json()["agents"]
        assert one == {
            "agentId": "one",
            "label": "one",
            "description": "",
            "runnerId": "plugin:test/one/default",
            "default": True,
        }
        assert (two["agentId"], two["default"]) == ("two", False)


@pytest.mark.spec("http/runners")
async def test_runners_are_listed_with_their_state_and_isolation() -> None:
    async with open_doors() as doors:
        manifest = manifest_of("plugin:test/one/default", {})
        doors.gateway.statuses = [
            RunnerStatus("plugin:test/one/default", "test/one", "ready", "L0", "", manifest, 42),
            RunnerStatus("plugin:test/two/*", "test/two", "unhealthy", "L1", "it keeps crashing", None),
        ]
        ready, broken = (await doors.client.get("/api/v1/runners")).json()["runners"]
        assert (ready["state"], ready["pid"], ready["manifest"]["id"]) == ("ready", 42, "plugin:test/one/default")
        assert broken == {
            "runnerId": "plugin:test/two/*",
            "plugin": "test/two",
            "state": "unhealthy",
            "isolation": "L1",
            "detail": "it keeps crashing",
        }


@pytest.mark.spec("http/api-keys")
async def test_a_key_is_shown_once_and_belongs_to_whom_it_was_made_for() -> None:
    async with open_doors() as doors:
        asked = {"user": "ann", "workspace": "acme", "role": "admin"}
        made = (await doors.client.post("/api/v1/api-keys", json=asked, headers=LOCAL)).json()
        assert made.keys() == {"keyId", "key", "workspace", "user", "role"}
        assert made["key"].startswith("pdk_")
        assert len(made["key"]) >= 47
        found = await doors.house.store.find_key(sha256(made["key"].encode()).digest())
        assert found is not None
        assert (found.workspace_id, found.user_id, found.role) == ("acme", "ann", "admin")


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"{}", "user must be a printable string of 1 to 128 characters"),
        (b'{"user": ""}', "user must be a printable string"),
        (b'{"user": "a\\u0000b"}', "user must be a printable string"),
        (b'{"user": "ann", "role": "root"}', "role must be user or admin"),
        (b'{"user": "ann", "role": ["admin"]}', "role must be user or admin"),
        (b'{"user": "ann", "workspace": 5}', "workspace must be a printable string"),
        (b"[]", "the body must be a JSON object"),
        (b"{", "the body is not valid JSON"),
    ],
)
async def test_a_key_for_nobody_is_not_made(body: bytes, detail: str) -> None:
    async with open_doors() as doors:
        answer = await doors.client.post("/api/v1/api-keys", content=body, headers=LOCAL)
        assert_problem(answer, 422, "invalid_argument", detail)
        assert not await doors.house.store.any_key()


async def test_a_small_call_takes_no_large_body() -> None:
    async with open_doors() as doors:
        answer = await doors.client.post("/api/v1/api-keys", content=b" " * 70_000, headers=LOCAL)
        assert_problem(answer, 413, "payload_too_large", "the body exceeds 65536 bytes")


@pytest.mark.spec("http/attach-tokens")
async def test_an_attach_token_is_for_the_workspace_of_who_asks() -> None:
    async with open_doors() as doors:
        root = await doors.key_for("root", "acme", "admin")
        body = {"author": "me", "name": "mine"}
        made = await doors.client.post("/api/v1/runners/attach-tokens", json=body, headers=root)
        assert (made.status_code, made.json()["token"]) == (201, "one-time-token")
        assert doors.gateway.attach_tokens.minted == [("acme", "me", "mine")]


@pytest.mark.spec("http/probes")
async def test_probes_need_no_key_and_say_why_not() -> None:
    async with open_doors() as doors:
        await doors.key_for("ann")
        assert (await doors.client.get("/healthz")).json() == {"status": "alive"}
        assert (await doors.client.get("/readyz")).status_code == 200
        doors.ready[0] = (False, "the store cannot write")
        answer = await doors.client.get("/readyz")
        assert (answer.status_code, answer.json()["reason"]) == (503, "the store cannot write")


@pytest.mark.spec("http/probes")
async def test_the_page_says_what_this_is_and_how_to_chat() -> None:
    async with open_doors() as doors:
        page = await doors.client.get("/")
        assert page.headers["content-type"].startswith("text/html")
        assert "paddock chat" in page.text
        assert f"{doors.url}/api/v1/agent/ag-ui" in page.text
        odd = await doors.client.get("/", headers={"Host": "<script>x</script>"})
        assert "<script>" not in odd.text
