"""Agents come from a file that says clearly what is wrong with it, and where."""

from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from host.scripted import ScriptedGateway, small_house
from paddock.host.agents.agents import Agents
from paddock.host.agents.file import AgentsFileError, defined_in, in_force, read_agents, read_file
from paddock.host.agents.files import AgentFiles, first_of
from paddock.host.calls.artifacts import Artifacts
from paddock_sdk.protocol.host_calls import ArtifactsReadRangeParams


def test_without_a_file_the_assistant_answers() -> None:
    agents = in_force(defined_in(None), 100)
    assert agents.default_agent_id == "assistant"
    assert agents.known("echo", "w")


def test_the_first_agent_is_the_default_when_none_is_named() -> None:
    agents = in_force(
        read_agents("agents:\n  b: {runner: 'plugin:x/b/default'}\n  a: {runner: 'plugin:x/a/default'}\n", "f"), 100
    )
    assert agents.default_agent_id == "b"


ONE_AGENT = "agents:\n  a: {runner: 'plugin:x/a/default'}\n"


def test_what_a_file_names_beside_its_agents_is_meant_from_where_the_file_is(tmp_path: Path) -> None:
    (tmp_path / "agents.yaml").write_text(f"""{ONE_AGENT}
models:
  fast: {{provider: openai, key: "file:keys/openai"}}
  local: {{provider: openai, base_url: "http://127.0.0.1:1/v1", key: "env:LOCAL"}}
tools: [tools/mine.py, my_package.tools]
mcp_servers:
  files: {{command: npx, env: {{TOKEN: "file:token", HOME: /home}}}}
""")
    named = read_file(tmp_path / "agents.yaml").resources
    assert {name: spec.key for name, spec in named.models.items()} == {
        "fast": f"file:{tmp_path}/keys/openai",
        "local": "env:LOCAL",
    }
    assert named.tools == (f"{tmp_path}/tools/mine.py", "my_package.tools")
    assert named.mcp_servers["files"].env == {"TOKEN": f"file:{tmp_path}/token", "HOME": "/home"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("agents: {}", "line 1: agents"),
        ("agents:\n  a:\n    description: x\n", "agents.a.runner is missing"),
        ("defualt_agent: a\nagents:\n  a: {runner: 'plugin:x/a/default'}\n", "did you mean default_agent?"),
        (
            "agents:\n  a: {runner: 'plugin:x/a/default'}\n  a: {runner: 'plugin:x/b/default'}\n",
            "line 3: a is written twice",
        ),
        ("agents:\n  'a b': {runner: 'plugin:x/a/default'}\n", "no name for an agent"),
        ("agents:\n  '': {runner: 'plugin:x/a/default'}\n", "no name for an agent"),
        ("- a\n", "must be a mapping"),
        ("agents:\n  a:\n    runner: nonsense\n", "line 3: agents.a.runner"),
        ("agents:\n  a:\n    runner: plugin:x/a/default\n    while_bussy: queue\n", "line 4: agents.a.while_bussy"),
        ("agents:\n  a:\n    runner: plugin:x/a/default\n    state_scopes: [moon]\n", "unknown state scope 'moon'"),
        ("default_agent: z\nagents:\n  a: {runner: 'plugin:x/a/default'}\n", "default_agent 'z' is not one of: a"),
        ("agents: [", "not valid YAML"),
        (f"{ONE_AGENT}models:\n  fast: {{model: m}}\n", "line 4: models.fast.provider is missing"),
        (
            f"{ONE_AGENT}models:\n  fast:\n    provider: openai\n    kee: env:K\n",
            "line 6: models.fast.kee is no key here; ",
        ),
        (f"{ONE_AGENT}models:\n  fast: {{provider: openai, key: sk-12345678}}\n", "a key itself is never written here"),
        (f"{ONE_AGENT}mcp_servers:\n  files: {{comand: npx}}\n", "did you mean command?"),
        (f"{ONE_AGENT}mcp_servers:\n  files: {{}}\n", "needs either command"),
        (f"{ONE_AGENT}tools: my_tools.py\n", "line 3: tools is wrong"),
        ("", "line 1"),
    ],
)
def test_a_wrong_file_is_one_sentence_with_the_place(text: str, says: str) -> None:
    with pytest.raises(AgentsFileError) as error:
        in_force(read_agents(text, "agents.yaml"), 100)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_says_so() -> None:
    with pytest.raises(AgentsFileError, match="cannot be read"):
        in_force(defined_in(Path("nowhere/agents.yaml")), 100)


def test_a_runner_that_may_be_addressed_by_its_own_name_is_an_agent_while_it_is_there() -> None:
    defined = read_agents("agents:\n  a: {runner: 'plugin:x/a/default'}\n", "f")
    offers: dict[str, str] = {}
    agents = in_force(defined, 100, lambda workspace: offers if workspace == "w" else {})
    assert not agents.known("greeter", "w")
    offers = {"greeter": "plugin:me/greeter/default", "a": "plugin:me/a/default"}
    assert agents.known("greeter", "w")
    assert not agents.known("greeter", "another")
    assert "greeter" in agents.for_session("w").while_busy
    binding = agents.get("a", "w")
    assert binding is not None
    assert binding.runner_id == "plugin:x/a/default", "the file wins"
    offers = {}
    assert not agents.known("greeter", "w")


# --- what the file says, and what becomes of it


@pytest.mark.parametrize(
    ("agent", "says"),
    [
        ("models: 7", "line 4: agents.a.models is wrong: must be all, a list of names"),
        ("tools: {x: [burn]}", "line 4: agents.a.tools is wrong: x: must be a list of operations out of detail, call"),
        ("events: []", "line 4: agents.a.events is wrong"),
        ("events: [schedule.triggered]", "line 4: default_agent 'a' must answer message.received"),
        ("isolation: L9", "line 4: agents.a.isolation is wrong"),
        ("time_zone: Mars/Olympus", "line 4: agents.a.time_zone is wrong: 'Mars/Olympus' is no time zone"),
        ("skills: [{nam: x}]", "line 4: agents.a.skills.0"),
        (
            "mcp: [{name: x, url: 'http://x', header: {}}]",
            "agents.a.mcp.0.header is no key here; did you mean headers?",
        ),
        ("artifacts: [burn]", "line 4: agents.a.artifacts.0 is wrong"),
        ("history_scope: world", "line 4: agents.a.history_scope is wrong"),
        ("files: [nowhere.md]", "line 4: agents.a.files 'nowhere.md' cannot be read: No such file"),
        ("deadline_seconds: 0", "line 4: agents.a.deadline_seconds is wrong"),
        ("instructions: x\n    config: {instructions: y}", "line 2: agents.a is wrong: instructions is also in config"),
    ],
)
def test_what_is_wrong_with_an_agent_is_said_with_its_line(agent: str, says: str) -> None:
    text = f"agents:\n  a:\n    runner: plugin:x/a/default\n    {agent}\n"
    with pytest.raises(AgentsFileError) as error:
        in_force(read_agents(text, "agents.yaml"), 100)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_agents_that_stay_as_they_were_stay_the_same_when_the_file_changes() -> None:
    one = read_agents("agents:\n  a: {runner: 'plugin:x/a/default'}\n  b: {runner: 'plugin:x/b/default'}\n", "f")
    two = read_agents("agents:\n  a: {runner: 'plugin:x/a/default'}\n  b: {runner: 'plugin:x/c/default'}\n", "f")
    agents = Agents(one.bindings, one.default_agent_id)
    before = {name: agents.get(name, "w") for name in ("a", "b")}
    agents.replace(two.bindings, two.default_agent_id)
    assert agents.get("a", "w") is before["a"]
    assert agents.get("b", "w") is not before["b"]


HISTORY = {"history": ["page"], "files": ["config"], "artifacts": ["metadata", "read"]}


@pytest.mark.anyio
async def test_a_run_keeps_its_grant_when_the_file_takes_it_away() -> None:
    with_history = "agents:\n  one: {runner: 'plugin:test/one/default'}\n"
    async with small_house(agents=with_history, gateway=ScriptedGateway(HISTORY)) as house:
        await house.say(thread="t")
        run = await house.gateway.next()
        without = read_agents("agents:\n  one: {runner: 'plugin:test/one/default', history: false}\n", "f")
        house.agents.replace(without.bindings, without.default_agent_id)
        live = house.runs.live.find(run.run_id)
        assert live is not None
        assert "history.page" in live.grant.actions
        run.message("done")
        run.say("run.completed")
        again = await house.say(thread="t")
        await house.gateway.next()
        live = house.runs.live.find(again.run_id)
        assert live is not None
        assert "history.page" not in live.grant.actions


@pytest.mark.anyio
async def test_a_secret_reaches_the_runner_and_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("from-the-file\n")
    monkeypatch.setenv("PADDOCK_TEST_KEY", "from-the-environment")
    text = (
        "agents:\n  one:\n    runner: plugin:test/one/default\n"
        "    config: {a: 'secret:env:PADDOCK_TEST_KEY', b: ['secret:file:key']}\n"
    )
    (tmp_path / "agents.yaml").write_text(text)
    defined = read_file(tmp_path / "agents.yaml")
    async with small_house() as house:
        house.agents.replace(defined.bindings, defined.default_agent_id)
        accepted = await house.say(thread="t")
        run = await house.gateway.next()
        assert run.context["config"] == {"a": "from-the-environment", "b": ["from-the-file"]}
        kept = [str(await house.store.audit()), str(await house.store.run(accepted.run_id))]
        kept += [str(fact) for fact in await house.store.read("t")]
        assert not [text for text in kept if "from-the" in text]
        monkeypatch.delenv("PADDOCK_TEST_KEY")
        house.agents.replace(read_file(tmp_path / "agents.yaml").bindings, "one")
        (tmp_path / "key").unlink()
        house.agents.replace([replace(one, label="new") for one in defined.bindings], "one")
        failed = await house.say(thread="u")
        assert (await house.story(failed))[-1].fact.kind == "ERROR:RUN_FAILED"
        row = await house.run(failed)
        assert row.code == "agent.config_invalid"
        assert row.message is not None
        assert row.message.endswith("set up wrongly: a secret that the agents file names cannot be had")
        refusal = house.runs.authority.refusal("one", "default")
        assert refusal is not None
        assert "the host's environment has no variable PADDOCK_TEST_KEY" in refusal.for_operators


@pytest.mark.anyio
async def test_an_agent_refuses_to_run_below_the_isolation_it_wants() -> None:
    text = "agents:\n  one: {runner: 'plugin:test/one/default', isolation: L1}\n"
    async with small_house(agents=text) as house:
        failed = await house.say(thread="t")
        await house.story(failed)
        row = await house.run(failed)
        assert (row.code, row.message) == (
            "agent.isolation_too_low",
            "agent 'one' wants isolation L1, and its runner can only have L0",
        )


@pytest.mark.anyio
async def test_a_file_of_the_settings_is_told_and_read_by_whoever_was_granted_it(tmp_path: Path) -> None:
    (tmp_path / "tone.md").write_text("Be kind.")
    text = "agents:\n  one: {runner: 'plugin:test/one/default', files: [tone.md]}\n"
    (tmp_path / "agents.yaml").write_text(text)
    files = AgentFiles()
    defined = read_file(tmp_path / "agents.yaml", files)
    async with small_house(gateway=ScriptedGateway(HISTORY)) as house:
        house.agents.replace(defined.bindings, defined.default_agent_id)
        accepted = await house.say(thread="t")
        run = await house.gateway.next()
        [told] = run.context["resources"]["files"]
        assert (told["file_name"], told["mime_type"], told["source"]) == ("tone.md", "text/markdown", "config")
        live = house.runs.live.find(accepted.run_id)
        assert live is not None
        assert live.grant.files == {told["file_id"]}
        found = await files.raw(live.grant, told["file_id"])
        assert found is not None
        assert found.content == b"Be kind."
        artifacts = Artifacts(house.store, house.blobs, clock=lambda: 0.0, raw=first_of(files.raw))
        asked = ArtifactsReadRangeParams(run_id=run.run_id, artifact_id=told["file_id"], offset=3, length=4)
        assert (await artifacts.read_range(live.grant, asked)).content_base64 == b64encode(b"kind").decode()
        assert await files.raw(msgspec.structs.replace(live.grant, files=frozenset()), told["file_id"]) is None
        (tmp_path / "tone.md").write_text("Be brief.")
        read_file(tmp_path / "agents.yaml", files)
        assert await files.raw(live.grant, told["file_id"]) == found, "another text is another file"
