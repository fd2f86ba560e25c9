"""The shapes inside a run's input: messages, content blocks, tools, context. Strict, in either spelling; pure.

What comes out has only known fields, camelCase and without nulls. Limits and the order of complaints are in `input.py`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from paddock.rules.run.request_bodies import Json, require

_MISSING: Any = object()
_HUMP = re.compile(r"(?<!^)([A-Z])")


@cache
def snake(name: str) -> str:
    return _HUMP.sub(r"_\1", name).lower()


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    kind: "_Kind"
    required: bool = False
    nullable: bool = False
    alias: str = ""


def _field(name: str, kind: "_Kind", *, required: bool = False, nullable: bool = False) -> Field:
    return Field(name, kind, required, nullable, snake(name))


def pick(given: Mapping[str, Any], name: str, alias: str, where: str = "") -> Any:
    """The value under either spelling, or `_MISSING`. Both at once must say the same."""
    value = given.get(name, _MISSING)
    if alias == name or alias not in given:
        return value
    other = given[alias]
    require(
        value is _MISSING or (type(value) is type(other) and value == other), f"{where}{name} and {where}{alias} differ"
    )
    return other


def is_missing(value: object) -> bool:
    return value is _MISSING


def read_fields(given: object, fields: tuple[Field, ...], where: str) -> Json:
    require(isinstance(given, dict), f"{where} must be an object")
    out: Json = {}
    for field in fields:
        value = pick(cast("Json", given), field.name, field.alias, f"{where}.")
        absent = value is _MISSING or (value is None and field.nullable)
        require(not absent or not field.required, f"{where}.{field.name} is required")
        if not absent:
            require(field.kind.check(value), f"{where}.{field.name} must be {field.kind.expected}")
            out[field.name] = value
    return out


def read_list(given: object, fields: tuple[Field, ...], where: str) -> list[Json]:
    require(isinstance(given, list), f"{where} must be a list")
    return [read_fields(item, fields, f"{where}[{index}]") for index, item in enumerate(cast("list[object]", given))]


@dataclass(frozen=True, slots=True)
class _Kind:
    expected: str
    check: Callable[[object], bool]


_TEXT = _Kind("a string", lambda value: isinstance(value, str))
_WORD = _Kind("a non-empty string", lambda value: isinstance(value, str) and value != "")
_OBJECT = _Kind("an object", lambda value: isinstance(value, dict))
_TEXT_OR_BLOCKS = _Kind("a string or a list of content blocks", lambda value: isinstance(value, str | list))
_ANYTHING = _Kind("", lambda _: True)
_ID = _field("id", _WORD, required=True)
_CONTENT = _field("content", _TEXT, required=True)
_NAME = _field("name", _TEXT, nullable=True)
_ENCRYPTED = _field("encryptedValue", _TEXT, nullable=True)
_TOOL_CALLS = _field("toolCalls", _Kind("a list", lambda value: isinstance(value, list)))

MESSAGES: Mapping[str, tuple[Field, ...]] = {
    "user": (
        _ID,
        _field("content", _TEXT_OR_BLOCKS, required=True),
        _field("name", _TEXT),
        _field("encryptedValue", _TEXT),
    ),
    "assistant": (_ID, _field("content", _TEXT, nullable=True), _NAME, _TOOL_CALLS, _ENCRYPTED),
    "system": (_ID, _CONTENT, _NAME, _ENCRYPTED),
    "tool": (
        _ID,
        _CONTENT,
        _field("toolCallId", _WORD, required=True),
        _field("error", _TEXT, nullable=True),
        _ENCRYPTED,
    ),
    "developer": (_ID, _CONTENT, _NAME, _ENCRYPTED),
    "reasoning": (_ID, _CONTENT, _ENCRYPTED),
    "activity": (
        _ID,
        _field("activityType", _WORD, required=True),
        _field("content", _OBJECT, required=True),
    ),
}
_TOOL_CALL = (
    _ID,
    _field("type", _Kind("function", lambda value: value == "function"), required=True),
    _field("function", _OBJECT, required=True),
    _ENCRYPTED,
)
_FUNCTION = (
    _field("name", _WORD, required=True),
    _field("arguments", _TEXT, required=True),
)
_BLOCKS: Mapping[str, tuple[Field, ...]] = {
    "text": (_field("text", _TEXT, required=True),),
    # The table has its own sentences for mimeType, url and data, so any value passes here.
    "binary": (
        _field("mimeType", _ANYTHING),
        _field("id", _TEXT),
        _field("url", _ANYTHING),
        _field("data", _ANYTHING, nullable=True),
        _field("filename", _TEXT),
    ),
}
TOOL = (
    _field("name", _WORD, required=True),
    _field("description", _TEXT, required=True),
    _field("parameters", _OBJECT, required=True),
)
CONTEXT = (_field("description", _TEXT, required=True), _field("value", _TEXT, required=True))


def read_message(given: object, where: str) -> Json:
    require(isinstance(given, dict), f"{where} must be an object")
    role = cast("Json", given).get("role")
    require(isinstance(role, str) and role in MESSAGES, f"{where}.role must be one of {', '.join(MESSAGES)}")
    message: Json = {"role": role, **read_fields(given, MESSAGES[cast("str", role)], where)}
    if role == "user" and isinstance(message["content"], list):
        blocks = cast("list[Any]", message["content"])
        message["content"] = [_read_block(block, place) for block, place in _each(blocks, f"{where}.content")]
    if "toolCalls" in message:
        message["toolCalls"] = [
            _read_tool_call(call, w) for call, w in _each(message["toolCalls"], f"{where}.toolCalls")
        ]
    return message


def _read_block(given: object, where: str) -> Json:
    require(isinstance(given, dict), f"{where} must be an object")
    kind = cast("Json", given).get("type")
    require(isinstance(kind, str) and kind in _BLOCKS, f"{where}.type must be text or binary")
    return {"type": kind, **read_fields(given, _BLOCKS[cast("str", kind)], where)}


def _read_tool_call(given: object, where: str) -> Json:
    call = read_fields(given, _TOOL_CALL, where)
    return {**call, "function": read_fields(call["function"], _FUNCTION, f"{where}.function")}


def _each(given: list[Any], where: str) -> Iterator[tuple[Any, str]]:
    return ((item, f"{where}[{index}]") for index, item in enumerate(given))
