"""The native door over real HTTP: hand in, look, follow, stop; and every refusal a problem a person can act on."""

import asyncio
import gzip
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest

from http_api.doors import Doors, a_body, assert_problem, open_doors
from http_api.facts import events_of
from http_api.frames import cursor_of, split
from http_api.ordering import assert_official, assert_ordered
from paddock.http_api.edge.shapes import iso
from paddock.ports import Batch
from paddock.rules.errors import StorageUnavailableError
from stores import QuickStore

pytestmark = pytest.mark.anyio
RUNS = "/api/v1/agent/runs"


async def a_finished_run(doors: Doors, body: dict[str, Any] | None = None) -> tuple[str, bytes]:
    """A run that was followed live from its start to its end: its id and what the reader got."""
    task_id = (await doors.post(body or a_body())).json()["taskId"]
    reading = asyncio.create_task(doors.client.get(f"{RUNS}/{task_id}/events"))
    run = await doors.gateway.next()
    run.say("tool.call.started", tool_call_id="t1", tool_name="weather", parameters={"city": "Oslo"})
    run.say("tool.call.completed", tool_call_id="t1", tool_name="weather", result="rain")
    await doors.answered(run, "你好", ", ", "world")
    return task_id, (await reading).content


@pytest.mark.spec("http/idempotent")
async def test_a_run_is_accepted_once_and_the_same_request_gets_the_same_answer() -> None:
    async with open_doors() as doors:
        body = a_body()
        first = await doors.post(body)
        assert first.status_code == 202
        answer = first.json()
        assert answer == {"taskId": answer["taskId"], "threadId": body["threadId"], "runId": "run-001", "created": True}
        again = await doors.post(dict(reversed(body.items())))
        assert (again.status_code, again.json()) == (202, answer)
        assert_problem(await doors.post(body | {"state": 1}), 409, "conflict", "runId 'run-001' was already used")
        assert_problem(
            await doors.post(body, params={"agent": "two"}), 409, "conflict", "runId 'run-001' was already used"
        )
        other = await doors.post(body | {"runId": "run-002"})
        assert (other.status_code, other.json()["created"]) == (202, False)


class GatedStore(QuickStore):
    """Writes nothing before it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.may_write = asyncio.Event(), asyncio.Event()

    async def append(self, batch: Batch) -> None:
        self.asked.set()
        await self.may_write.wait()
        await super().append(batch)


@pytest.mark.spec("http/accepted-is-durable")
async def test_the_answer_comes_after_the_run_is_on_record_and_not_before() -> None:
    store = GatedStore()
    async with open_doors(store) as doors:
        asking = asyncio.create_task(doors.post(a_body()))
        await asyncio.wait_for(store.asked.wait(), 30)
        await asyncio.wait([asking], timeout=0.2)
        assert not asking.done()
        store.may_write.set()
        assert (await doors.row((await asking).json()["taskId"])).client_run_id == "run-001"


@pytest.mark.spec("http/two-names")
async def test_a_run_can_be_looked_at_by_either_of_its_names() -> None:
    async with open_doors() as doors:
        body = a_body()
        task_id, _ = await a_finished_run(doors, body)
        run = (await doors.client.get(f"{RUNS}/{task_id}")).json()
        assert (await doors.client.get(f"{RUNS}/run-001")).json() == run
        assert run.items() >= {"taskId": task_id, "threadId": body["threadId"], "runId": "run-001"}.items()
        assert (run["agentId"], run["status"]) == ("one", "completed")
        assert run["createdAt"] <= run["startedAt"] <= run["endedAt"]
        assert run["endedAt"].endswith("Z")
        assert "code" not in run


@pytest.mark.spec("http/two-names")
async def test_a_label_used_in_two_threads_needs_the_thread() -> None:
    async with open_doors() as doors:
        one, two = a_body(), a_body()
        await doors.post(one)
        task_id = (await doors.post(two)).json()["taskId"]
        assert_problem(
            await doors.client.get(f"{RUNS}/run-001"), 409, "conflict", "runId 'run-001' names runs in several"
        )
        found = await doors.client.get(f"{RUNS}/run-001", params={"threadId": two["threadId"]})
        assert found.json()["taskId"] == task_id


@pytest.mark.spec("http/stream-order")
@pytest.mark.spec("http/stream-valid")
async def test_the_stream_tells_a_run_from_its_start_to_its_end() -> None:
    async with open_doors() as doors:
        _, content = await a_finished_run(doors)
        events = events_of(split(content))
        for event in events:
            assert_official(event)
        assert_ordered(events)
        assert "".join(event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT") == "你好, world"
        assert events[0]["input"]["messages"] == [{"id": "m1", "role": "user", "content": "hi"}]
        assert [event["type"] for event in events if "TOOL" in event["type"]] == [
            "TOOL_CALL_START",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_END",
            "TOOL_CALL_RESULT",
        ]


@pytest.mark.spec("http/cursor")
async def test_from_every_cursor_the_rest_comes_without_gap_or_duplicate_also_after_a_restart() -> None:
    store = QuickStore()
    async with open_doors(store) as doors:
        task_id, live = await a_finished_run(doors)
    frames = split(live)
    assert len(frames) >= 9
    async with open_doors(store) as doors:
        assert (await doors.client.get(f"{RUNS}/{task_id}/events")).content == live
        for index, frame in enumerate(frames):
            rest = b"".join(frames[index + 1 :])
            by_query = await doors.client.get(f"{RUNS}/{task_id}/events", params={"after": cursor_of(frame)})
            header = {"Last-Event-ID": cursor_of(frame)}
            by_header = await doors.client.get(f"{RUNS}/{task_id}/events", headers=header)
            assert by_query.content == by_header.content == rest


@pytest.mark.spec("http/cursor-at-the-end")
async def test_a_cursor_at_or_beyond_the_end_gets_an_empty_stream_at_once() -> None:
    async with open_doors() as doors:
        task_id, live = await a_finished_run(doors)
        for cursor in (cursor_of(split(live)[-1]), "1.999999.0"):
            answer = await doors.client.get(f"{RUNS}/{task_id}/events", params={"after": cursor})
            assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.spec("http/dialects")
async def test_the_dialect_of_the_cursor_is_kept_unless_another_is_asked_for() -> None:
    async with open_doors() as doors:
        task_id, _ = await a_finished_run(doors)
        old = split((await doors.client.get(f"{RUNS}/{task_id}/events", params={"dialect": "0"})).content)
        assert "protocolVersion" not in events_of(old)[0]
        place = {"after": cursor_of(old[2])}
        assert split((await doors.client.get(f"{RUNS}/{task_id}/events", params=place)).content) == old[3:]
        new = await doors.client.get(f"{RUNS}/{task_id}/events", params=place | {"dialect": "1"})
        assert {cursor_of(frame)[0] for frame in split(new.content)} == {"1"}
        assert len(split(new.content)) == len(old[3:])


@pytest.mark.spec("http/cursor")
@pytest.mark.parametrize("after", ["", "x", "5", "2.1.0", "1.1", "1.-1.0", "1.1.0.0", "1.٣.0", "1.1.0\n"])
async def test_a_cursor_that_is_none_is_refused_but_an_empty_one_is_no_cursor(after: str) -> None:
    async with open_doors() as doors:
        task_id, live = await a_finished_run(doors)
        answer = await doors.client.get(f"{RUNS}/{task_id}/events", params={"after": after})
        if after == "":
            assert answer.content == live
        else:
            assert_problem(answer, 422, "invalid_argument", repr(after) + " is not a cursor: send the last `id:`")
        bad = await doors.client.get(f"{RUNS}/{task_id}/events", params={"dialect": "2"})
        assert_problem(bad, 422, "invalid_argument", "dialect must be 1")


@pytest.mark.spec("http/cancel")
async def test_cancel_is_a_wish_on_record_then_a_fact() -> None:
    async with open_doors() as doors:
        task_id = (await doors.post(a_body())).json()["taskId"]
        run = await doors.gateway.next()
        run.delta("half a")
        await doors.recorded(run.run_id, "half a")
        first = await doors.client.post(f"{RUNS}/{task_id}/cancel")
        assert (first.status_code, first.json()["status"]) == (202, "running")
        await asyncio.wait_for(run.asked_to_stop.wait(), 30)
        assert (await doors.client.post(f"{RUNS}/run-001/cancel")).status_code == 202
        run.may_stop.set()
        await doors.ended(task_id)
        last = await doors.client.post(f"{RUNS}/{task_id}/cancel")
        assert (last.status_code, last.json()["status"]) == (200, "cancelled")
        events = events_of(split((await doors.client.get(f"{RUNS}/{task_id}/events")).content))
        assert_ordered(events)
        assert events[-1]["outcome"] == {"type": "cancelled"}
        old = await doors.client.get(f"{RUNS}/{task_id}/events", params={"dialect": 0})
        assert events_of(split(old.content))[-1]["code"] == "cancelled"


async def test_a_failed_run_says_why() -> None:
    async with open_doors() as doors:
        task_id = (await doors.post(a_body())).json()["taskId"]
        run = await doors.gateway.next()
        run.listener.lost("runner.crashed", "it exited with status 1")
        await doors.ended(task_id)
        seen = (await doors.client.get(f"{RUNS}/{task_id}")).json()
        assert (seen["status"], seen["code"], seen["message"]) == (
            "failed",
            "runner.crashed",
            "it exited with status 1",
        )
        events = events_of(split((await doors.client.get(f"{RUNS}/{task_id}/events")).content))
        assert (events[-1]["type"], events[-1]["code"]) == ("RUN_ERROR", "runner.crashed")


@pytest.mark.spec("http/foreign-is-unknown")
async def test_the_runs_of_others_look_like_none() -> None:
    async with open_doors() as doors:
        ann, bob = await doors.key_for("ann"), await doors.key_for("bob")
        body = a_body()
        task_id = (await doors.post(body, headers=ann)).json()["taskId"]
        for path in ("", "/events"):
            foreign = await doors.client.get(f"{RUNS}/{task_id}{path}", headers=bob)
            random = await doors.client.get(f"{RUNS}/{uuid.uuid4()}{path}", headers=bob)
            assert (foreign.status_code, foreign.content) == (404, random.content)
        assert (await doors.client.post(f"{RUNS}/{task_id}/cancel", headers=bob)).status_code == 404
        assert_problem(
            await doors.post(body | {"runId": "2"}, headers=bob), 404, "not_found", "there is no such thread"
        )


@pytest.mark.spec("http/agent")
async def test_a_run_goes_to_the_agent_that_was_asked_for() -> None:
    async with open_doors() as doors:
        task_id = (await doors.post(a_body(), params={"agent": "two"})).json()["taskId"]
        await doors.answered(await doors.gateway.next(), "ok")
        assert (await doors.client.get(f"{RUNS}/{task_id}")).json()["agentId"] == "two"
        missing = await doors.post(a_body(), params={"agent": "nobody"})
        assert_problem(missing, 404, "not_found", "there is no agent 'nobody'; known are: one, two")


async def test_an_invalid_request_gets_the_sentence_of_its_rule_and_starts_nothing() -> None:
    async with open_doors() as doors:
        assert_problem(
            await doors.post(a_body(thread="main")), 422, "invalid_argument", "threadId must be a valid UUID"
        )
        bad = await doors.client.post(RUNS, content=b"{", headers={"content-type": "application/json"})
        assert_problem(bad, 422, "invalid_argument", "RunAgentInput is not valid JSON: ")
        assert doors.gateway.started.empty()


@pytest.mark.spec("http/body-limit")
@pytest.mark.parametrize("declared", [True, False])
async def test_a_body_that_is_too_long_is_refused_before_it_is_read_in_full(declared: bool) -> None:
    async with open_doors() as doors:
        host = doors.url.removeprefix("http://")
        reader, writer = await asyncio.open_connection(*host.split(":"))
        head = f"POST {RUNS} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        if declared:
            writer.write(f"{head}Content-Length: 262145\r\n\r\n".encode())
        else:
            chunk = b"2000\r\n" + b" " * 0x2000 + b"\r\n"
            writer.write(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunk * 32 + b"1\r\n \r\n")
        answer = await asyncio.wait_for(reader.readuntil(b"}"), 30)  # though the body has not ended
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"RunAgentInput payload exceeds size limit" in answer
        writer.close()


async def test_a_body_that_is_too_long_is_answered_also_when_it_is_sent_in_full() -> None:
    async with open_doors() as doors:
        answer = await doors.post(a_body(text="x" * 2_000_000))
        assert_problem(answer, 413, "payload_too_large", "RunAgentInput payload exceeds size limit")
        assert (await doors.post(a_body())).status_code == 202


@pytest.mark.spec("http/problem")
async def test_what_is_not_part_of_the_api_is_a_problem_too() -> None:
    async with open_doors() as doors:
        assert_problem(await doors.client.get("/api/v2"), 404, "not_found", "GET /api/v2 is not part of this API")
        wrong = await doors.client.put(RUNS)
        assert_problem(wrong, 405, "invalid_argument", f"PUT {RUNS} is not part of this API")
        assert wrong.headers["allow"] == "GET, POST"
        assert (await doors.client.head(f"{RUNS}/x/events")).status_code == 405


class FullStore(QuickStore):
    """A store that can be read; it writes again when it is told so."""

    full = True

    async def append(self, batch: Batch) -> None:
        if self.full:
            raise StorageUnavailableError("the disk is full")
        await super().append(batch)


@pytest.mark.spec("http/unavailable")
async def test_when_the_store_cannot_write_nothing_is_accepted_and_the_caller_hears_when_to_return() -> None:
    store = FullStore()
    async with open_doors(store) as doors:
        answer = await doors.post(a_body())
        assert_problem(answer, 503, "unavailable", "the store cannot write now, so nothing was accepted")
        assert int(answer.headers["retry-after"]) >= 1
        store.full = False
        assert (await doors.post(a_body())).status_code == 202


@pytest.mark.parametrize("seconds", [0.0, 1.9999999, 951_782_399.9996, 1_700_000_000.123456, 4_102_444_799.999, -1.5])
def test_moments_are_told_in_utc_to_the_millisecond(seconds: float) -> None:
    told = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert iso(seconds) == told


async def test_a_compressed_body_is_told_so_at_every_door() -> None:
    body, headers = gzip.compress(b"{}"), {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    async with open_doors() as doors:
        for path in (RUNS, "/api/v1/agent/ag-ui", "/api/v1/agent/sessions"):
            answer = await doors.client.post(path, content=body, headers=headers)
            assert answer.status_code == 422
            assert "is compressed with gzip, which is not read here: send plain JSON" in answer.json()["detail"]


async def test_a_wrong_method_is_told_all_that_the_path_allows() -> None:
    async with open_doors() as doors:
        for path, allowed in (
            (RUNS, "GET, POST"),
            ("/api/v1/agent/sessions", "GET, POST"),
            (f"/api/v1/agent/sessions/{uuid.uuid4()}", "DELETE, GET, PATCH"),
            ("/api/v1/agent/attachments/x/content", "GET, PUT"),
        ):
            answer = await doors.client.request("OPTIONS", path)
            assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
