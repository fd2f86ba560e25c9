"""Agent output as AG-UI events: messages, tool calls, and CUSTOM for what AG-UI has no event for.

The same for every dialect and every reader. Total: a runner's odd payload makes an odd event, never an invalid one.
"""

from typing import Any

import msgspec

from paddock.rules.log.chain import StoredFact
from paddock.rules.log.payloads import text_of
from paddock.rules.rows.rows import ERASED_WORDS

_encode = msgspec.json.Encoder().encode
Json = dict[str, Any]
Event = Json
UI_SCHEMA = "ui-schema"
STEPS = {"step.started": "STEP_STARTED", "step.finished": "STEP_FINISHED"}


def output(fact: StoredFact, _: object) -> list[Event]:
    payload = mapping(fact.read_payload())
    kind, data = payload.get("type"), mapping(payload.get("data"))
    match kind:
        case "message.completed":
            return _text_message(fact, data)
        case None:  # erased: its words are gone, but a message still has to be closed
            return _text_message(fact, data) if "message_id" in fact.read_metadata() else []
        case "tool.call.started":
            return _tool_called(fact, data)
        case "tool.call.completed":
            return [_tool_answered(fact, data)]
        case "action.requested":
            return _action_asked(fact, data)
        case _:
            return [_said_otherwise(str(kind), data)]


def _said_otherwise(kind: str, data: Json) -> Event:
    if kind in STEPS:
        return {"type": STEPS[kind], "stepName": str(data.get("step_name"))}
    if kind == "state.updated":  # the value is nobody's business but the runner's
        return custom("paddock.state.updated", {key: data.get(key) for key in ("scope", "key")})
    return custom(f"paddock.{kind}", data)


def _text_message(fact: StoredFact, data: Json) -> list[Event]:
    metadata = fact.read_metadata()
    message_id = str(metadata.get("message_id") or f"{fact.turn_id}:{fact.seq}")
    text = text_of(mapping(data.get("message")).get("content"))
    marks = {"partial": bool(metadata.get("partial")), "erased": data.get("erased") is True}
    marked = {"metadata": {name: True for name, holds in marks.items() if holds}} if any(marks.values()) else {}
    end: Event = {"type": "TEXT_MESSAGE_END", "messageId": message_id, **marked}
    shown = _shown(message_id, data)
    if metadata.get("revised"):
        return [end, custom("paddock.message.revised", {"messageId": message_id, "content": text}), *shown]
    start: Event = {"type": "TEXT_MESSAGE_START", "messageId": message_id, "role": "assistant"}
    opening = [] if "first_seq" in metadata else [start]
    rest = text[metadata.get("streamed", 0) :]
    content: Event = {"type": "TEXT_MESSAGE_CONTENT", "messageId": message_id, "delta": rest}
    return [*opening, *([content] if rest else ()), end, *shown]


def _shown(message_id: str, data: Json) -> list[Event]:
    document = mapping(data.get("ui_schema"))
    about = {"messageId": f"{message_id}:ui", "activityType": UI_SCHEMA, "content": document}
    return [{"type": "ACTIVITY_SNAPSHOT", **about}] if document else []


def _action_asked(fact: StoredFact, data: Json) -> list[Event]:
    """Report an action. One that needs approval is also shown as a tool call, where front ends put their buttons."""
    approval_id = data.get("approval_id")
    told = custom("paddock.action.requested", {name: value for name, value in data.items() if value is not None})
    if not isinstance(approval_id, str):
        return [told]
    asked: Json = {"target": data.get("target") or {}, "payload": data.get("payload") or {}}
    return [
        told,
        *_tool_called(fact, {"tool_call_id": approval_id, "tool_name": data.get("action"), "parameters": asked}),
    ]


def _tool_called(fact: StoredFact, data: Json) -> list[Event]:
    call_id = _call_id(fact, data)
    name = str(data.get("tool_name") or "unnamed")
    start: Event = {"type": "TOOL_CALL_START", "toolCallId": call_id, "toolCallName": name}
    parameters = data.get("parameters")
    args: Event = {"type": "TOOL_CALL_ARGS", "toolCallId": call_id, "delta": _as_text(parameters)}
    end: Event = {"type": "TOOL_CALL_END", "toolCallId": call_id, **_erased(data)}
    return [start, end] if parameters is None else [start, args, end]


def _tool_answered(fact: StoredFact, data: Json) -> Event:
    call_id = _call_id(fact, data)
    return {
        "type": "TOOL_CALL_RESULT",
        "messageId": f"{call_id}:result",
        "toolCallId": call_id,
        "content": _answer(data),
        "role": "tool",
        **_erased(data),
    }


def _erased(data: Json) -> Json:
    return {"metadata": {"erased": True}} if data.get("erased") is True else {}


def _answer(data: Json) -> str:
    """Return a result as text. AG-UI has no field for a tool's error, so one becomes `{"error": ...}`."""
    if data.get("erased") is True:
        return ERASED_WORDS
    if data.get("error") is not None:
        return _as_text({"error": data["error"]})
    return _as_text(data.get("result") if data.get("result") is not None else data.get("artifact"))


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else _encode(value).decode()


def _call_id(fact: StoredFact, data: Json) -> str:
    return str(data.get("tool_call_id") or f"{fact.turn_id}:{fact.seq}")


def custom(name: str, value: object) -> Event:
    return {"type": "CUSTOM", "name": name, "value": value}


def mapping(value: Any) -> Json:
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType] - a cast is a call
