"""The AG-UI door over real HTTP: what stock clients send, and what they would get."""

import asyncio
import json
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest
from ag_ui.core import AgentCapabilities

from http_api.doors import Doors, assert_problem, open_doors
from http_api.facts import events_of
from http_api.frames import cursor_of, split
from http_api.ordering import assert_official, assert_ordered
from paddock.compose.build import house_of
from paddock.compose.rooms import rooms_of
from paddock.settings import Settings

pytestmark = pytest.mark.anyio
AG_UI = "/api/v1/agent/ag-ui"


def a_request(thread: str = "main", run: str | None = None, **changes: Any) -> dict[str, Any]:
    """As the official client 1.0 sends it."""
    body = {
        "threadId": thread,
        "runId": run or str(uuid.uuid4()),
        "protocolVersion": "1.0",
        "state": {},
        "messages": [{"id": "u1", "role": "user", "content": "hi"}],
        "tools": [],
        "context": [],
        "forwardedProps": {},
    }
    return body | changes


async def ask(doors: Doors, body: dict[str, Any], *pieces: str, path: str = AG_UI, **options: Any) -> httpx.Response:
    asking = asyncio.create_task(doors.client.post(path, json=body, **options))
    await doors.answered(await doors.gateway.next(), *(pieces or ("ok",)))
    return await asking


@pytest.mark.spec("http/ag-ui-dialect")
@pytest.mark.parametrize(("version", "dialect"), [("1.0", "1"), ("1.7", "1"), (None, "0"), ("0.0.59", "0")])
async def test_one_post_streams_the_run_in_the_dialect_of_its_client(version: str | None, dialect: str) -> None:
    async with open_doors() as doors:
        body = a_request(protocolVersion=version)
        answer = await ask(doors, body, "one ", "two")
        assert answer.headers["content-type"] == "text/event-stream"
        events = events_of(split(answer.content))
        for event in events:
            assert_official(event)
        assert_ordered(events)
        assert {cursor_of(frame)[0] for frame in split(answer.content)} == {dialect}
        assert ("protocolVersion" in events[0]) is (dialect == "1")
        for event in (events[0], events[-1]):
            assert (event["threadId"], event["runId"]) == ("main", body["runId"])


@pytest.mark.spec("http/ag-ui-threads")
async def test_a_name_for_a_thread_is_its_users_own_and_always_the_same_thread() -> None:
    async with open_doors() as doors:
        ann, bob = await doors.key_for("ann"), await doors.key_for("bob")
        threads: list[str] = []
        for who, run in ((ann, "1"), (ann, "2"), (bob, "1")):
            await ask(doors, a_request(run=run), headers=who)
            seen = await doors.client.get(f"/api/v1/agent/runs/{run}", headers=who)
            threads.append(seen.json()["threadId"])
        assert threads[0] == threads[1] != threads[2]


@pytest.mark.spec("http/ag-ui-threads")
async def test_a_dropped_stream_is_joined_again_under_the_names_the_client_uses() -> None:
    async with open_doors() as doors:
        live = split((await ask(doors, a_request(run="r1"), "a", "b", "c")).content)
        options = {"params": {"threadId": "main"}, "headers": {"Last-Event-ID": cursor_of(live[3])}}
        rest = await doors.client.get("/api/v1/agent/runs/r1/events", **options)
        assert split(rest.content) == live[4:]
        plain = events_of(
            split((await doors.client.get("/api/v1/agent/runs/r1/events", params={"dialect": 1})).content)
        )
        assert (
            plain[0]["threadId"]
            == plain[-1]["threadId"]
            == (await doors.client.get("/api/v1/agent/runs/r1")).json()["threadId"]
        )


@pytest.mark.spec("http/ag-ui-goes-on")
@pytest.mark.parametrize("version", ["1.0", None])
async def test_the_same_post_with_a_cursor_goes_on_where_the_stream_broke_off(version: str | None) -> None:
    async with open_doors() as doors:
        body = a_request(run="r1", protocolVersion=version)
        live = split((await ask(doors, body, "a", "b", "c")).content)
        for at in range(len(live)):
            rest = await doors.client.post(AG_UI, json=body, headers={"Last-Event-ID": cursor_of(live[at])})
            assert split(rest.content) == live[at + 1 :], f"after {live[at]!r}"
        whole = await doors.client.post(AG_UI, json=body, headers={"Last-Event-ID": ""})
        assert split(whole.content) == live


@pytest.mark.spec("http/ag-ui-goes-on")
async def test_the_same_post_with_a_cursor_joins_a_run_that_goes_on() -> None:
    async with open_doors() as doors:
        body = a_request(run="r1")
        asking = asyncio.create_task(doors.client.post(AG_UI, json=body))
        run = await doors.gateway.next()
        run.delta("a")
        await doors.recorded(run.run_id, "a")
        first = f"1.{(await doors.row(run.run_id)).first_seq}.0"
        again = asyncio.create_task(doors.client.post(AG_UI, json=body, headers={"Last-Event-ID": first}))
        await doors.answered(run, "b")
        whole = split((await asking).content)
        assert split((await again).content) == whole[1:]
        assert doors.gateway.started.empty()


@pytest.mark.spec("http/ag-ui-goes-on")
@pytest.mark.parametrize("cursor", ["nonsense", "1.x.0", "1.4000.0", "0.1.0"])
async def test_a_post_with_a_cursor_that_cannot_be_is_refused_before_anything_begins(cursor: str) -> None:
    async with open_doors() as doors:
        answer = await doors.client.post(AG_UI, json=a_request(run="r1"), headers={"Last-Event-ID": cursor})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_argument")
        assert (await doors.client.get("/api/v1/agent/runs/r1")).status_code == 404
        assert doors.gateway.started.empty()


@pytest.mark.spec("http/ag-ui-goes-on")
async def test_a_cursor_of_an_earlier_run_leaves_a_new_one_whole() -> None:
    async with open_doors() as doors:
        first = split((await ask(doors, a_request(run="r1"), "a")).content)
        more = [
            {"id": "u1", "role": "user", "content": "hi"},
            {"id": "a1", "role": "assistant", "content": "a"},
            {"id": "u2", "role": "user", "content": "and?"},
        ]
        headers = {"Last-Event-ID": cursor_of(first[-1])}
        second = split((await ask(doors, a_request(run="r2", messages=more), "b", headers=headers)).content)
        assert b'"RUN_STARTED"' in second[0]


async def test_the_same_request_again_gets_the_same_run_and_another_one_is_refused() -> None:
    async with open_doors() as doors:
        body = a_request(run="r1")
        first = await ask(doors, body, "a", "b")
        again = await doors.client.post(AG_UI, json=body)
        assert again.content == first.content
        assert_problem(
            await doors.client.post(AG_UI, json=body | {"state": 1}), 409, "conflict", "runId 'r1' was already"
        )


@pytest.mark.spec("http/ag-ui-history")
async def test_of_a_whole_history_the_last_user_message_is_asked_and_only_what_is_new_is_kept() -> None:
    history = [
        {"id": "s", "role": "system", "content": "be brief"},
        {"id": "u1", "role": "user", "content": "first"},
        {"id": "a1", "role": "assistant", "content": "answer"},
        {"id": "u2", "role": "user", "content": [{"type": "text", "text": "sec"}, {"type": "text", "text": "ond"}]},
        {"id": "t", "role": "tool", "toolCallId": "c", "content": "x", "error": None},
        {"id": "z", "role": "from-the-future", "whatever": 1},
    ]
    async with open_doors() as doors:
        asking = asyncio.create_task(doors.client.post(AG_UI, json=a_request(messages=history, resume=[])))
        run = await doors.gateway.next()
        assert run.context["input"]["text"] == "sec\nond"
        tool = {key: value for key, value in history[4].items() if value is not None}
        assert run.context["adapter"]["extra"]["params"] == {"messages": [history[0], tool]}
        await doors.answered(run, "ok")
        assert (await asking).status_code == 200


@pytest.mark.spec("http/ag-ui-kind")
async def test_parts_nobody_can_use_are_passed_over() -> None:
    parts = [
        {"type": "text", "text": "look", "metadata": {"a": 1}},
        {"type": "image", "source": {"type": "url", "value": "http://169.254.169.254/"}},
        {"type": "binary", "mimeType": "image/png", "data": "AAAA"},
        {"type": "hologram"},
    ]
    async with open_doors() as doors:
        body = a_request(messages=[{"id": "u", "role": "user", "content": parts, "name": None, "unknown": 1}])
        asking = asyncio.create_task(doors.client.post(AG_UI, json=body))
        run = await doors.gateway.next()
        assert run.context["input"]["text"] == "look"
        assert "169.254" not in json.dumps(run.context)
        await doors.answered(run, "ok")
        assert_ordered(events_of(split((await asking).content)))


@pytest.mark.spec("http/ag-ui-kind")
async def test_a_client_time_that_is_none_is_left_out_and_other_props_pass_untouched() -> None:
    async with open_doors() as doors:
        good = {"device_timezone": "Asia/Shanghai", "client_now_iso": "2026-03-16T09:12:33+08:00", "client_epoch_ms": 1}
        for given, kept in ((good, {"x": 1, "client_time": good}), ({"device_timezone": "Mars"}, {"x": 1})):
            body = a_request(forwardedProps={"x": 1, "client_time": given})
            asking = asyncio.create_task(doors.client.post(AG_UI, json=body))
            run = await doors.gateway.next()
            assert run.context["adapter"]["extra"]["params"]["forwardedProps"] == kept
            await doors.answered(run, "ok")
            await asking


@pytest.mark.spec("http/ag-ui-strict")
@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        ({"threadId": 5}, "threadId must be a string of 1 to 512 characters"),
        ({"threadId": ""}, "threadId must be a string"),
        ({"runId": None}, "runId must be a string"),
        ({"protocolVersion": 1}, "protocolVersion must be a string"),
        ({"messages": {}}, "messages must be a list"),
        ({"messages": []}, "messages must contain a user message"),
        ({"messages": ["hi"]}, "messages[0] must be an object"),
        ({"messages": [{"id": "u", "content": "x"}]}, "messages[0].role must be a string"),
        ({"messages": [{"role": "user", "content": "x"}]}, "messages[0].id must be a string"),
        ({"messages": [{"id": "u", "role": "user", "content": 5}]}, "messages[0].content must be a string or a list"),
        ({"messages": [{"id": "u", "role": "user", "content": [5]}]}, "messages[0].content[0] must be an object"),
        (
            {"messages": [{"id": "u", "role": "user", "content": [{"type": "text"}]}]},
            "messages[0].content[0].text must be",
        ),
        ({"messages": [{"id": "u", "role": "user", "content": "x"}] * 2001}, "messages must be at most 2000"),
        ({"tools": {}}, "tools must be a list of objects"),
        ({"context": ["x"]}, "context must be a list of objects"),
        ({"parentRunId": 5}, "parentRunId must be a string"),
    ],
)
async def test_known_fields_with_wrong_values_are_refused_before_any_stream(
    changes: dict[str, Any], detail: str
) -> None:
    async with open_doors() as doors:
        answer = await doors.client.post(AG_UI, json=a_request(**changes))
        assert_problem(answer, 422, "invalid_argument", detail)


@pytest.mark.spec("http/ag-ui-strict")
async def test_a_long_chat_fits_and_an_endless_one_does_not() -> None:
    async with open_doors() as doors:
        old = {"id": "a", "role": "assistant", "content": "x" * 4_000_000}
        answer = await ask(doors, a_request(messages=[old, {"id": "u", "role": "user", "content": "hi"}]))
        assert answer.status_code == 200
        too_long = await doors.client.post(AG_UI, json=a_request(state="x" * 8_400_000))
        assert_problem(too_long, 413, "payload_too_large", "the body exceeds 8388608 bytes")


@pytest.mark.spec("http/ag-ui-strict")
async def test_the_path_names_the_agent_and_an_unknown_one_is_not_found() -> None:
    async with open_doors() as doors:
        await ask(doors, a_request(run="r1"), path=f"{AG_UI}/two")
        assert (await doors.client.get("/api/v1/agent/runs/r1")).json()["agentId"] == "two"
        missing = "there is no agent 'nobody'; known are: one, two"
        assert_problem(await doors.client.post(f"{AG_UI}/nobody", json=a_request()), 404, "not_found", missing)
        assert_problem(await doors.client.get(f"{AG_UI}/nobody/capabilities"), 404, "not_found", missing)


@pytest.mark.spec("http/ag-ui-capabilities")
@pytest.mark.parametrize("path", [f"{AG_UI}/one/capabilities", f"{AG_UI}/capabilities"])
async def test_capabilities_have_the_official_shape(path: str) -> None:
    async with open_doors() as doors:
        given = (await doors.client.get(path)).json()
        read = AgentCapabilities.model_validate(given)
        assert read.model_dump(mode="json", by_alias=True, exclude_none=True) == given
        assert given["transport"]["streaming"] is True


@pytest.mark.spec("http/ag-ui-strict")
async def test_an_operator_says_how_much_one_request_may_be(tmp_path: Path) -> None:
    rooms = rooms_of(Settings(data=tmp_path, discover_models=False, ag_ui_messages=2, ag_ui_body_mib=1))
    await rooms.ground.store.open()
    through = httpx.ASGITransport(house_of(rooms).app, client=("127.0.0.1", 1))
    messages = [{"id": f"u{number}", "role": "user", "content": "x"} for number in range(3)]
    async with httpx.AsyncClient(transport=through, base_url="http://127.0.0.1:8484") as client:
        many = await client.post(AG_UI, json={"threadId": "t", "runId": "r", "messages": messages})
        assert_problem(many, 422, "invalid_argument", "messages must be at most 2")
        large = await client.post(AG_UI, content=b" " * (1024 * 1024 + 1), headers={"content-type": "application/json"})
        assert_problem(large, 413, "payload_too_large", "the body exceeds 1048576 bytes")
    await rooms.ground.store.close()
