"""Settings of an agent against its runner's form: what is wrong is named, what is missing filled in, secrets kept."""

from typing import Any

import pytest

from paddock.rules.agents.config import masked, passwords_of, problems, reference, references, unmasked, with_defaults
from paddock_sdk.protocol.manifest import DynamicFormItemSchema

FORM = [
    DynamicFormItemSchema(type="string", name="tone", default="kind"),
    DynamicFormItemSchema(type="password", name="key", required=True),
    DynamicFormItemSchema(type="integer", name="rounds", default=3),
    DynamicFormItemSchema(type="number", name="heat"),
    DynamicFormItemSchema(type="boolean", name="loud", default=False),
    DynamicFormItemSchema(type="select", name="size", options=[{"value": "s"}, {"name": "m"}]),
    DynamicFormItemSchema(type="model-fallback-selector", name="model"),
    DynamicFormItemSchema(type="select-knowledge-bases", name="bases"),
    DynamicFormItemSchema(type="from-the-future", name="odd"),
]


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({}, ["config.key is missing; the runner needs it"]),
        ({"key": "k", "tonne": "x"}, ["config.tonne is no setting of this runner; did you mean tone?"]),
        ({"key": 7}, ["config.key must be text, or a reference such as env:NAME"]),
        ({"key": "k", "rounds": True}, ["config.rounds must be a whole number"]),
        (
            {"key": "k", "rounds": 1.5, "heat": "hot"},
            ["config.rounds must be a whole number", "config.heat must be a number"],
        ),
        ({"key": "k", "loud": "yes"}, ["config.loud must be true or false"]),
        ({"key": "k", "size": "xl"}, ["config.size must be one of: s, m"]),
        ({"key": "k", "model": []}, ["config.model must be a model id, or {primary, fallbacks}"]),
        ({"key": "k", "bases": "kb1"}, ["config.bases must be a list of knowledge base ids"]),
    ],
)
def test_everything_wrong_is_named(config: dict[str, Any], says: list[str]) -> None:
    assert problems(config, FORM) == says


def test_what_is_right_is_right() -> None:
    right = {"key": "k", "rounds": 2, "heat": 1, "size": "m", "model": {"primary": "a"}, "bases": [], "odd": object()}
    assert problems(right | {"instructions": "Be kind.", "context": []}, FORM) == []
    assert problems({"anything": 1}, []) == [], "a runner without a form takes anything"
    assert with_defaults({"rounds": 2}, FORM) == {"tone": "kind", "rounds": 2, "loud": False}


def test_a_reference_is_said_and_never_guessed() -> None:
    assert reference("secret:env:KEY") == reference("env:KEY", in_password=True)
    assert reference("env:KEY") is None
    assert [reference(text) for text in ("secret:", "secret:env:", "secret:moon:x", "secret", 7, None)] == [None] * 6
    found = dict(references({"a": [{"b": "secret:file:k"}], "key": "file:p", "c": "file:q"}, passwords_of(FORM)))
    assert set(found) == {("a", 0, "b"), ("key",)}


def test_secrets_are_masked_and_stay_when_the_mask_comes_back() -> None:
    config = {"key": "hush", "tone": "kind", "deep": {"x": "secret:env:KEY"}, "instructions": "Be kind."}
    shown = masked(config, FORM)
    assert shown == {"key": "***", "tone": "kind", "deep": {"x": "***"}, "instructions": "Be kind."}
    assert masked(config, None) == {"key": "***", "tone": "***", "deep": "***", "instructions": "Be kind."}
    assert unmasked({"key": "***", "tone": "short"}, config) == {"key": "hush", "tone": "short"}
