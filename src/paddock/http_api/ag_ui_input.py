"""What an AG-UI client sends, read kindly: unknown fields, parts and roles are passed over, wrong known values refused.

Clients send the whole conversation every time. The host keeps its own copy, so of that only the last user message, what
follows it and the client's own instructions (system, developer) are taken; the rest would be stored again every turn.
Parts that are not text are passed over: the host never fetches what a client points at.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

from paddock.rules.client_time import wrong_part
from paddock.rules.run_input import decode_object
from paddock.rules.run_input_shapes import InvalidInputError, require
from paddock.rules.values import Value

MAX_BODY_BYTES = 8 * 1024 * 1024
MAX_MESSAGES = 2_000
MAX_NAME = 512
TOO_LARGE = f"the body exceeds {MAX_BODY_BYTES} bytes"
INSTRUCTIONS = frozenset({"system", "developer"})

Json = dict[str, Any]


class AgUiInput(Value, frozen=True):
    """One run as an AG-UI client asks for it. Nobody vouches for what is in `params`."""

    thread_name: str
    run_id: str
    dialect: str
    message: Mapping[str, Any]
    text: str
    params: Mapping[str, Any]
    document: Mapping[str, Any]


def read_ag_ui_input(body: bytes, is_time_zone: Callable[[str], bool]) -> AgUiInput:
    """Raises InvalidInputError with a sentence about the first wrong value."""
    document = decode_object(body, "the body")
    messages = _messages(document)
    last = _last_user(messages)
    message, text = _message(messages[last], f"messages[{last}]")
    return AgUiInput(
        thread_name=_name(document, "threadId"),
        run_id=_name(document, "runId"),
        dialect=_dialect(document.get("protocolVersion")),
        message=message,
        text=text,
        params=_params(document, _kept(messages, last), is_time_zone),
        document=document,
    )


def _name(document: Json, field: str) -> str:
    given = document.get(field)
    require(
        isinstance(given, str) and 0 < len(given) <= MAX_NAME, f"{field} must be a string of 1 to {MAX_NAME} characters"
    )
    return cast("str", given)


def _dialect(version: object) -> str:
    """Clients that say no version are from before there was one."""
    require(version is None or isinstance(version, str), "protocolVersion must be a string")
    return "0" if version is None or cast("str", version).startswith("0.") else "1"


def _messages(document: Json) -> list[Json]:
    given = document.get("messages")
    require(isinstance(given, list), "messages must be a list")
    messages = cast("list[Any]", given)
    require(len(messages) <= MAX_MESSAGES, f"messages must be at most {MAX_MESSAGES}")
    for index, message in enumerate(messages):
        require(isinstance(message, dict), f"messages[{index}] must be an object")
        require(isinstance(message.get("role"), str), f"messages[{index}].role must be a string")
    return messages


def _last_user(messages: list[Json]) -> int:
    for index in range(len(messages) - 1, -1, -1):
        if messages[index]["role"] == "user":
            return index
    raise InvalidInputError("messages must contain a user message: the last one is what the agent answers")


def _message(given: Json, where: str) -> tuple[Json, str]:
    message_id, content, name = given.get("id"), given.get("content"), given.get("name")
    require(isinstance(message_id, str), f"{where}.id must be a string")
    require(name is None or isinstance(name, str), f"{where}.name must be a string")
    if isinstance(content, str):
        text = content
    else:
        content = _text_parts(content, f"{where}.content")
        text = "\n".join(part["text"] for part in content)
    message: Json = {"id": message_id, "content": content}
    return (message if name is None else {**message, "name": name}), text


def _text_parts(parts: object, where: str) -> list[Json]:
    require(isinstance(parts, list), f"{where} must be a string or a list of parts")
    kept: list[Json] = []
    for index, part in enumerate(cast("list[Any]", parts)):
        require(isinstance(part, dict), f"{where}[{index}] must be an object")
        if part.get("type") == "text":
            require(isinstance(part.get("text"), str), f"{where}[{index}].text must be a string")
            kept.append({"type": "text", "text": part["text"]})
    return kept


def _kept(messages: list[Json], last: int) -> list[Json]:
    instructions = [message for message in messages[:last] if message["role"] in INSTRUCTIONS]
    return [*instructions, *messages[last + 1 :]]


def _params(document: Json, messages: list[Json], is_time_zone: Callable[[str], bool]) -> Json:
    params: Json = {}
    for field in ("tools", "context"):
        items = document.get(field)
        if items is not None:
            require(_are_objects(items), f"{field} must be a list of objects")
            params[field] = items
    parent = document.get("parentRunId")
    require(parent is None or isinstance(parent, str), "parentRunId must be a string")
    given = {
        "parentRunId": parent,
        "state": document.get("state"),
        "forwardedProps": _forwarded(document.get("forwardedProps"), is_time_zone),
        "messages": messages,
    }
    # Clients send empty ones of everything; storing them would say nothing.
    return {key: value for key, value in (params | given).items() if value not in (None, [], {})}


def _are_objects(items: object) -> bool:
    return isinstance(items, list) and all(isinstance(item, dict) for item in cast("list[Any]", items))


def _forwarded(given: object, is_time_zone: Callable[[str], bool]) -> object:
    """Passed through untouched, but for a client time that is none: then the user's own zone counts."""
    if not isinstance(given, dict) or "client_time" not in given:
        return cast("object", given)
    props = cast("Json", given)
    client_time = props["client_time"]
    if isinstance(client_time, dict) and wrong_part(cast("Json", client_time), is_time_zone) is None:
        return props
    return {key: value for key, value in props.items() if key != "client_time"}
