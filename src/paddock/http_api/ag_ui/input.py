"""Tolerant reader of AG-UI input: unknown fields, parts and roles are passed over, wrong known values refused.

Clients send the whole conversation every time, and it is read whole here; what of it is new is found elsewhere. Their
own instructions (system, developer) and everything else besides the conversation stay with the run, untrusted.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast, get_args

from paddock.http_api.ag_ui.messages import (
    INSTRUCTIONS,
    SPOKEN,
    UNSAID,
    Notes,
    as_object,
    needed,
    optional,
    read_message,
    read_resume,
    without_nulls,
)
from paddock.rules.conversations.client_history import ClientMessage, Unseen
from paddock.rules.run.input import decode_object, holds_more_values
from paddock.rules.run.input_shapes import InvalidInputError, require
from paddock.rules.schedule.time_zones import wrong_part
from paddock.rules.values import Value

MAX_NAME = 512
MAX_VALUES = 200_000
"""Values in one body: with 8 MiB of small ones a host would be busy for whole seconds."""
MAX_TOOLS = MAX_CONTEXT = 1_000
FIELDS = frozenset(
    {"threadId", "runId", "protocolVersion", "parentRunId", "state", "messages", "tools", "context"}
    | {"forwardedProps", "resume"}
)

REQUIRED = frozenset({"threadId", "runId", "state", "messages", "tools", "context", "forwardedProps"})

Json = dict[str, Any]


class AgUiLimits(Value, frozen=True):
    """Size limits of one request. Whole conversations come in, so they are wider than at other doors."""

    body_bytes: int = 8 * 1024 * 1024
    messages: int = 2_000


class AgUiInput(Value, frozen=True):
    """One run as an AG-UI client asks for it. Nobody vouches for what is in `params`."""

    thread_name: str
    run_id: str
    dialect: str
    told: Sequence[ClientMessage]
    """What was said so far, as the client has it."""
    raw: Sequence[Mapping[str, Any]]
    """The same messages as they came."""
    instructions: Sequence[Mapping[str, Any]]
    params: Mapping[str, Any]
    resume: Sequence[Mapping[str, Any]]
    document: Mapping[str, Any]
    passed_over: Sequence[str] = ()
    unseen: Unseen | None = None
    """What is to become of questions that it does not show."""
    is_whole: bool = True
    """Whether all fields are there that AG-UI requires, as its client libraries send them."""


def read_ag_ui_input(body: bytes, is_time_zone: Callable[[str], bool], limits: AgUiLimits) -> AgUiInput:
    """Raises InvalidInputError with a sentence about the first wrong value."""
    document = _document(body)
    given, notes = without_nulls(document), Notes()
    for name in given.keys() - FIELDS:
        notes.note(f"unknown field {name[:64]!r}")
    messages = list(_messages(given, limits, notes))
    spoken = [(raw, where) for raw, where in messages if raw["role"] in SPOKEN]
    told = [read_message(raw, raw["role"], where, notes) for raw, where in spoken]
    return AgUiInput(
        thread_name=_name(given, "threadId"),
        run_id=_name(given, "runId"),
        dialect=_dialect(given.get("protocolVersion")),
        told=told,
        raw=[raw for raw, _ in spoken],
        instructions=[raw for raw, _ in messages if raw["role"] in INSTRUCTIONS],
        params=_params(given, is_time_zone),
        resume=read_resume(given.get("resume")),
        unseen=_unseen(given.get("forwardedProps")),
        is_whole=document.keys() >= REQUIRED,
        document=document,
        passed_over=[*notes.told, *([f"and {notes.count} in all"] if notes.count > len(notes.told) else [])],
    )


def read_names(body: bytes) -> tuple[str, str | None, str]:
    """Of a client that only wants to know how things stand: its thread, its run if it names one, and its dialect."""
    given = without_nulls(_document(body))
    run_id = _name(given, "runId") if "runId" in given else None
    return _name(given, "threadId"), run_id, _dialect(given.get("protocolVersion"))


def _document(body: bytes) -> Json:
    if holds_more_values(body, MAX_VALUES):
        raise InvalidInputError(f"the body must hold at most {MAX_VALUES} values; send less state or fewer messages")
    return decode_object(body, "the body")


def _name(document: Json, field: str) -> str:
    given = document.get(field)
    if isinstance(given, str) and 0 < len(given) <= MAX_NAME:
        return given
    raise InvalidInputError(f"{field} must be a string of 1 to {MAX_NAME} characters")


def _dialect(version: object) -> str:
    """Clients that say no version are from before there was one."""
    if version is None:
        return "0"
    if not isinstance(version, str):
        raise InvalidInputError("protocolVersion must be a string")
    return "0" if version.startswith("0.") else "1"


def _messages(document: Json, limits: AgUiLimits, notes: Notes) -> Iterator[tuple[Json, str]]:
    """The messages of roles we know, and where each stands."""
    given = document.get("messages")
    require(isinstance(given, list), "messages must be a list")
    messages = cast("list[object]", given)
    if len(messages) > limits.messages:
        raise InvalidInputError(f"messages must be at most {limits.messages}")
    for index, item in enumerate(messages):
        where = f"messages[{index}]"
        message = as_object(item, where)
        role = message.get("role")
        if not isinstance(role, str):
            raise InvalidInputError(f"{where}.role must be a string")
        if role in INSTRUCTIONS:
            optional(message, "content", str, where)
        if role in SPOKEN or role in INSTRUCTIONS:
            yield message, where
        elif role not in UNSAID:
            notes.note(f"{where}: unknown role {role[:64]!r}")


def _params(document: Json, is_time_zone: Callable[[str], bool]) -> Json:
    parent = document.get("parentRunId")
    require(parent is None or isinstance(parent, str), "parentRunId must be a string")
    given = {
        "tools": _tools(document.get("tools")),
        "context": _context(document.get("context")),
        "parentRunId": parent,
        "state": document.get("state"),
        "forwardedProps": _forwarded(document.get("forwardedProps"), is_time_zone),
    }
    # Clients send empty ones of everything; storing them would say nothing.
    return {key: value for key, value in given.items() if value not in (None, [], {})}


def _tools(given: object) -> list[Json]:
    tools = _objects(given, "tools", MAX_TOOLS)
    for index, tool in enumerate(tools):
        needed(tool, "name", f"tools[{index}]")
        optional(tool, "description", str, f"tools[{index}]")
    return tools


def _context(given: object) -> list[Json]:
    items = _objects(given, "context", MAX_CONTEXT)
    for index, item in enumerate(items):
        optional(item, "description", str, f"context[{index}]")
        optional(item, "value", str, f"context[{index}]")
    return items


def _objects(items: object, field: str, most: int) -> list[Json]:
    if not items and (items is None or isinstance(items, list)):
        return []
    valid = isinstance(items, list) and all(isinstance(item, dict) for item in cast("list[Any]", items))
    require(valid, f"{field} must be a list of objects")
    require(len(cast("list[Json]", items)) <= most, f"{field} must be at most {most}")
    return [without_nulls(item) for item in cast("list[Json]", items)]


def _unseen(forwarded: object) -> Unseen | None:
    """`forwardedProps.paddock.unseen`: the only thing there that is ours."""
    ours = cast("Json", forwarded).get("paddock") if isinstance(forwarded, dict) else None
    said = cast("Json", ours).get("unseen") if isinstance(ours, dict) else None
    require(said in (None, *get_args(Unseen)), "forwardedProps.paddock.unseen must be keep or leave")
    return cast("Unseen | None", said)


def _forwarded(given: object, is_time_zone: Callable[[str], bool]) -> object:
    """Passed through untouched, but for a client time that is none: then the user's own zone counts."""
    if not isinstance(given, dict) or "client_time" not in given:
        return cast("object", given)
    props = cast("Json", given)
    client_time = props["client_time"]
    if isinstance(client_time, dict) and wrong_part(cast("Json", client_time), is_time_zone) is None:
        return props
    return {key: value for key, value in props.items() if key != "client_time"}
