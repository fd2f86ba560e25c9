"""A run's own MCP endpoint: exactly its grant, for as long as it lasts, through the same gate as everything else."""

import asyncio
import json
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from contracts.test_knowledge import AUDIT
from host.scripted import AGENTS
from host.test_knowledge import some_bases
from mcp_endpoint.reach import EVERYTHING, INITIALIZE, ask, reach
from paddock.cli.hosting.run_socket import run_socket
from paddock.host.calls.work import CallHandler
from paddock.http_api.edge.connection import SENT_AHEAD
from paddock.http_api.mcp import door as mcp
from paddock.http_api.mcp.server import said
from paddock.rules.access.limits import Rates
from paddock.rules.errors import UnansweredWriteError
from stores import QuickStore

pytestmark = pytest.mark.anyio

OWN = {
    "history_page",
    "history_search",
    "artifact_read",
    "artifact_create",
    "state_get",
    "state_set",
    "current_event",
}


def text_of(result: Any) -> str:
    assert len(result.content) == 1
    return result.content[0].text


async def test_the_tools_are_exactly_the_grant_and_those_that_change_nothing_say_so(tmp_path: Path) -> None:
    async with reach(tmp_path) as house:
        run = await house.a_run()
        async with run.client() as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        granted = {tool["tool_name"] for tool in run.at_runner.context["resources"]["tools"]}
        assert set(tools) == OWN | granted
        assert granted, "the built-in tools that change nothing are granted by default"
        harmless = {name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint}
        assert set(tools) - harmless == {"artifact_create", "state_set"}


async def test_what_was_not_granted_is_not_there(tmp_path: Path) -> None:
    async with reach(tmp_path, permissions={"history": ["page"], "mcp": ["use"]}) as house:
        run = await house.a_run()
        async with run.client() as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["history_page"]


async def test_a_runner_that_does_not_ask_or_an_agent_that_says_no_has_no_endpoint(tmp_path: Path) -> None:
    without = {name: asked for name, asked in EVERYTHING.items() if name != "mcp"}
    closed = AGENTS.replace(
        'one: {runner: "plugin:test/one/default"}', 'one: {runner: "plugin:test/one/default", run_endpoint: false}'
    )
    async with reach(tmp_path, permissions=without) as house:
        assert (await house.a_run()).at_runner.context["resources"]["mcp"] == []
    async with reach(tmp_path, agents=closed) as house:
        run = await house.a_run()
        assert (run.at_runner.context["resources"]["mcp"], run.token) == ([], "")


async def test_the_token_is_not_in_the_context_and_not_in_the_store(tmp_path: Path) -> None:
    async with reach(tmp_path) as house:
        run = await house.a_run()
        own = run.at_runner.context["resources"]["mcp"][0]
        assert (own["url"], own["token_env"]) == (f"{house.url}/mcp/run", "PADDOCK_RUN_TOKEN")
        async with run.client() as client:
            await client.list_tools()
        everything = repr(run.at_runner.context) + repr(run.at_runner.placement) + repr(await house.rows())
        everything += repr(vars(house.endpoints)) + repr(vars(house.house.store))
        assert run.token
        assert run.token not in everything


async def test_each_own_tool_does_what_its_host_call_does(tmp_path: Path) -> None:
    async with reach(tmp_path) as house:
        run = await house.a_run("tell me of giraffes")
        async with run.client() as client:
            page = json.loads(text_of(await client.call_tool("history_page", {})))
            assert [item["content"] for item in page["items"]] == ["tell me of giraffes"]
            found = json.loads(text_of(await client.call_tool("history_search", {"query": "giraffes"})))
            assert found["total_count"] == 1
            event = json.loads(text_of(await client.call_tool("current_event", {})))
            assert event["event_type"] == "message.received"
            await client.call_tool("state_set", {"key": "k", "value": {"n": 1}})
            assert json.loads(text_of(await client.call_tool("state_get", {"key": "k"})))["value"] == {"n": 1}
            made = json.loads(text_of(await client.call_tool("artifact_create", {"name": "a.md", "text": "# 你好"})))
            read = await client.call_tool("artifact_read", {"artifact_id": made["artifact_id"]})
            assert text_of(read) == "# 你好"
        assert {row.action for row in await house.rows() if row.run_id == run.run_id and row.result == "allowed"} >= {
            "mcp.open",
            "history.page",
            "history.search",
            "events.get",
            "state.set",
            "state.get",
            "artifacts.create",
            "artifacts.read_range",
        }


async def test_passages_are_found_in_the_granted_knowledge_and_in_no_other(tmp_path: Path, store: QuickStore) -> None:
    asked = {**EVERYTHING, "knowledge_bases": ["list", "retrieve"]}
    bases = await some_bases(store)
    await bases.create("default", "secret", AUDIT)
    one = AGENTS.replace('one/default"}', 'one/default", knowledge_bases: [kb]}')
    async with reach(tmp_path, permissions=asked, knowledge=bases, agents=one) as house:
        run = await house.a_run()
        async with run.client() as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert tools["knowledge_retrieve"].input_schema["properties"]["kb_id"]["enum"] == ["kb"]
            annotations = tools["knowledge_retrieve"].annotations
            assert annotations is not None
            assert annotations.read_only_hint
            found = json.loads(text_of(await client.call_tool("knowledge_retrieve", {"query_text": "trains"})))
            assert "Book trains first." in found["results"][0]["content"][0]["text"]
            other = await client.call_tool("knowledge_retrieve", {"kb_id": "secret", "query_text": "trains"})
            assert other.is_error
        rows = await house.rows("knowledge.retrieve")
        results = sorted((row.run_id, row.result) for row in rows)  # a refusal is on record at once, a reading soon
        assert results == [(run.run_id, "allowed"), (run.run_id, "unauthorized")]


async def test_a_granted_tool_is_called_under_its_own_name_and_its_call_is_on_record(tmp_path: Path) -> None:
    async with reach(tmp_path) as house:
        run = await house.a_run()
        name = run.at_runner.context["resources"]["tools"][0]["tool_name"]
        async with run.client() as client:
            answer = await client.call_tool(name, {})
        assert text_of(answer)
        [row] = await house.rows("tools.call")
        assert (row.resource, row.run_id, row.reason.endswith("(over mcp)")) == (name, run.run_id, True)


@pytest.mark.parametrize(
    ("text", "structured"),
    [("5", {"result": 5}), ("[1]", {"result": [1]}), ('{"a": 1}', None), ("five", None), ("nothing", None), ("", None)],
)
def test_text_that_is_json_and_no_object_is_said_as_an_object_too(text: str, structured: Any) -> None:
    """Gemini CLI takes such text for structured content and fails the call; seen with 0.61.0."""
    answer = said(text)
    assert answer.structured_content == structured
    assert answer.content[0].model_dump()["text"] == text


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("no_such_tool", {}, "unauthorized"),
        ("state_get", {"key": "k", "scope": "binding"}, "unauthorized"),
        ("state_get", {"key": "k" * 300}, "payload_too_large"),
        ("state_get", {"key": "k", "run_id": "another"}, "invalid_argument: state_get has no argument 'run_id'"),
        ("history_page", {"conversation_id": "another"}, "invalid_argument"),
        ("artifact_read", {"artifact_id": "another"}, "not_found"),
        ("artifact_create", {"name": "x"}, "invalid_argument"),
        ("history_search", {}, "invalid_argument"),
    ],
)  # fmt: skip
async def test_what_is_refused_is_told_to_the_model(
    tmp_path: Path, tool: str, arguments: dict[str, Any], said: str
) -> None:
    async with reach(tmp_path) as house:
        run = await house.a_run()
        async with run.client() as client:
            answer = await client.call_tool(tool, arguments)
        assert answer.is_error
        assert text_of(answer).startswith(said)


async def test_refusals_of_the_gate_are_on_record(tmp_path: Path) -> None:
    async with reach(tmp_path) as house:
        run = await house.a_run()
        async with run.client() as client:
            await client.call_tool("state_get", {"key": "k", "scope": "binding"})
            await client.call_tool("no_such_tool", {})
        told = {(row.action, row.result) for row in await house.rows() if row.run_id == run.run_id}
        assert {("state.get", "unauthorized"), ("tools.call", "unauthorized")} <= told


async def test_the_rate_of_a_run_counts_here_too(tmp_path: Path) -> None:
    async with reach(tmp_path, rates=Rates(run=(0.001, 2), plugin=None)) as house:
        run = await house.a_run()
        async with run.client() as client:
            answers = [await client.call_tool("state_get", {"key": "k"}) for _ in range(3)]
        assert [answer.is_error for answer in answers] == [False, False, True]
        assert text_of(answers[-1]).startswith("rate_limited")


@pytest.mark.parametrize("token", [None, "x" * 43, "short", "Bearer"])
async def test_nobody_is_let_in_without_the_token_of_a_live_run(tmp_path: Path, token: str | None) -> None:
    async with reach(tmp_path) as house:
        await house.a_run()
        answer = await ask(f"{house.url}/mcp/run", token)
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
        [row] = await house.rows("mcp.open")
        assert row.result == "unauthenticated"


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"origin": "https://evil.example"},
        {"host": "evil.example:80", "origin": "http://evil.example:80"},
        {"origin": "null"},
        {"origin": "http://["},
        {"origin": "["},
        {"host": "["},
    ],
)
async def test_a_web_page_is_not_let_in_even_with_a_token(tmp_path: Path, headers: dict[str, str]) -> None:
    async with reach(tmp_path) as house:
        run = await house.a_run()
        assert (await ask(run.url, run.token, **headers)).status_code == 403
        assert (await ask(run.url, run.token)).status_code == 200


async def test_the_token_dies_with_the_run_also_in_an_open_session(tmp_path: Path) -> None:
    async with reach(tmp_path) as house:
        run = await house.a_run()
        opened = await ask(run.url, run.token)
        session = {"mcp_session_id": opened.headers["mcp-session-id"]}
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
        assert (await ask(run.url, run.token, listing, **session)).status_code == 200
        run.at_runner.say("run.completed")
        assert (await ask(run.url, run.token, listing, **session)).status_code == 401


async def test_a_run_that_ends_while_the_library_is_loaded_is_not_let_in_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, admitted, library = threading.Event(), asyncio.Event(), mcp.library
    monkeypatch.setattr(mcp, "library", lambda: loaded.wait(30) and library())
    async with reach(tmp_path) as house, asyncio.timeout(30):
        run = await house.a_run()
        find = house.endpoints.find

        def watched(token: str) -> Any:
            found = find(token)
            admitted.set()
            return found

        monkeypatch.setattr(house.endpoints, "find", watched)
        asking = asyncio.ensure_future(ask(run.url, run.token))
        await admitted.wait()
        run.at_runner.say("run.completed")
        while house.endpoints.reachable:
            await asyncio.sleep(0.01)
        loaded.set()
        assert (await asking).status_code == 401
        assert house.door.servers == 0


async def test_the_session_of_one_run_means_nothing_to_another(tmp_path: Path) -> None:
    async with reach(tmp_path) as house:
        one, two = await house.a_run(), await house.a_run()
        opened = await ask(one.url, one.token)
        session = {"mcp_session_id": opened.headers["mcp-session-id"]}
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
        assert (await ask(two.url, two.token, listing, **session)).status_code == 404
        assert (await ask(one.url, one.token, listing, **session)).status_code == 200


async def test_two_runs_at_once_see_each_their_own(tmp_path: Path) -> None:
    async with reach(tmp_path) as house:
        runs = [await house.a_run(f"conversation {number}") for number in range(2)]

        async def history(run: Any) -> list[str]:
            async with run.client() as client:
                pages = [json.loads(text_of(await client.call_tool("history_page", {}))) for _ in range(5)]
                return [item["content"] for page in pages for item in page["items"]]

        told = await asyncio.gather(*(history(run) for run in runs))
        assert told == [["conversation 0"] * 5, ["conversation 1"] * 5]


class Nothing(BaseModel):
    pass


class Stuck:
    """A host call that never ends by itself."""

    def __init__(self) -> None:
        self.begun, self.cancelled = asyncio.Event(), asyncio.Event()

    async def read(self, _grant: Any, _asked: Any) -> Nothing:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()
        return Nothing()


async def test_calls_of_a_run_that_ended_are_cancelled_by_the_host(tmp_path: Path) -> None:
    stuck = Stuck()
    asked = {**EVERYTHING, "knowledge_bases": ["retrieve"]}
    instead = {"history.page": CallHandler(read=stuck.read)}
    async with reach(tmp_path, permissions=asked, instead=instead) as house, asyncio.timeout(30):
        run = await house.a_run()
        async with run.client() as client:
            calling = asyncio.ensure_future(client.call_tool("history_page", {}))
            await stuck.begun.wait()
            run.at_runner.say("run.completed")
            await stuck.cancelled.wait()
            answer = await calling
            assert answer.is_error
            assert "the run has ended" in text_of(answer)


async def test_a_call_the_client_cancels_is_cancelled_at_the_host(tmp_path: Path) -> None:
    stuck = Stuck()
    async with reach(tmp_path, instead={"history.page": CallHandler(read=stuck.read)}) as house, asyncio.timeout(30):
        run = await house.a_run()
        async with run.client() as client:
            calling = asyncio.ensure_future(client.call_tool("history_page", {}))
            await stuck.begun.wait()
            calling.cancel()
            await stuck.cancelled.wait()
            assert (await client.call_tool("state_get", {"key": "k"})).is_error is False


async def test_an_open_stream_ends_with_the_run(tmp_path: Path) -> None:
    async with reach(tmp_path) as house, asyncio.timeout(30):
        run = await house.a_run()
        opened = await ask(run.url, run.token)
        headers = {**run.headers, "mcp-session-id": opened.headers["mcp-session-id"], "accept": "text/event-stream"}
        async with httpx.AsyncClient(timeout=30) as http, http.stream("GET", run.url, headers=headers) as stream:
            assert stream.status_code == 200
            run.at_runner.say("run.completed")
            with suppress(httpx.HTTPError):  # closed or cut, but ended
                async for _ in stream.aiter_bytes():
                    pass
        assert house.endpoints.reachable == 0


async def test_too_large_a_request_is_refused_unread(tmp_path: Path) -> None:
    async with reach(tmp_path) as house:
        run = await house.a_run()
        body = {**INITIALIZE, "padding": "x" * (4 * 1024 * 1024)}
        assert (await ask(run.url, run.token, body)).status_code == 413


async def test_only_its_path_is_there(tmp_path: Path) -> None:
    async with reach(tmp_path) as house:
        run = await house.a_run()
        assert (await ask(f"{house.url}/api/v1/agents", run.token)).status_code == 404


async def test_the_way_out_of_a_sandbox_takes_no_head_without_end_and_no_requests_without_end(tmp_path: Path) -> None:
    async with reach(tmp_path) as house, run_socket(house.door, house.endpoints, tmp_path):
        assert house.endpoints.socket is not None
        for sent, status in ((b"a: b\r\n" * 50_000, b"431"), (b"not http\r\n\r\n", b"400")):
            reader, writer = await asyncio.open_unix_connection(house.endpoints.socket)
            writer.write(b"GET /mcp/run HTTP/1.1\r\n" + sent)
            async with asyncio.timeout(30):
                assert (await reader.readline()).split()[1] == status
                assert b"application/problem+json" in await reader.read()
            writer.close()
        reader, writer = await asyncio.open_unix_connection(house.endpoints.socket)
        writer.write(b"GET /mcp/run HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n" * 2000)
        async with asyncio.timeout(30):
            assert (await reader.read()).count(b"HTTP/1.1 401") <= SENT_AHEAD + 1
        writer.close()


async def test_the_way_out_of_a_sandbox_leads_to_the_endpoint(tmp_path: Path) -> None:
    async with reach(tmp_path) as house, run_socket(house.door, house.endpoints, tmp_path):
        run = await house.a_run()
        transport = httpx.AsyncHTTPTransport(uds=house.endpoints.socket)
        async with httpx.AsyncClient(transport=transport, headers=run.headers, timeout=30) as client:
            accept = {"accept": "application/json, text/event-stream"}
            answer = await client.post(run.url, json=INITIALIZE, headers=accept)
            assert (answer.status_code, "mcp-session-id" in answer.headers) == (200, True)
            assert (await client.get(f"{house.url}/api/v1/agents")).status_code == 404


async def test_what_may_have_been_done_is_not_called_worth_a_second_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unanswered(*_: Any) -> None:
        raise UnansweredWriteError("the connection was lost")

    async with reach(tmp_path) as house:
        run = await house.a_run()
        async with run.client() as client:
            asked = {"scope": "conversation", "key": "k", "value": 1}
            with monkeypatch.context() as away:
                away.setattr(house.house.store, "write", unanswered)
                told = text_of(await client.call_tool("state_set", asked))
        assert "whether it was done is not known" in told
        assert "try again" not in told
