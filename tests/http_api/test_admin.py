"""What there is: agents, runners, keys; is it ready; and a page for whoever looks with a browser."""

import re
from contextlib import suppress
from hashlib import sha256
from typing import Any

import anyio
import httpx
import pytest

from host.scripted import manifest_of
from http_api.doors import LOCAL_TOKEN, assert_problem, open_doors
from http_api.test_spec import PAGE
from paddock.ports import RunnerStatus

pytestmark = pytest.mark.anyio
LOCAL = {"Authorization": f"Bearer {LOCAL_TOKEN}"}
TAKE_OVER = "/api/v1/take-over"


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
            "origin": "file",
            "isolation": "L0",
            "health": "ok",
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


async def test_the_page_names_the_fields_of_every_answer() -> None:
    async with open_doors() as doors:
        manifest = manifest_of("plugin:test/one/default", {})
        doors.gateway.statuses = [RunnerStatus("plugin:test/one/default", "test/one", "ready", "L0", "", manifest, 42)]
        ask, token = doors.client, {"author": "me", "name": "mine"}
        answers = {
            "http/agents": (await ask.get("/api/v1/agents")).json()["agents"][0],
            "http/runners": (await ask.get("/api/v1/runners")).json()["runners"][0],
            "http/attach-tokens": (await ask.post("/api/v1/runners/attach-tokens", json=token)).json(),
            "http/probes": (await ask.get("/readyz")).json(),
            "http/api-keys": (await ask.post("/api/v1/api-keys", json={"user": "ann"})).json(),
        }
        for line, answer in answers.items():
            assert set(answer) in fields_on_the_page(line), line


def fields_on_the_page(line: str) -> list[set[str]]:
    """The field lists in braces of one line of the page, question marks left out."""
    [text] = re.findall(rf"^- `{line}`: ((?:.|\n  )*)", PAGE, re.MULTILINE)
    return [set(re.findall(r"\w+", fields)) for fields in re.findall(r"\{([^}]*)\}", text)]


@pytest.mark.spec("http/runners")
async def test_only_who_runs_the_host_sees_processes_and_what_went_wrong_in_them() -> None:
    async with open_doors(operators=["ops@acme"]) as doors:
        broken = RunnerStatus("plugin:test/two/*", "test/two", "unhealthy", "L1", "it keeps crashing", None, 42)
        doors.gateway.statuses = [broken]
        seen = []
        somebody = await doors.key_for("ann", "acme")
        others = [await doors.key_for(user, "acme", "admin") for user in ("bob", "ops")]
        for headers in (somebody, *others):
            [runner] = (await doors.client.get("/api/v1/runners", headers=headers)).json()["runners"]
            seen.append({"detail", "pid"} & runner.keys())
        assert seen == [set(), set(), {"detail", "pid"}]
        assert doors.gateway.listed_for == ["acme"] * 3


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
        (b'{"user": "ann", "rol": "admin"}', "unknown field 'rol'; did you mean role?"),
        (b'{"user": "ann", "x": 1}', "unknown field 'x'; known are user, workspace, role"),
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
        allowed = {"history": ["page"]}
        await doors.client.post("/api/v1/runners/attach-tokens", json=body | {"permissions": allowed}, headers=root)
        assert doors.gateway.attach_tokens.minted == [("acme", "me", "mine", None), ("acme", "me", "mine", allowed)]


@pytest.mark.spec("http/strict-admin")
@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({"nam": "mine"}, "unknown field 'nam'; did you mean name?"),
        ({"author": "me"}, "name must be a printable string"),
        ({"author": "me", "name": "mine", "permissions": None}, "permissions must be an object, or left out"),
    ],
)
async def test_a_token_for_nothing_is_not_made(body: Any, detail: str) -> None:
    async with open_doors() as doors:
        answer = await doors.client.post("/api/v1/runners/attach-tokens", json=body, headers=LOCAL)
        assert_problem(answer, 422, "invalid_argument", detail)
        assert doors.gateway.attach_tokens.minted == []


@pytest.mark.spec("http/probes")
async def test_probes_need_no_key_and_say_why_not() -> None:
    async with open_doors() as doors:
        await doors.key_for("ann")
        assert (await doors.client.get("/healthz")).json() == {"status": "alive"}
        assert (await doors.client.get("/readyz")).status_code == 200
        doors.ready[0] = (False, "the store cannot write")
        answer = await doors.client.get("/readyz")
        assert (answer.status_code, answer.json()["reason"]) == (503, "the store cannot write")


@pytest.mark.spec("http/api-keys")
async def test_an_administrator_by_key_makes_keys_for_its_own_workspace_only() -> None:
    async with open_doors() as doors:
        asked = {"workspace": "acme", "user": "ann", "role": "admin"}
        key = (await doors.client.post("/api/v1/api-keys", json=asked, headers=LOCAL)).json()["key"]
        ann = {"Authorization": f"Bearer {key}"}
        own = await doors.client.post("/api/v1/api-keys", json={"user": "bob"}, headers=ann)
        assert (own.status_code, own.json()["workspace"]) == (201, "acme")
        foreign = await doors.client.post("/api/v1/api-keys", json={"workspace": "other", "user": "bob"}, headers=ann)
        assert_problem(foreign, 403, "unauthorized", "a key of this workspace makes keys for this workspace only")


@pytest.mark.spec("http/take-over")
async def test_only_whoever_runs_the_host_hands_over_what_dev_said_and_a_refusal_is_on_record() -> None:
    async with open_doors() as doors:
        made = (await doors.client.post("/api/v1/agent/sessions", json={}, headers=LOCAL)).json()["threadId"]
        boss, user = await doors.key_for("eve", role="admin"), await doors.key_for("ann")
        for who, sentence in ((boss, "only an operator can hand over"), (user, "this needs a key with the role admin")):
            assert_problem(await doors.client.get(TAKE_OVER, headers=who), 403, "unauthorized", sentence)
            refused = await doors.client.post(TAKE_OVER, json={"user": "ann"}, headers=who)
            assert_problem(refused, 403, "unauthorized", sentence)
        for body, sentence in (
            ({}, "user must be a printable string"),
            ({"user": "dev"}, "user must not be dev: it is the owner already"),
            ({"user": "ann", "from": "bob"}, "from is not known here"),
        ):
            wrong = await doors.client.post(TAKE_OVER, json=body, headers=LOCAL)
            assert wrong.status_code == 422, sentence
        assert (await doors.client.get(TAKE_OVER, headers=LOCAL)).json()["conversations"] == 1

        # What dev reads ends, and ann reads it from now on.
        path = f"/api/v1/agent/sessions/{made}/events"
        async with doors.client.stream("GET", path, headers=LOCAL) as stream:
            taken = await doors.client.post(TAKE_OVER, json={"user": "ann"}, headers=LOCAL)
            assert taken.json() == {"conversations": 1, "busy": 0, "left": 0}
            with anyio.fail_after(30), suppress(httpx.RemoteProtocolError):
                async for _ in stream.aiter_bytes():
                    pass
        assert (await doors.client.get(path, headers=LOCAL)).status_code == 404
        async with doors.client.stream("GET", path, headers=user) as stream:
            assert stream.status_code == 200
        again = await doors.client.post(TAKE_OVER, json={"user": "ann"}, headers=LOCAL)
        assert again.json() == {"conversations": 0, "busy": 0, "left": 0}


@pytest.mark.spec("http/take-over")
async def test_one_request_hands_over_for_a_while_and_the_next_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paddock.host.people.taking_over.REQUEST_SECONDS", 0.0)
    async with open_doors() as doors:
        for _ in range(3):
            await doors.client.post("/api/v1/agent/sessions", json={}, headers=LOCAL)
        parts = [(await doors.client.post(TAKE_OVER, json={"user": "ann"}, headers=LOCAL)).json() for _ in range(3)]
        assert [(part["conversations"], part["left"]) for part in parts] == [(1, 2), (1, 1), (1, 0)]
