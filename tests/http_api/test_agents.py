"""Agents over HTTP: seen by everybody, made and changed by administrators, each workspace for itself."""

from typing import Any

import pytest

from host.scripted import manifest_of
from http_api.doors import SECRET, Doors, a_body, assert_problem, open_doors
from http_api.test_openapi import check, described
from paddock.host.agents.stored import StoredAgents
from paddock.storage.files.cluster_secret import Sealer
from paddock_sdk.protocol.manifest import AgentRunnerManifest

pytestmark = pytest.mark.anyio

RUNNER = "plugin:test/three/default"
FORM = [
    {"type": "password", "name": "api_key", "required": True},
    {"type": "integer", "name": "rounds", "default": 3},
    {"type": "select", "name": "mood", "options": [{"value": "kind"}, {"value": "short"}]},
]
WRITER = {"runner": RUNNER, "label": "Writer", "config": {"api_key": "hush-hush", "mood": "kind"}}


def with_a_form(doors: Doors) -> None:
    """The runners of the house declare settings."""

    async def manifest(runner_id: str, _workspace: str = "") -> AgentRunnerManifest:
        if runner_id in doors.gateway.missing:
            return await type(doors.gateway).manifest(doors.gateway, runner_id)
        raw = manifest_of(runner_id, doors.gateway.permissions).model_dump()
        more = {"config_schema": FORM if runner_id == RUNNER else [], "description": {"en_US": "Writes."}}
        return AgentRunnerManifest.model_validate(raw | more)

    doors.gateway.manifest = manifest  # type: ignore[method-assign]


async def put(doors: Doors, name: str, body: Any, headers: dict[str, str] | None = None) -> Any:
    return await doors.client.put(f"/api/v1/agents/{name}", json=body, headers=headers)


@pytest.mark.spec("http/agent-put")
async def test_an_agent_is_made_changed_and_answers() -> None:
    async with open_doors() as doors:
        with_a_form(doors)
        made = await put(doors, "writer", WRITER)
        assert (made.status_code, made.json()["origin"], made.json()["health"]) == (201, "api", "ok")
        changed = await put(doors, "writer", WRITER | {"description": "Writes letters."})
        assert (changed.status_code, changed.json()["description"]) == (200, "Writes letters.")
        accepted = await doors.post(a_body(), params={"agent": "writer"})
        run = await doors.gateway.next()
        assert accepted.status_code == 202
        assert run.context["config"] == {"api_key": "hush-hush", "mood": "kind", "rounds": 3}


@pytest.mark.spec("http/agent-seen")
async def test_nobody_but_the_runner_sees_a_secret() -> None:
    async with open_doors() as doors:
        with_a_form(doors)
        server = {"name": "tools", "url": "https://example.org/mcp", "headers": {"Authorization": "Bearer hush-hush"}}
        answer = await put(doors, "writer", WRITER | {"mcp": [server]})
        seen = (await doors.client.get("/api/v1/agents/writer")).json()
        assert seen["definition"]["config"] == {"api_key": "***", "mood": "kind"}
        assert seen["definition"]["mcp"][0]["headers"] == {"Authorization": "***"}
        assert seen["runnerDescription"] == {"en_US": "Writes."}
        await doors.post(a_body(), params={"agent": "writer"})
        run = await doors.gateway.next()
        assert run.context["resources"]["mcp"][0]["headers"] == {"Authorization": "Bearer hush-hush"}
        said = [answer.text, (await doors.client.get("/api/v1/agents")).text, str(await doors.house.store.audit())]
        said.append(str(await doors.row(run.run_id)))
        assert not [text for text in said if "hush" in text]


@pytest.mark.spec("http/agent-put")
async def test_a_secret_that_comes_back_masked_stays_as_it_was() -> None:
    async with open_doors() as doors:
        with_a_form(doors)
        await put(doors, "writer", WRITER)
        seen = (await doors.client.get("/api/v1/agents/writer")).json()["definition"]
        assert (await put(doors, "writer", seen | {"label": "Poet"})).status_code == 200
        await doors.post(a_body(), params={"agent": "writer"})
        assert (await doors.gateway.next()).context["config"]["api_key"] == "hush-hush"
        refused = await put(doors, "other", seen)
        assert_problem(refused, 422, "invalid_argument", "config.api_key is masked and was never set")


@pytest.mark.spec("http/agent-put")
@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "runner is missing"),
        ({"runner": "nonsense"}, "runner is wrong"),
        (WRITER | {"lable": "x"}, "unknown field 'lable'; did you mean label?"),
        (WRITER | {"tools": ["x"], "models": 7}, "models is wrong: must be all"),
        (WRITER | {"knowledge_bases": {"kb": ["burn"]}}, "knowledge_bases is wrong: kb: must be a list of operations"),
        (WRITER | {"events": ["Message Received"]}, "events is wrong: 'Message Received' is no event type"),
        (WRITER | {"mcp": [{"name": "x", "url": "ftp://x"}]}, "mcp.0.url is wrong"),
        (
            WRITER | {"mcp": [{"name": "x", "url": "http://x", "heders": {}}]},
            "mcp.0.heders is no key here; did you mean",
        ),
        (WRITER | {"config": {"api_key": "secret:env:HOME"}}, "config.api_key: references to secrets"),
        (
            WRITER | {"config": {"api_key": "file:/etc/passwd"}},
            "agent 'x' is set up wrongly: config.api_key: references",
        ),
        (
            WRITER | {"config": {"api_key": "k", "deep": [{"x": "secret:file:/etc/passwd"}]}},
            "config.deep.0.x: references",
        ),
        (WRITER | {"config": {}}, "agent 'x' is set up wrongly: config.api_key is missing"),
        (
            WRITER | {"config": {"api_key": "k", "rounds": "7"}},
            "agent 'x' is set up wrongly: config.rounds must be a whole",
        ),
        (
            WRITER | {"config": {"api_key": "k", "mood": "grim"}},
            "agent 'x' is set up wrongly: config.mood must be one of",
        ),
        (WRITER | {"config": {"api_key": "k", "round": 7}}, "agent 'x' is set up wrongly: config.round is no setting"),
        (
            WRITER | {"instructions": "a", "config": {"api_key": "k", "instructions": "b"}},
            "the agent is wrong: instruct",
        ),
        ([], "the body must be a JSON object"),
    ],
)
async def test_what_is_wrong_is_said_with_its_place(body: Any, says: str) -> None:
    async with open_doors() as doors:
        with_a_form(doors)
        assert_problem(await put(doors, "x", body), 422, "invalid_argument", says)
        assert (await doors.client.get("/api/v1/agents/x")).status_code == 404
        assert list(await doors.house.store.stored_agents()) == []


@pytest.mark.spec("http/agent-put")
async def test_the_agents_of_the_file_win_and_are_changed_there() -> None:
    async with open_doors() as doors:
        for answer in (await put(doors, "one", WRITER), await doors.client.delete("/api/v1/agents/one")):
            assert_problem(answer, 409, "conflict", "agent 'one' is from the agents file, which wins; change it there")
        assert_problem(await put(doors, "a b", WRITER), 422, "invalid_argument", "'a b' is no name for an agent")
        rows = await doors.house.store.audit()
        assert [(row.action, row.result) for row in rows] == [
            ("agents.put", "invalid_argument"),
            ("agents.delete", "conflict"),
            ("agents.put", "conflict"),
        ]


@pytest.mark.spec("http/agent-put")
async def test_each_workspace_has_its_own_agents() -> None:
    async with open_doors() as doors:
        ann, bob = await doors.key_for("ann", "acme", "admin"), await doors.key_for("bob", "globex", "admin")
        assert (await put(doors, "writer", {"runner": RUNNER}, ann)).status_code == 201
        assert (await doors.client.get("/api/v1/agents/writer", headers=bob)).status_code == 404
        assert (await doors.client.delete("/api/v1/agents/writer", headers=bob)).status_code == 404
        assert (await doors.post(a_body(), params={"agent": "writer"}, headers=bob)).status_code == 404
        listed = (await doors.client.get("/api/v1/agents", headers=bob)).json()["agents"]
        assert [agent["agentId"] for agent in listed] == ["one", "two"]
        assert (await put(doors, "writer", {"runner": "plugin:test/four/default"}, bob)).status_code == 201
        mine = (await doors.client.get("/api/v1/agents/writer", headers=ann)).json()
        assert mine["runnerId"] == RUNNER
        [row] = [row for row in await doors.house.store.audit() if row.workspace_id == "acme"]
        assert (row.actor, row.action, row.resource, row.result) == ("user:ann", "agents.put", "writer", "allowed")


@pytest.mark.spec("http/agent-put")
async def test_only_administrators_change_agents_and_see_what_is_wrong() -> None:
    async with open_doors() as doors:
        user, admin = await doors.key_for("ann", "acme"), await doors.key_for("ada", "acme", "admin")
        assert (await put(doors, "writer", WRITER, user)).status_code == 403
        assert (await doors.client.delete("/api/v1/agents/writer", headers=user)).status_code == 403
        doors.gateway.missing.add(RUNNER)
        await put(doors, "writer", {"runner": RUNNER}, admin)
        seen = [(await doors.client.get("/api/v1/agents/writer", headers=who)).json() for who in (user, admin)]
        assert [one["health"] for one in seen] == ["problem", "problem"]
        assert "problem" not in seen[0]
        assert "definition" not in seen[0]
        assert seen[1]["problem"] == f"no runner {RUNNER}"


@pytest.mark.spec("http/agent-delete")
async def test_a_deleted_agent_is_gone_and_its_run_goes_on() -> None:
    async with open_doors() as doors:
        await put(doors, "writer", {"runner": RUNNER})
        await doors.post(a_body(), params={"agent": "writer"})
        run = await doors.gateway.next()
        assert (await doors.client.delete("/api/v1/agents/writer")).status_code == 204
        assert (await doors.client.get("/api/v1/agents/writer")).status_code == 404
        assert_problem(
            await doors.client.delete("/api/v1/agents/writer"), 404, "not_found", "there is no agent 'writer'"
        )
        await doors.answered(run, "still here")
        assert (await doors.row(run.run_id)).status == "completed"


@pytest.mark.spec("http/agent-put")
async def test_stored_agents_are_there_again_after_a_start() -> None:
    async with open_doors() as doors:
        await put(doors, "writer", {"runner": RUNNER, "models": {"demo": ["invoke"]}, "tools": "all"})
        store = doors.house.store
    async with open_doors(store) as again:
        sealing = Sealer(SECRET)
        await StoredAgents(again.house.agents, kept=store, records=store, clock=lambda: 0.0, sealing=sealing).load()
        binding = again.house.agents.get("writer", "default")
        assert binding is not None
        assert binding.origin == "api"
        assert (binding.policy.models, binding.policy.tools) == ({"demo": frozenset({"invoke"})}, "all")
        assert not again.house.agents.known("writer", "another")


@pytest.mark.parametrize(
    "said", [{"working_directory": "/"}, {"readable": ["/"]}, {"skills": [{"name": "s", "path": "/"}]}]
)
async def test_an_agent_of_the_api_names_no_directory_of_the_hosts_machine(said: dict[str, Any]) -> None:
    async with open_doors() as doors:
        answer = await put(doors, "writer", {"runner": RUNNER, **said})
        assert (answer.status_code, "agents file only" in answer.json()["detail"]) == (422, True)


SERVER = {"transport": "http"}
FIELDS = [{"type": "json", "name": "launcher", "host_only": True}, {"type": "string", "name": "url", "host_only": True}]


def with_marks(doors: Doors) -> None:
    async def manifest(runner_id: str, _workspace: str = "") -> AgentRunnerManifest:
        raw = manifest_of(runner_id, doors.gateway.permissions).model_dump()
        return AgentRunnerManifest.model_validate(raw | {"config_schema": FIELDS})

    doors.gateway.manifest = manifest  # type: ignore[method-assign]


@pytest.mark.spec("http/agent-host-only")
@pytest.mark.spec("wire/host-only")
async def test_what_names_a_program_or_an_address_is_refused_over_the_api_with_the_file_to_write_it_in() -> None:
    async with open_doors() as doors:
        with_marks(doors)
        for config in (
            {"launcher": ["sh"]},
            {"url": "https://example.net/x"},
            {"url": "https://example.org.evil.test"},
        ):
            answer = await put(doors, "x", {"runner": RUNNER, "config": config})
            assert_problem(
                answer, 422, "invalid_argument", f"agent 'x' is set up wrongly: config.{next(iter(config))} names"
            )
            assert "write this agent in the agents file (agents.yaml)" in answer.json()["detail"]
        assert (
            await put(doors, "x", {"runner": RUNNER, "config": {"url": "https://example.org/x"}})
        ).status_code == 201


@pytest.mark.spec("http/agent-host-only")
async def test_an_agent_whose_runner_was_not_known_when_it_was_made_is_judged_before_it_runs() -> None:
    async with open_doors() as doors:
        doors.gateway.missing.add(RUNNER)
        assert (await put(doors, "x", {"runner": RUNNER, "config": {"launcher": ["sh"]}})).status_code == 201
        doors.gateway.missing.clear()
        with_marks(doors)
        seen = (await doors.client.get("/api/v1/agents/x")).json()
        assert (seen["health"], "in the agents file" in seen["problem"]) == ("problem", True)
        accepted = await doors.post(a_body(), params={"agent": "x"})
        await doors.ended(accepted.json()["taskId"])
        run = (await doors.client.get(f"/api/v1/agent/runs/{accepted.json()['taskId']}")).json()
        assert (run["status"], run["code"]) == ("failed", "agent.config_invalid")


@pytest.mark.spec("http/agent-host-only")
async def test_runs_of_an_agent_of_the_api_are_told_to_reach_public_addresses_only() -> None:
    async with open_doors() as doors:
        await put(doors, "x", {"runner": RUNNER})
        for agent, reach in (("x", "public"), ("one", None)):
            await doors.post(a_body(), params={"agent": agent})
            assert (await doors.gateway.next()).context["runtime"].get("reach") == reach


@pytest.mark.spec("http/agent-put")
async def test_a_secret_is_asked_for_again_when_the_address_beside_it_changes_or_nobody_knows_which_it_is() -> None:
    async with open_doors() as doors:
        doors.gateway.missing.add(RUNNER)
        await put(doors, "x", {"runner": RUNNER, "config": {"place": "a", "key": "hush"}})
        again = await put(doors, "x", {"runner": RUNNER, "config": {"place": "b", "key": "***"}})
        assert_problem(again, 422, "invalid_argument", "config.key is masked, and the program or the address")
        same = await put(doors, "x", {"runner": RUNNER, "label": "X", "config": {"place": "***", "key": "***"}})
        assert same.status_code == 200


@pytest.mark.spec("http/agent-seen")
async def test_what_a_run_would_be_told_is_shown_without_the_headers_of_its_servers() -> None:
    async with open_doors() as doors:
        server = {"name": "tools", "url": "https://example.org/mcp", "headers": {"Authorization": "Bearer hush-hush"}}
        assert (await put(doors, "writer", {"runner": RUNNER, "mcp": [server]})).status_code == 201
        shown = await doors.client.get("/api/v1/agents/writer/allowance")
        assert shown.json()["context"]["resources"]["mcp"] == [server | SERVER | {"headers": {"Authorization": "***"}}]
        assert "hush" not in shown.text


@pytest.mark.spec("http/agents-new")
async def test_a_new_agent_takes_no_existing_ones_place() -> None:
    async with open_doors() as doors:
        boss = await doors.key_for("eve", role="admin")
        path, anew = "/api/v1/agents/mine", {**boss, "If-None-Match": "*"}
        body = {"runner": "plugin:test/one/default", "label": "First"}
        assert (await doors.client.put(path, json=body, headers=anew)).status_code == 201
        second = await doors.client.put(path, json={**body, "label": "Second"}, headers=anew)
        assert_problem(second, 409, "conflict", "there is an agent 'mine' already")
        assert (await doors.client.get(path, headers=boss)).json()["label"] == "First"
        assert (await doors.client.put(path, json={**body, "label": "Second"}, headers=boss)).status_code == 200
        odd = await doors.client.put(path, json=body, headers={**boss, "If-None-Match": '"etag"'})
        assert_problem(odd, 422, "invalid_argument", "If-None-Match must be *")


@pytest.mark.spec("http/resources")
async def test_an_administrator_sees_all_that_agents_can_be_given_the_default_model_first() -> None:
    async with open_doors() as doors:
        boss = await doors.key_for("eve", role="admin")
        told = await doors.client.get("/api/v1/resources", headers=boss)
        check(described("/api/v1/resources", "GET", 200), told.json())
        assert told.json()["models"][0] == {"modelId": "demo", "type": "llm", "provider": "paddock", "default": True}
        tools = {tool["name"]: tool["readOnly"] for tool in told.json()["tools"]}
        assert (tools["calendar_read"], tools["calendar_write"]) == (True, False)
        refused = await doors.client.get("/api/v1/resources", headers=await doors.key_for("ann"))
        assert_problem(refused, 403, "unauthorized", "this needs a key with the role admin")
