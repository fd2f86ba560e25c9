"""Models, tools, knowledge and files: a run gets what every layer allows, is told of it, and of nothing else."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddock.rules.access.permissions import FILLS, BindingPolicy, RunScope, allowance, granted_files
from paddock.rules.agents.resources import (
    Choice,
    KnowledgeBaseInfo,
    ModelInfo,
    Offered,
    OfferedFile,
    ToolInfo,
    not_offered,
    place_of_model,
)
from paddock.rules.run.context import NO_STATE, ResolvedAgent, RunInput, resolved_agent, run_context, unseen_tools
from paddock_sdk.protocol.host_calls import HOST_CALLS
from paddock_sdk.protocol.manifest import AgentRunnerManifest

OFFERED = frozenset(HOST_CALLS)
ALL_ASKED: dict[str, Any] = {
    "models": ["invoke", "stream", "rerank"],
    "tools": ["detail", "call"],
    "knowledge_bases": ["list", "retrieve"],
    "files": ["config", "knowledge"],
    "artifacts": ["metadata", "read"],
    "history": ["page", "search"],
    "events": ["get", "page"],
    "platform_api": ["message.edit", "message.recall"],
    "history_scope": "workspace",
}
THERE = Offered(
    models=(ModelInfo("demo"), ModelInfo("rank", "rerank", "", frozenset({"rerank"}))),
    tools=(
        ToolInfo("now", "builtin", "", {}, read_only=True),
        ToolInfo("mail_read", "mcp", "", {}, read_only=True),
        ToolInfo("mail_send", "mcp", "", {}),
    ),
    bases=(KnowledgeBaseInfo("kb1", "One"), KnowledgeBaseInfo("kb2", "Two")),
    files=(OfferedFile("f1", kb_id="kb1"), OfferedFile("f2", kb_id="kb2")),
)


def a_manifest(asked: dict[str, Any] | None = None, **context: bool) -> AgentRunnerManifest:
    permissions = ALL_ASKED if asked is None else asked
    raw = {"id": "plugin:a/b/c", "name": "c", "label": {}, "capabilities": {}}
    return AgentRunnerManifest.model_validate(
        raw | {"permissions": permissions, "context": {"supports_history_search": True, **context}}
    )


def a_part(policy: BindingPolicy | None = None, manifest: AgentRunnerManifest | None = None) -> ResolvedAgent:
    policy, manifest = policy or BindingPolicy(), manifest or a_manifest()
    allowed = allowance(manifest, policy, OFFERED, THERE)
    files = granted_files(manifest.permissions, policy, THERE, allowed.knowledge_bases)
    wants = manifest.context.wants_static_context_refs
    return resolved_agent(allowed, {}, wants_static_refs=wants, there=THERE, files=files)


def names(part: ResolvedAgent, kind: str, key: str) -> list[str]:
    return [resource[key] for resource in part.resources[kind]]


def test_an_owner_who_says_nothing_gives_models_knowledge_and_tools_that_change_nothing() -> None:
    part = a_part()
    assert names(part, "models", "model_id") == ["demo", "rank"]
    assert names(part, "tools", "tool_name") == ["now", "mail_read"]
    assert names(part, "knowledge_bases", "kb_id") == ["kb1", "kb2"]
    assert part.allowance.history_scope == "conversation"
    assert not part.allowance.platform_actions
    assert "platform.request_action" not in part.allowance.actions


@pytest.mark.parametrize(
    ("choice", "granted"),
    [
        ("all", {"now", "mail_read", "mail_send"}),
        ("read_only", {"now", "mail_read"}),
        ({}, set()),
        ({"mail_send": None}, {"mail_send"}),
        ({"mail_*": frozenset({"call"})}, {"mail_read", "mail_send"}),
        ({"nobody": None}, set()),
        ({"now": frozenset()}, set()),
    ],
)
def test_an_owner_chooses_tools_by_word_by_name_or_by_how_they_begin(choice: Choice, granted: set[str]) -> None:
    assert set(a_part(BindingPolicy(tools=choice)).allowance.tools) == granted


def test_operations_are_those_of_every_layer() -> None:
    policy = BindingPolicy(models={"demo": frozenset({"invoke", "rerank"}), "rank": None})
    assert dict(a_part(policy).allowance.models) == {"demo": {"invoke"}, "rank": {"rerank"}}
    no_stream = OFFERED - {"models.invoke"}
    assert dict(allowance(a_manifest(), policy, no_stream, THERE).models) == {"rank": {"rerank"}}


def test_a_base_that_may_not_be_listed_is_granted_but_not_told() -> None:
    part = a_part(manifest=a_manifest({"knowledge_bases": ["retrieve"]}))
    assert dict(part.allowance.knowledge_bases) == {"kb1": {"retrieve"}, "kb2": {"retrieve"}}
    assert part.resources["knowledge_bases"] == []


def test_files_are_those_of_the_settings_and_of_the_granted_bases() -> None:
    policy = BindingPolicy(files=(OfferedFile("own", "a.md"),), knowledge_bases={"kb2": None})
    assert a_part(policy).allowance.files == {"own", "f2"}
    assert names(a_part(policy), "files", "source") == ["config", "knowledge"]
    assert a_part(policy, a_manifest({"files": ["config"]})).allowance.files == {"own"}
    assert a_part(policy, a_manifest({})).allowance.files == frozenset()


@pytest.mark.parametrize("permission", sorted(FILLS))
def test_every_permission_that_fills_resources_does(permission: tuple[str, str]) -> None:
    kind, literal = permission
    policy = BindingPolicy(files=(OfferedFile("own"),))
    asked: dict[str, Any] = {kind: [literal]} | ({"knowledge_bases": ["retrieve"]} if kind == "files" else {})
    place = FILLS[permission].removeprefix("resources.")
    assert a_part(policy, a_manifest(asked)).resources[place]
    del asked[kind]
    assert not a_part(policy, a_manifest(asked)).resources[place]


@pytest.mark.parametrize(
    ("said", "closed"),
    [
        ({"supports_history_pull": False}, {"history_page"}),
        ({"supports_history_search": False}, {"history_search"}),
        ({"supports_artifact_pull": False}, {"artifact_metadata", "artifact_read"}),
    ],
)
def test_what_a_runner_says_it_does_not_use_is_closed(said: dict[str, Any], closed: set[str]) -> None:
    before, after = a_part().available_apis, a_part(manifest=a_manifest(**said)).available_apis
    assert {name for name in before if before[name] and not after[name]} == closed


def test_history_of_the_workspace_needs_both_the_runner_and_the_owner() -> None:
    wide = BindingPolicy(history_scope="workspace")
    assert a_part(wide).allowance.history_scope == "workspace"
    assert a_part(wide, a_manifest({"history": ["page"]})).allowance.history_scope == "conversation"


def test_platform_actions_are_those_both_name() -> None:
    part = a_part(BindingPolicy(platform_actions=frozenset({"message.edit", "reaction.add"})))
    assert part.allowance.platform_actions == {"message.edit"}
    assert part.resources["platform_capabilities"] == {"actions": ["message.edit"]}


# --- the client's own tools


def a_run(part: ResolvedAgent, tools: list[Any], door: str) -> dict[str, Any]:
    grant = part.allowance.for_run(RunScope("r", "w", "u", "a", "c"), deadline_at=1.0)
    asked = RunInput("hi", {"id": "m"}, {"tools": tools}, "api", 1, 1.0, False, door=door)
    return run_context(part, grant, asked, trace_id="t", state=NO_STATE, host_version="0")


@pytest.mark.parametrize(("wanted", "door", "shown"), [(None, "ag-ui", 1), (None, "native", 0), (True, "native", 1)])
def test_the_clients_tools_are_shown_where_they_are_expected(wanted: bool | None, door: str, shown: int) -> None:
    part = a_part()
    part = resolved_agent(part.allowance, {}, wants_static_refs=True, extras=_frontend(wanted))
    context = a_run(part, [{"name": "pick", "parameters": {"type": "object"}}, {"no": "name"}, 7], door)
    assert [tool["tool_type"] for tool in context["resources"]["tools"]] == ["frontend"] * shown
    assert (context["runtime"]["static_refs"]["tool_schemas"] == part.static_refs["tool_schemas"]) is not bool(shown)


def _frontend(wanted: bool | None) -> Any:
    from paddock.rules.agents.resources import AgentExtras

    return AgentExtras(frontend_tools=wanted)


def test_a_clients_tool_never_takes_the_name_of_a_host_tool() -> None:
    part = a_part()
    tools = [{"name": "now"}, {"name": "pick"}, {"name": "pick"}]
    shown = [tool["tool_name"] for tool in a_run(part, tools, "ag-ui")["resources"]["tools"]]
    assert shown == ["now", "mail_read", "pick"]
    asked = RunInput("hi", {}, {"tools": tools}, "api", 1, 1.0, False, door="ag-ui")
    assert unseen_tools(part, asked) == ["now", "pick"]


# --- static references

POLICIES = st.builds(
    BindingPolicy,
    history=st.booleans(),
    tools=st.sampled_from(["all", "read_only", {"now": None}]),
    models=st.sampled_from(["all", {"demo": frozenset({"invoke"})}]),
    platform_actions=st.sampled_from([frozenset(), frozenset({"message.edit"})]),
    storage_areas=st.sampled_from([frozenset(), frozenset({"plugin"})]),
)


@settings(max_examples=60, deadline=None)
@given(POLICIES, POLICIES)
def test_static_references_are_equal_exactly_when_what_they_refer_to_is(one: BindingPolicy, two: BindingPolicy) -> None:
    first, second = a_part(one), a_part(two)
    assert first.static_refs == a_part(one).static_refs
    same = first.resources["tools"] == second.resources["tools"]
    assert (first.static_refs["tool_schemas"] == second.static_refs["tool_schemas"]) is same
    assert (first.static_refs["resources"] == second.static_refs["resources"]) is (first.resources == second.resources)
    for ref in first.static_refs.values():
        assert ref["hash"].removeprefix("sha256:").startswith(ref["version"])


def test_a_key_in_a_header_is_in_no_hash_and_refs_are_empty_for_who_does_not_want_them() -> None:
    from paddock.rules.agents.resources import AgentExtras

    def refs(secret: str) -> Any:
        server = {"name": "x", "url": "https://x", "headers": {"Authorization": secret}}
        return resolved_agent(
            a_part().allowance, {}, wants_static_refs=True, extras=AgentExtras(mcp=(server,))
        ).static_refs

    assert refs("one") == refs("two")
    assert a_part(manifest=a_manifest(wants_static_context_refs=False)).static_refs == {}


def test_a_tool_of_an_mcp_server_that_is_not_there_names_the_server() -> None:
    """Servers come up after the host; an agent that needs one looked broken, and nothing said why."""
    away, unknown = not_offered("tools", {"files__*": frozenset({"call"}), "add": frozenset({"call"})}, ["sub"])
    assert "'files__*' is not offered here: the MCP server 'files' is not up (yet; the log says why)" in away
    assert unknown == "tools: 'add' is not offered here"
    assert not_offered("tools", {"files__*": frozenset({"call"})}, ["files__read"]) == []


def test_the_default_model_is_offered_first_then_the_cheaper_before_the_dearer() -> None:
    prices = {"a-dear": 250.0, "b-cheap": 0.5, "c-unpriced": None, "d-free": 0.0, "e-default": 9.0}
    order = sorted(prices, key=lambda name: place_of_model(name, prices[name], "e-default"))
    assert order == ["e-default", "d-free", "b-cheap", "a-dear", "c-unpriced"]
