"""From intents to draft nodes: what an agent wants to show becomes a layout of ours. Pure; nothing is trusted yet.

Every intent is a small object with a `kind`. The drafts made here are read by `nodes.py` like any other.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

from paddock.rules.ui_schema.compile_budget import FORBIDDEN_KEYS
from paddock.rules.ui_schema.nodes import STATUSES

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
    items: object = given.get("items")
    members = cast("list[object]", items) if isinstance(items, list) else []
    children: list[object] = [item if isinstance(item, Mapping) else _line(item) for item in members]
    return _card(
        _title(given), {"type": "list", "ordered": given.get("ordered"), "children": children}, appearance="plain"
    )


def _line(text: object) -> Draft:
    return {"type": "text", "content": text}


def _table(given: Mapping[str, Any]) -> Draft:
    return _card(_title(given), {"type": "table", "columns": given.get("columns"), "rows": given.get("rows")})


def _steps(given: Mapping[str, Any]) -> Draft:
    return _card(_title(given), {"type": "steps", "items": given.get("items")})


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
    items: object = given.get("items")
    members = cast("list[object]", items) if isinstance(items, list) else [dict(given)]
    return {"type": "grid", "columns": min(3, len(members)), "children": [_medium(item) for item in members]}


def _medium(item: object) -> object:
    if not isinstance(item, Mapping):
        return item
    given = cast("Mapping[str, Any]", item)
    kind = "file" if given.get("as") == "file" else "image"
    return {"type": kind, "artifact_id": given.get("artifact_id"), "alt": given.get("alt"), "name": given.get("name")}


def _choices(given: Mapping[str, Any]) -> Draft:
    items: object = given.get("items")
    members = cast("list[object]", items) if isinstance(items, list) else []
    buttons = [_choice(item) for item in members]
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
    form = {key: given.get(key) for key in ("fields", "submit", "action")}
    return _card(_title(given), {"type": "form", **form})


def _links(given: Mapping[str, Any]) -> Draft:
    items: object = given.get("items")
    members = cast("list[object]", items) if isinstance(items, list) else []
    children = [_one_link(item) for item in members]
    return _card(_title(given, "subtitle"), {"type": "list", "children": children}, appearance="plain")


def _one_link(item: object) -> Draft:
    given = cast("Mapping[str, Any]", item) if isinstance(item, Mapping) else {"href": item}
    return {"type": "link", "href": given.get("href") or given.get("url"), "label": given.get("label")}


_INTENTS: Mapping[str, Callable[[Mapping[str, Any]], Draft]] = {
    "summary": _summary,
    "fields": _fields,
    "list": _list,
    "table": _table,
    "steps": _steps,
    "status": _status,
    "alert": _alert,
    "media": _media,
    "choices": _choices,
    "form": _form,
    "links": _links,
}
INTENTS = frozenset(_INTENTS)
