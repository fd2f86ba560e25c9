"""Which models there are: those of the settings, those whose key or server is found, and always the demo model."""

import time
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest
from structlog.testing import capture_logs

from model_server import model_server
from paddock import settings
from paddock.models.keys import Key, MissingKeyError
from paddock.models.loading import ModelSettingsError, found_models, load_models
from paddock.rules.agents.specs import ModelSpec

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "models.md").read_text()


def names(specs: dict[str, ModelSpec]) -> list[str]:
    catalog = load_models(specs, clock=time.time, environ={})
    return [info.model_id for info in catalog.list("w")]


def in_a_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "paddock.toml"
    path.write_text(text)
    return path


def test_the_models_of_the_guide_are_offered_beside_the_demo_model(tmp_path: Path) -> None:
    read = settings.load(config=in_a_file(tmp_path, GUIDE.partition("```toml\n")[2].partition("```")[0]), environ={})
    assert names(read.models) == ["demo", "fast", "careful", "local", "vectors"]
    assert read.models["careful"].key == f"file:{tmp_path / 'anthropic.key'}"


@pytest.mark.anyio
async def test_a_key_that_is_not_there_is_said_at_the_start_and_not_first_to_who_asks() -> None:
    paid = ModelSpec(provider="openai", key="env:NO_SUCH_KEY")
    free = ModelSpec(provider="openai", base_url="http://127.0.0.1:9/v1")
    with capture_logs() as logged:
        await load_models({"paid": paid, "free": free}, clock=time.time, environ={}).warm_up()
    [told] = logged
    assert (told["log_level"], told["model"]) == ("warning", "paid")
    assert "NO_SUCH_KEY is not set" in told["reason"]


def test_every_provider_that_can_be_named_has_its_module() -> None:
    providers = get_args(ModelSpec.model_fields["provider"].annotation)
    assert [import_module(f"paddock.models.{name}").MODEL.__module__ for name in providers] == [
        f"paddock.models.{name}" for name in providers
    ]


def test_every_key_of_a_model_is_in_the_guide() -> None:
    assert [name for name in ModelSpec.model_fields if f"`{name}`" not in GUIDE] == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[models.a]\nprovider = 'opnai'", "models.a.provider = opnai"),
        ("[models.a]\nmodel = 'x'", "models.a.provider (from"),
        ("[models.a]\nprovider = 'openai'\nkeyy = 'x'", "is no key here (did you mean key?)"),
        ("[models.a]\nprovider = 'openai'\nkey = 'sk-secret'", "must be env:NAME or file:PATH"),
        ("[models.a]\nprovider = 'openai'\nbase_url = 'http://me:secret@x/v1'", "without a user or password"),
        ("[models.a]\nprovider = 'openai'\nretries = 50", "models.a.retries = 50"),
    ],
)
def test_a_mistake_is_one_sentence_that_names_the_place_and_never_shows_a_key(
    tmp_path: Path, text: str, sentence: str
) -> None:
    with pytest.raises(settings.SettingsError) as wrong:
        settings.load(config=in_a_file(tmp_path, text), environ={})
    assert sentence in str(wrong.value)
    assert "secret" not in str(wrong.value)


def test_names_and_fallbacks_must_make_sense() -> None:
    spec = ModelSpec(provider="openai")
    for specs, sentence in (
        ({"demo": spec}, "taken by the built-in model"),
        ({"a b": spec}, "no name for a model"),
        ({"a": ModelSpec(provider="openai", fallbacks=["b"])}, "there is no model 'b'"),
    ):
        with pytest.raises(ModelSettingsError, match=sentence):
            load_models(specs, clock=time.time, environ={})


def test_a_default_model_must_be_there_and_answer_messages() -> None:
    specs = {"a": ModelSpec(provider="openai"), "v": ModelSpec(provider="openai", type="embedding")}
    for default, sentence in (
        ("b", "default_model: there is no model 'b'; this host has: demo, a, v"),
        ("v", "default_model: 'v' does not answer messages; name one of type llm"),
    ):
        with pytest.raises(ModelSettingsError, match=sentence):
            load_models(specs, clock=time.time, environ={}, default=default)
    load_models(specs, clock=time.time, environ={}, default="a")
    load_models(specs, clock=time.time, environ={}, default="demo")


def test_keys_and_servers_that_are_there_are_offered() -> None:
    assert found_models({"OLLAMA_HOST": "127.0.0.1:9"}) == {}
    with model_server() as server:
        place = server.url.removeprefix("http://").removesuffix("/v1")
        found = found_models({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "OLLAMA_HOST": place})
        other = found_models({"ANTHROPIC_API_KEY": "k", "ANTHROPIC_MODEL": "claude-x", "OLLAMA_HOST": "10.0.0.1"})
    assert list(found) == ["gpt-5.4-mini", "claude-sonnet-5", "ollama/llama3:8b"]
    assert found["ollama/llama3:8b"].base_url == server.url
    assert {name: spec.key for name, spec in other.items()} == {"claude-x": "env:ANTHROPIC_API_KEY"}


def test_a_key_is_read_where_it_lies_and_shown_to_nobody(tmp_path: Path) -> None:
    (tmp_path / "k").write_text("sk-abc-123456\n")
    key = Key("file:k", base=tmp_path)
    assert key.read() == "sk-abc-123456"
    assert "abc" not in repr(key)
    assert key.hide("bad key sk-abc-123456, try Bearer sk-other-999999") == "bad key ***, try ***"
    for reference, cure in (
        ("env:NOPE", "NOPE is not set"),
        ("file:none", "cannot be read"),
        ("file:empty", "is empty"),
    ):
        (tmp_path / "empty").write_text(" ")
        with pytest.raises(MissingKeyError, match=cure):
            Key(reference, environ={}, base=tmp_path).read()
    assert Key(None).read() is None
