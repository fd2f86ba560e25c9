"""Read a person's action against the document that offers it: a button pressed, a form filled in. Pure."""

import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from paddock.rules.ui_schema.compile_budget import clean

MAX_ANSWER_CHARS = 4_000
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)

Node = Mapping[str, Any]


class InvalidAnswerError(Exception):
    """The form was filled in with a value it does not take."""


def node_of(document: Mapping[str, Any], ref: str) -> Node | None:
    """The button or form that an action belongs to."""
    return next((node for node in _nodes(document["root"]) if node.get("action", {}).get("ref") == ref), None)


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for child in node.get("children", ()):
        yield from _nodes(child)


def label_of(node: Node) -> str:
    return str(node["submit"] if node["type"] == "form" else node["label"])


def filled_in(node: Node, values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The values of a form by their labels, in the form's order. Raises InvalidAnswerError."""
    fields: Mapping[str, Node] = {field["name"]: field for field in node.get("fields", ())}
    unknown = next((name for name in values if name not in fields), None)
    if unknown is not None:
        raise InvalidAnswerError(f"there is no field {unknown[:64]!r} to fill in")
    told: list[tuple[str, Any]] = []
    for name, field in fields.items():
        value = values.get(name)
        if value is None or value == "":
            if field["required"]:
                raise InvalidAnswerError(f"{name} must be filled in")
            continue
        told.append((field["label"], _checked(name, field, value)))
    return told


def _checked(name: str, field: Node, value: object) -> object:
    match field["input"]:
        case "toggle":
            fits, what = isinstance(value, bool), "true or false"
        case "number":
            fits, what = isinstance(value, int | float) and not isinstance(value, bool), "a number"
        case "choice":
            fits, what = value in field["options"], f"one of {', '.join(field['options'])}"
        case "date":
            fits, what = isinstance(value, str) and _is_date(value), "a day such as 2026-03-15"
        case _:
            fits = isinstance(value, str) and len(value) <= MAX_ANSWER_CHARS
            what = f"a text of at most {MAX_ANSWER_CHARS} characters"
    if not fits:
        raise InvalidAnswerError(f"{name} must be {what}")
    return clean(value) if isinstance(value, str) else value


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return _DATE.fullmatch(text) is not None


def as_text(first: str, told: list[tuple[str, Any]]) -> str:
    """Put the answer into the person's words."""
    return "\n".join([first, *(f"{label}: {_shown(value)}" for label, value in told)])


def _shown(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
