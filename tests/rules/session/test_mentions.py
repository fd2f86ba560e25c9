"""What counts as calling somebody by name at the beginning of a text."""

import pytest

from paddock.rules.session.mentions import leading_mention
from rules.session.playing import spec

AGENTS = frozenset({"ada", "code-helper", "小明"})


@spec("route/leading-name")
@pytest.mark.parametrize(
    ("text", "agent"),
    [
        ("@ada hello", "ada"),
        ("@ada", "ada"),
        ("@ada: hello", "ada"),
        ("@code-helper, look", "code-helper"),
        ("@小明，你好", "小明"),
        ("@adam hello", None),
        ("@Ada hello", None),
        ("hello @ada", None),
        (" @ada hello", None),
        ("@ ada", None),
        ("@", None),
        ("", None),
        ("@everyone", None),
        ("@ada@example.org", None),
    ],
)
def test_only_the_name_of_an_agent_at_the_very_beginning_is_a_mention(text: str, agent: str | None) -> None:
    assert leading_mention(text, AGENTS) == agent
