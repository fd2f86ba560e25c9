"""Hints in, document out: same hints, same bytes, and never an exception. Pure; nothing in a hint is trusted.

An agent says what it wants to show as intents, small objects with a `kind`. Each becomes a draft of ours, and
`nodes.py` reads drafts field by field.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec

from paddock.rules.ui_schema.actions import refs_in
from paddock.rules.ui_schema.compile_budget import DEFAULT, FORBIDDEN_KEYS, CompileBudget, DocumentLimits, Node
from paddock.rules.ui_schema.nodes import STATUSES, read_node
from paddock.rules.values import Value

COMPILER = "1"
"""Stored with every document; a newer compiler may compile the hints again."""
VERSION = "2.0"
_LOCALE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")
_size = msgspec.json.Encoder().encode


class Compiled(Value, frozen=True):
    """A document or None, what its buttons stand for, and what was left out and why (for the agent's author)."""

    document: Mapping[str, Any] | None
    actions: Mapping[str, Mapping[str, Any]]
    notes: tuple[str, ...]


def compile_hints(hints: object, *, locale: str = "en", limits: DocumentLimits = DEFAULT) -> Compiled:
    budget = CompileBudget(limits)
    drafts, status = drafts_of(hints)
    children: list[Node] = []
    for index, draft in enumerate(budget.items(drafts, "hints")):
        node = read_node(budget, draft, f"hints[{index}]", 1)
        if node is not None:
            children.append(node)
    if not children:
        return Compiled(None, {}, tuple(budget.notes))
    return _whole(budget, children, status or "info", locale if _LOCALE.fullmatch(locale) else "en")


def _whole(budget: CompileBudget, children: list[Node], status: str, locale: str) -> Compiled:
    document: dict[str, Any] = {"version": VERSION, "locale": locale, "status": status, "theme": "default"}
    while children:
        root: Node = children[0] if len(children) == 1 else {"type": "stack", "children": children}
        document["root"] = _with_keys(root, "r")
        if len(_size(document)) <= budget.limits.bytes:
            used = set(refs_in(document["root"])) if budget.actions else frozenset[str]()
            actions = {ref: action for ref, action in budget.actions.items() if ref in used}
            return Compiled(document, actions, tuple(budget.notes))
        budget.note(f"the document exceeds {budget.limits.bytes} bytes: its last part is left out")
        children = _shortened(children)
    return Compiled(None, {}, tuple(budget.notes))


def _shortened(children: list[Node]) -> list[Node]:
    """Without the last part; of a single one, without its last child."""
    if len(children) > 1:
        return children[:-1]
    inner: list[Node] = children[0].get("children") or []
    return [{**children[0], "children": inner[:-1]}] if len(inner) > 1 else []


def _with_keys(node: Node, key: str) -> Node:
    """Keys derive from place and kind, so that they stay the same while the document does."""
    keyed: Node = {"type": node["type"], "key": key}
    keyed |= node  # every node begins with its type, which keeps its place
    if "children" in keyed:
        keyed["children"] = [
            _with_keys(child, f"{key}.{index}{child['type'][0]}") for index, child in enumerate(keyed["children"])
        ]
    return keyed


Draft = dict[str, Any]


def drafts_of(hints: object) -> tuple[list[object], str | None]:
    """The drafts, in order, and the status of the whole when the hints name one."""
    if isinstance(hints, Mapping):
        given = cast("Mapping[str, Any]", hints)
        status = given.get("status") if given.get("kind") is None and given.get("type") is None else None
        if isinstance(inner := given.get("hints"), list):
            return [_draft(hint) for hint in cast("list[object]", inner)], _known(status)
        if "root" in given:
            return [given["root"]], _known(status)
        return [_draft(cast("object", hints))], _known(status or given.get("status"))
    if isinstance(hints, list):
        return [_draft(hint) for hint in cast("list[object]", hints)], None
    return [], None


def _known(status: object) -> str | None:
    return status if isinstance(status, str) and status in STATUSES else None


def _draft(hint: object) -> object:
    """Turn an intent into a layout; a raw node stays as it is; anything else is refused by `nodes.py`."""
    if not isinstance(hint, Mapping):
        return hint
    given = cast("Mapping[str, Any]", hint)
    make = _INTENTS.get(kind) if isinstance(kind := given.get("kind"), str) else None
    if make is None:
        return {"type": kind, **given}
    return make(given)


def _items(given: Mapping[str, Any]) -> list[object]:
    items: object = given.get("items")
    return cast("list[object]", items) if isinstance(items, list) else []


def _picked(given: Mapping[str, Any], *names: str) -> Draft:
    return {name: given.get(name) for name in names}


def _card(*children: object, appearance: str = "card") -> Draft:
    return {"type": "stack", "appearance": appearance, "children": [child for child in children if child]}


def _title(given: Mapping[str, Any], role: str = "title") -> Draft | None:
    return {"type": "text", "role": role, "content": given["title"]} if given.get("title") else None


def _summary(given: Mapping[str, Any]) -> Draft:
    status = given.get("status")
    label = given.get("label") or (status.upper() if isinstance(status, str) else None)
    badge = {"type": "badge", "label": label, "status": status} if status else None
    return _card(_title(given), badge, {"type": "text", "role": "body", "content": given.get("text")})


def _fields(given: Mapping[str, Any]) -> Draft:
    items = given.get("items")
    if isinstance(items, Mapping):
        named = cast("Mapping[object, Any]", items)
        items = [{"label": label, "value": value} for label, value in named.items() if label not in FORBIDDEN_KEYS]
    return _card(_title(given), {"type": "kv", "items": items})


def _list(given: Mapping[str, Any]) -> Draft:
    children: list[object] = [
        item if isinstance(item, Mapping) else {"type": "text", "content": item} for item in _items(given)
    ]
    return _card(
        _title(given), {"type": "list", "ordered": given.get("ordered"), "children": children}, appearance="plain"
    )


def _status(given: Mapping[str, Any]) -> Draft:
    text = {"type": "text", "role": "caption", "content": given.get("text")} if given.get("text") else None
    badge = {"type": "badge", "label": given.get("label") or given.get("status"), "status": given.get("status")}
    progress = {"type": "progress", "value": given["progress"]} if "progress" in given else None
    return {"type": "stack", "direction": "vertical", "children": [part for part in (badge, text, progress) if part]}


def _alert(given: Mapping[str, Any]) -> Draft:
    level = given.get("level") or given.get("status") or "warning"
    return _card(
        {"type": "icon", "name": level},
        _title(given, "subtitle"),
        {"type": "text", "role": "body", "content": given.get("text")},
        appearance="section",
    )


def _media(given: Mapping[str, Any]) -> Draft:
    members = _items(given) if isinstance(given.get("items"), list) else [dict(given)]
    return {"type": "grid", "columns": min(3, len(members)), "children": [_medium(item) for item in members]}


def _medium(item: object) -> object:
    if not isinstance(item, Mapping):
        return item
    given = cast("Mapping[str, Any]", item)
    kind = "file" if given.get("as") == "file" else "image"
    return {"type": kind, **_picked(given, "artifact_id", "alt", "name")}


def _choices(given: Mapping[str, Any]) -> Draft:
    buttons = [_choice(item) for item in _items(given)]
    return _card(
        _title(given, "subtitle"), {"type": "stack", "direction": "horizontal", "children": buttons}, appearance="plain"
    )


def _choice(item: object) -> Draft:
    given = cast("Mapping[str, Any]", item) if isinstance(item, Mapping) else {"label": item}
    return {
        "type": "button",
        "label": given.get("label"),
        "action": given.get("action") or {"kind": "say", "text": given.get("text") or given.get("label")},
    }


def _form(given: Mapping[str, Any]) -> Draft:
    return _card(_title(given), {"type": "form", **_picked(given, "fields", "submit", "action")})


def _links(given: Mapping[str, Any]) -> Draft:
    children = [_one_link(item) for item in _items(given)]
    return _card(_title(given, "subtitle"), {"type": "list", "children": children}, appearance="plain")


def _one_link(item: object) -> Draft:
    given = cast("Mapping[str, Any]", item) if isinstance(item, Mapping) else {"href": item}
    return {"type": "link", "href": given.get("href") or given.get("url"), "label": given.get("label")}


_INTENTS: Mapping[str, Callable[[Mapping[str, Any]], Draft]] = {
    "summary": _summary,
    "fields": _fields,
    "list": _list,
    "table": lambda given: _card(_title(given), {"type": "table", **_picked(given, "columns", "rows")}),
    "steps": lambda given: _card(_title(given), {"type": "steps", **_picked(given, "items")}),
    "status": _status,
    "alert": _alert,
    "media": _media,
    "choices": _choices,
    "form": _form,
    "links": _links,
}
INTENTS = frozenset(_INTENTS)
