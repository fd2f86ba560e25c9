"""UiSchema documents: what is hinted at is shown, what is hostile is not, and nothing raises."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddock.rules.ui_schema.actions import KINDS as KINDS_OF_ACTION
from paddock.rules.ui_schema.compile_budget import CARD, DEFAULT, DocumentLimits
from paddock.rules.ui_schema.compiler import INTENTS, compile_hints
from paddock.rules.ui_schema.export import texts_of, to_a2ui, to_text
from paddock.rules.ui_schema.nodes import NODE_TYPES
from rules.ui_schema.checking import nodes_of, problems

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.json"))


@pytest.mark.spec("ui/total")
@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_known_hints_give_the_known_document(path: Path) -> None:
    case = json.loads(path.read_text(encoding="utf-8"))
    compiled = compile_hints(case["hints"], locale=case["locale"])
    assert compiled.document == case["document"]
    assert dict(compiled.actions) == case["actions"]
    assert list(compiled.notes) == case["notes"]
    assert to_text(compiled.document or {}).splitlines() == case["text"]


def document_of(*hints: object, limits: DocumentLimits = DEFAULT) -> Any:
    return compile_hints(list(hints), limits=limits).document


def test_hints_that_say_nothing_give_no_document() -> None:
    for nothing in (None, [], {}, "", 5, [None], [[]], {"hints": []}, {"kind": "summary"}, [{"kind": "no such"}]):
        assert compile_hints(nothing).document is None


@pytest.mark.spec("ui/links")
@pytest.mark.parametrize(
    "href",
    [
        "javascript:alert(1)",
        "JAVASCRIPT:alert(1)",
        "data:text/html,x",
        "http://plain.example/",
        "https://user:secret@bank.example/",
        "https://",
        "//host/path",
        "https://a.example/\u202egpj.exe",
        "https://a.example/ with space",
        "https://[broken",
        "x" * 3000,
        None,
        7,
    ],
)
def test_a_link_that_may_not_be_opened_is_not_shown(href: object) -> None:
    assert document_of({"type": "link", "href": href, "label": "click me"}) is None


@pytest.mark.spec("ui/links")
def test_a_link_shows_the_host_it_leads_to() -> None:
    link = document_of({"type": "link", "href": "https://evil.example/login", "label": "your bank"})["root"]
    assert (link["label"], link["host"]) == ("your bank", "evil.example")


@pytest.mark.spec("ui/images")
def test_images_come_from_our_store_only() -> None:
    assert document_of({"type": "image", "url": "https://tracker.example/?secret=1"}) is None
    assert document_of({"type": "image", "artifact_id": "../../etc"}) is None
    assert document_of({"type": "image", "artifact_id": "art-1"})["root"]["artifact_id"] == "art-1"


@pytest.mark.spec("ui/text-is-text")
def test_characters_that_cannot_be_seen_are_taken_out_of_text() -> None:
    text = document_of({"type": "text", "content": "pay\u202e\u200b\x00 me\ud800"})["root"]
    assert text["content"] == "pay me"


@pytest.mark.spec("ui/actions")
def test_what_a_button_says_stays_with_the_host() -> None:
    compiled = compile_hints({"kind": "choices", "items": [{"label": "Delete", "text": "secret plan"}]})
    assert "secret plan" not in json.dumps(compiled.document)
    assert compiled.actions == {"a1": {"kind": "say", "text": "secret plan"}}


@pytest.mark.spec("ui/nodes")
def test_an_unknown_node_is_shown_as_its_fallback() -> None:
    assert document_of({"type": "hologram", "fallback": "imagine it"})["root"]["content"] == "imagine it"


@pytest.mark.spec("ui/names")
@pytest.mark.parametrize("name", ["__proto__", "constructor", "prototype"])
def test_names_that_would_change_a_clients_objects_are_never_read(name: str) -> None:
    shown = json.dumps(document_of({"kind": "fields", "items": {name: "polluted", "colour": "green"}}))
    assert "green" in shown
    assert name not in shown
    assert "polluted" not in shown


@pytest.mark.spec("ui/keys")
def test_keys_of_a_part_do_not_change_when_later_parts_do() -> None:
    first = document_of({"kind": "summary", "text": "a"}, {"kind": "list", "items": ["x"]})
    second = document_of({"kind": "summary", "text": "a"}, {"kind": "list", "items": ["x", "y"]})
    assert first["root"]["children"][0] == second["root"]["children"][0]


@pytest.mark.spec("ui/limits")
def test_a_document_that_is_too_large_loses_its_last_parts() -> None:
    rows = [{"kind": "summary", "text": f"{index} " + "x" * 3000} for index in range(6)]
    compiled = compile_hints(rows, limits=DocumentLimits(bytes=8_000))
    assert compiled.document is not None
    assert len(json.dumps(compiled.document)) <= 8_000
    assert any("left out" in note for note in compiled.notes)


def test_a_number_nobody_can_read_raises_nothing() -> None:
    assert compile_hints({"kind": "fields", "items": {"n": 10**6000}}).document is None
    assert compile_hints({"kind": "summary", "status": 10**6000, "text": "x"}).document is not None


def test_two_hundred_nodes_are_compiled_within_two_milliseconds() -> None:
    lines = [{"type": "text", "content": f"line {index} of some length"} for index in range(9)]
    hints = [{"type": "stack", "appearance": "card", "children": lines}] * 20
    took: list[float] = []
    for _ in range(50):
        begun = time.perf_counter()
        document = compile_hints(hints).document
        took.append(time.perf_counter() - begun)
        assert document is not None
        assert sum(1 for _ in nodes_of(document["root"])) == 201  # and the stack around them
    assert min(took) < 0.002


def test_the_page_names_every_intent_every_node_and_every_limit() -> None:
    page = (Path(__file__).parents[3] / "docs/spec/ui-schema.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `([a-z]+)` \|", page, re.MULTILINE))
    assert rows == INTENTS | NODE_TYPES | KINDS_OF_ACTION
    for limit in (DEFAULT.nodes, DEFAULT.children, DEFAULT.text_chars, DEFAULT.all_chars, DEFAULT.url_chars):
        assert f"{limit:,}" in page
    [example] = re.findall(r"## The document\n\n```json\n(.*?)```", page, re.DOTALL)
    hint = {"kind": "summary", "title": "Meeting", "text": "Tomorrow at nine", "status": "success"}
    assert compile_hints(hint).document == json.loads(example)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
    max_leaves=25,
)
KINDS = st.sampled_from(
    [
        "summary",
        "fields",
        "list",
        "table",
        "steps",
        "status",
        "alert",
        "media",
        "choices",
        "form",
        "links",
        "stack",
        "grid",
        "collapse",
        "text",
        "badge",
        "icon",
        "image",
        "file",
        "link",
        "kv",
        "progress",
        "chart",
        "button",
    ]
)
NAMES = st.sampled_from(
    [
        "kind",
        "type",
        "title",
        "text",
        "items",
        "children",
        "columns",
        "rows",
        "label",
        "value",
        "status",
        "state",
        "action",
        "href",
        "fields",
        "options",
        "input",
        "name",
        "artifact_id",
        "content",
        "role",
        "fallback",
        "hints",
        "root",
        "submit",
        "points",
        "progress",
        "__proto__",
        "constructor",
    ]
)
HINT = st.recursive(
    JSON,
    lambda inner: st.dictionaries(NAMES, inner | KINDS, max_size=6) | st.lists(inner, max_size=6),
    max_leaves=40,
)


@pytest.mark.spec("ui/total")
@pytest.mark.spec("ui/limits")
@settings(max_examples=400, deadline=None)
@given(HINT, st.sampled_from([DEFAULT, CARD, DocumentLimits(depth=2, nodes=5, all_chars=60, bytes=900)]))
def test_whatever_an_agent_hints_the_document_is_valid_and_within_its_limits(
    hint: object, limits: DocumentLimits
) -> None:
    compiled = compile_hints(hint, limits=limits)
    again = compile_hints(hint, limits=limits)
    assert compiled.document == again.document
    if compiled.document is None:
        assert not compiled.actions
        return
    assert problems(compiled.document, limits) == []
    assert isinstance(to_text(compiled.document), str)
    refs = {node["action"]["ref"] for node in nodes_of(compiled.document["root"]) if "ref" in node.get("action", {})}
    assert refs == set(compiled.actions)


@pytest.mark.spec("ui/other-forms")
@settings(max_examples=150, deadline=None)
@given(HINT)
def test_an_a2ui_surface_names_only_components_it_has(hint: object) -> None:
    document = compile_hints(hint).document
    if document is None:
        return
    operations = to_a2ui(document, "surface")
    components = operations[1]["updateComponents"]["components"]
    ids = [component["id"] for component in components]
    assert len(ids) == len(set(ids))
    assert ids[0] == "root"
    for component in components:
        for child in [*component.get("children", []), *([component["child"]] if "child" in component else [])]:
            assert child in ids
    assert all(isinstance(text, str) for text in texts_of(operations))
