"""Agents come from a file that says clearly what is wrong with it, and where."""

from pathlib import Path

import pytest

from paddock.host.agents_file import AgentsFileError, load_agents, parse_agents


def test_without_a_file_the_echo_agent_answers() -> None:
    agents = load_agents(None)
    assert agents.default_agent_id == "echo"
    assert agents.known("echo", "w")


def test_the_first_agent_is_the_default_when_none_is_named() -> None:
    agents = parse_agents("agents:\n  b: {runner: 'plugin:x/b/default'}\n  a: {runner: 'plugin:x/a/default'}\n", "f")
    assert agents.default_agent_id == "b"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("agents: {}", "line 1: agents"),
        ("agents:\n  a:\n    description: x\n", "agents.a.runner is missing"),
        ("defualt_agent: a\nagents:\n  a: {runner: 'plugin:x/a/default'}\n", "did you mean default_agent?"),
        (
            "agents:\n  a: {runner: 'plugin:x/a/default'}\n  a: {runner: 'plugin:x/b/default'}\n",
            "line 3: a stands twice",
        ),
        ("agents:\n  'a b': {runner: 'plugin:x/a/default'}\n", "no name for an agent"),
        ("agents:\n  '': {runner: 'plugin:x/a/default'}\n", "no name for an agent"),
        ("- a\n", "must be a mapping"),
        ("agents:\n  a:\n    runner: nonsense\n", "line 3: agents.a.runner"),
        ("agents:\n  a:\n    runner: plugin:x/a/default\n    while_bussy: queue\n", "line 4: agents.a.while_bussy"),
        ("agents:\n  a:\n    runner: plugin:x/a/default\n    state_scopes: [moon]\n", "unknown state scope 'moon'"),
        ("default_agent: z\nagents:\n  a: {runner: 'plugin:x/a/default'}\n", "default_agent 'z' is not one of: a"),
        ("agents: [", "not valid YAML"),
        ("", "line 1"),
    ],
)
def test_a_wrong_file_is_one_sentence_with_the_place(text: str, says: str) -> None:
    with pytest.raises(AgentsFileError) as error:
        parse_agents(text, "agents.yaml")
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_says_so() -> None:
    with pytest.raises(AgentsFileError, match="cannot be read"):
        load_agents(Path("nowhere/agents.yaml"))


def test_a_runner_that_may_be_addressed_by_its_own_name_is_an_agent_while_it_is_there() -> None:
    agents = parse_agents("agents:\n  a: {runner: 'plugin:x/a/default'}\n", "f")
    offers: dict[str, str] = {}
    agents.offer(lambda workspace: offers if workspace == "w" else {})
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
