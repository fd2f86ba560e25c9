"""Buttons and forms of a document, and how a person's action is read against them. Pure.

A button names its action by a reference; what it says or answers is kept on the server and used once. Only what a
client does by itself, opening a link or copying a text, is written into the document.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from paddock.rules.ui_schema.compile_budget import CompileBudget, Node, clean, host_of


def refs_in(node: Mapping[str, Any]) -> Iterator[str]:
    if "ref" in node.get("action", {}):
        yield node["action"]["ref"]
    for child in node.get("children", ()):
        yield from refs_in(child)


def renamed(document: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {**document, "root": _renamed(document["root"], names)}


def _renamed(node: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    changed = dict(node)
    action = node.get("action", {})
    if "ref" in action:
        changed["action"] = {**action, "ref": names[action["ref"]]}
    if "children" in node:
        changed["children"] = [_renamed(child, names) for child in node["children"]]
    return changed


KINDS = frozenset({"say", "answer", "open", "copy"})
INPUTS = frozenset({"text", "number", "choice", "toggle", "date"})
MAX_ANSWER_CHARS = 4_000


def button_of(budget: CompileBudget, given: dict[str, Any], where: str, _depth: int) -> Node | None:
    label = budget.text(given.get("label"), f"{where}.label", limit=80)
    if not label or not budget.spend("buttons", where):
        return None
    action = _action(budget, given.get("action"), f"{where}.action", label)
    return {"type": "button", "label": label, "action": action} if action else None


def form_of(budget: CompileBudget, given: dict[str, Any], where: str, _depth: int) -> Node | None:
    """Inputs with one button below them; without either there is nothing to fill in."""
    fields: list[Node] = []
    for index, draft in enumerate(budget.items(given.get("fields"), f"{where}.fields")):
        field = _input(budget, draft, f"{where}.fields[{index}]")
        if field is not None:
            fields.append(field)
    submit = budget.text(given.get("submit"), f"{where}.submit", limit=80) or "OK"
    if not fields or not budget.spend("buttons", where):
        return None
    action = _action(budget, given.get("action") or {"kind": "say"}, f"{where}.action", submit)
    if action is None or action["kind"] not in ("say", "answer"):
        return None
    return {"type": "form", "fields": fields, "submit": submit, "action": action}


def _action(budget: CompileBudget, draft: object, where: str, label: str) -> Node | None:
    given = budget.mapping(draft, where)
    if given is None:
        return None
    kind = budget.one_of(given.get("kind"), KINDS, None, f"{where}.kind")
    if kind == "open":
        href = budget.link(given.get("href"), f"{where}.href")
        return {"kind": "open", "href": href, "host": host_of(href)} if href else None
    if kind == "copy":
        text = budget.text(given.get("text"), f"{where}.text")
        return {"kind": "copy", "text": text} if text else None
    if kind == "say":
        return _kept(budget, {"kind": "say", "text": budget.text(given.get("text"), f"{where}.text") or label})
    if kind == "answer":
        interrupt = budget.name(given.get("interrupt_id"), f"{where}.interrupt_id")
        payload = {"approved": given.get("approved") is True}  # no more, so that an agent hides nothing in an answer
        answer = {"kind": "answer", "interrupt_id": interrupt, "payload": payload}
        return _kept(budget, answer) if interrupt else None
    return None


def _kept(budget: CompileBudget, action: dict[str, Any]) -> Node:
    ref = f"a{len(budget.actions) + 1}"
    budget.actions[ref] = action
    return {"kind": action["kind"], "ref": ref}


def _input(budget: CompileBudget, draft: object, where: str) -> Node | None:
    given = budget.mapping(draft, where)
    if given is None or not budget.spend("inputs", where):
        return None
    name, label = (
        budget.name(given.get("name"), f"{where}.name"),
        budget.text(given.get("label"), f"{where}.label", limit=200),
    )
    kind = budget.one_of(given.get("input"), INPUTS, "text", f"{where}.input")
    if name is None:
        return None
    field: Node = {"name": name, "label": label or name, "input": kind, "required": given.get("required") is True}
    if kind == "choice":
        options = [
            budget.text(option, f"{where}.options", limit=200) for option in budget.items(given.get("options"), where)
        ]
        field["options"] = [option for option in options if option]
        return field if field["options"] else None
    return field


_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


class InvalidAnswerError(Exception):
    """The form was filled in with a value it does not take."""


def node_of(document: Mapping[str, Any], ref: str) -> Mapping[str, Any] | None:
    return next((node for node in _nodes(document["root"]) if node.get("action", {}).get("ref") == ref), None)


def _nodes(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for child in node.get("children", ()):
        yield from _nodes(child)


def label_of(node: Mapping[str, Any]) -> str:
    return str(node["submit"] if node["type"] == "form" else node["label"])


def filled_in(node: Mapping[str, Any], values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The values of a form by their labels, in the form's order. Raises InvalidAnswerError."""
    fields: Mapping[str, Mapping[str, Any]] = {field["name"]: field for field in node.get("fields", ())}
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


def _checked(name: str, field: Mapping[str, Any], value: object) -> object:
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
    return "\n".join([first, *(f"{label}: {_shown(value)}" for label, value in told)])


def _shown(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
