"""What the native door takes for a run: one table of rules, the first that fails answers. Pure.

Strict on purpose: what is not valid is refused with the sentence the table gives for it, never repaired. Both spellings
of a field, camelCase and snake_case, are read everywhere but inside `forwardedProps`; both at once must agree. Which
time zones exist and which URLs are ours come in as questions to ask; nothing here reads a clock or a file.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, cast

import msgspec

from paddock.rules.client_time import wrong_part
from paddock.rules.errors import ErrorCode
from paddock.rules.run_input_shapes import (
    CONTEXT,
    TOOL,
    InvalidInputError,
    is_missing,
    nested_too_deep,
    pick,
    read_list,
    read_message,
    require,
    snake,
)

MAX_BODY_BYTES = 262_144
MAX_RUN_ID = 128
MAX_MESSAGES = 200
MAX_TEXT = 10_000
MAX_ATTACHMENTS = 3
MAX_DEPTH = 64
TOO_LARGE = "RunAgentInput payload exceeds size limit"

Json = dict[str, Any]
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}", re.ASCII)
_IMAGE = re.compile(r"image/[a-z0-9][a-z0-9!#$&^_.+-]*", re.ASCII | re.IGNORECASE)
_encode_sorted = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True)
class NativeInput:
    """A valid request in camelCase, without nulls. Nobody vouches for what is in `params`."""

    thread_id: str
    run_id: str
    message: Mapping[str, Any]
    text: str
    params: Mapping[str, Any]
    document: Mapping[str, Any]
    """The request as it came, for its hash."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a request is refused."""

    code: ErrorCode
    message: str


@dataclass(frozen=True, slots=True)
class World:
    """What the rules have to ask about, for it is not in the request."""

    is_time_zone: Callable[[str], bool]
    is_live_url: Callable[[str], bool]
    """Whether a URL is one that we signed for this caller and that has not expired."""
    automation_allowed: bool = False
    """Automation is for threads that belong to a job."""


def read_run_input(body: bytes, world: World) -> NativeInput | Problem:
    """The request, or the first rule it breaks."""
    if len(body) > MAX_BODY_BYTES:
        return Problem(ErrorCode.PAYLOAD_TOO_LARGE, TOO_LARGE)
    try:
        draft = _Draft(decode_object(body, "RunAgentInput"))
        for rule in RULES:
            rule(draft, world)
    except InvalidInputError as error:
        return Problem(ErrorCode.INVALID_ARGUMENT, str(error))
    return draft.accepted()


def decode_object(body: bytes, name: str) -> Json:
    """The body as a JSON object of bounded depth. Raises InvalidInputError."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{name} is not valid JSON: {error}") from error
    except RecursionError as error:
        raise InvalidInputError(f"{name} is nested deeper than {MAX_DEPTH} levels") from error
    require(isinstance(value, dict), f"{name} must be a JSON object")
    require(not nested_too_deep(body, value, MAX_DEPTH), f"{name} is nested deeper than {MAX_DEPTH} levels")
    return cast("Json", value)


def body_hash(document: Mapping[str, Any], agent_id: str | None) -> bytes:
    """Equal for requests that ask the same: spacing and the order of keys do not count, the agent asked for does."""
    return sha256(_encode_sorted((document, agent_id))).digest()


def is_uuid(text: str) -> bool:
    return _UUID.fullmatch(text) is not None


# --- the table --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Draft:
    """The request as far as the rules have come."""

    document: Json
    thread_id: str = ""
    run_id: str = ""
    messages: list[Json] = field(default_factory=list[Json])
    forwarded_props: Json = field(default_factory=dict[str, Any])
    params: Json = field(default_factory=dict[str, Any])

    def take(self, name: str) -> Any:
        return pick(self.document, name, snake(name))

    def users(self) -> Iterator[Json]:
        return (message for message in self.messages if message["role"] == "user")

    def attachments(self) -> Iterator[Json]:
        return (block for message in self.users() for block in _blocks(message) if block["type"] == "binary")

    def accepted(self) -> NativeInput:
        user, *others = self.messages
        message = {key: user[key] for key in ("id", "content", "name") if key in user}
        params = {**self.params, "forwardedProps": self.forwarded_props}
        params |= {key: user[key] for key in ("name", "encryptedValue") if key in user}
        if others:
            params["messages"] = others
        return NativeInput(self.thread_id, self.run_id, message, "\n".join(_texts(user)), params, self.document)


def _thread_id(draft: _Draft, _: World) -> None:
    given = draft.take("threadId")
    require(isinstance(given, str) and is_uuid(given), "threadId must be a valid UUID")
    draft.thread_id = given.lower()


def _run_id(draft: _Draft, _: World) -> None:
    given = draft.take("runId")
    require(isinstance(given, str) and given != "", "runId must be a non-empty string")
    require(len(given) <= MAX_RUN_ID, "runId exceeds length limit")
    draft.run_id = given


def _messages(draft: _Draft, _: World) -> None:
    given = draft.take("messages")
    require(isinstance(given, list), "RunAgentInput.messages must be a list")
    require(len(given) <= MAX_MESSAGES, "RunAgentInput.messages exceeds limit")
    draft.messages = [read_message(item, f"RunAgentInput.messages[{index}]") for index, item in enumerate(given)]


def _user_text(draft: _Draft, _: World) -> None:
    for message in draft.users():
        length = sum(map(len, _texts(message)))
        require(length <= MAX_TEXT, "RunAgentInput user message text exceeds limit")


def _forwarded_props(draft: _Draft, world: World) -> None:
    given = draft.take("forwardedProps")
    valid = (
        isinstance(given, dict)
        and cast("Json", given).keys() <= {"runtime_mode", "client_time"}
        and isinstance(cast("Json", given).get("client_time", {}), dict)
        and _mode_allowed(cast("Json", given).get("runtime_mode"), world)
    )
    require(valid, "invalid RunAgentInput.forwardedProps")
    draft.forwarded_props = given


def _mode_allowed(mode: object, world: World) -> bool:
    return mode == "chat" or (mode == "automation" and world.automation_allowed)


def _one_user(draft: _Draft, _: World) -> None:
    count = len(list(draft.users()))
    require(count == 1, "RunAgentInput.messages must contain exactly one user message")


def _user_first(draft: _Draft, _: World) -> None:
    require(draft.messages[0]["role"] == "user", "RunAgentInput.messages[0].role must be user")


def _image_types(draft: _Draft, _: World) -> None:
    for block in draft.attachments():
        given = block.get("mimeType")
        require(
            isinstance(given, str) and _IMAGE.fullmatch(given) is not None, "binary content requires image mimeType"
        )


def _urls(draft: _Draft, _: World) -> None:
    for block in draft.attachments():
        require(isinstance(block.get("url"), str) and block["url"] != "", "binary content requires url")


def _no_data(draft: _Draft, _: World) -> None:
    for block in draft.attachments():
        require("data" not in block, "binary content data is not allowed")


def _few_attachments(draft: _Draft, _: World) -> None:
    require(len(list(draft.attachments())) <= MAX_ATTACHMENTS, "Too many attachments")


def _client_time(draft: _Draft, world: World) -> None:
    if "client_time" in draft.forwarded_props:
        wrong = wrong_part(draft.forwarded_props["client_time"], world.is_time_zone)
        require(wrong is None, f"invalid client_time.{wrong}")


def _optional_fields(draft: _Draft, _: World) -> None:
    parent, state = draft.take("parentRunId"), draft.take("state")
    require(is_missing(parent) or isinstance(parent, str), "parentRunId must be a string")
    given = {"parentRunId": parent, "state": state}
    for name, fields in (("tools", TOOL), ("context", CONTEXT)):
        value = draft.take(name)
        given[name] = value if is_missing(value) else read_list(value, fields, f"RunAgentInput.{name}")
    draft.params = {name: value for name, value in given.items() if not is_missing(value) and value is not None}


def _live_urls(draft: _Draft, world: World) -> None:
    for block in draft.attachments():
        require(world.is_live_url(block["url"]), "binary content url is not a valid signed URL")


RULES: tuple[Callable[[_Draft, World], None], ...] = (
    _thread_id,
    _run_id,
    _messages,
    _user_text,
    _forwarded_props,
    _one_user,
    _user_first,
    _image_types,
    _urls,
    _no_data,
    _few_attachments,
    _client_time,
    _optional_fields,
    _live_urls,
)
"""In this order; the first that fails answers. The size of the body comes before all of them."""


def _blocks(message: Json) -> list[Json]:
    content = message["content"]
    return cast("list[Json]", content) if isinstance(content, list) else []


def _texts(message: Json) -> list[str]:
    content = message["content"]
    return (
        [content]
        if isinstance(content, str)
        else [block["text"] for block in _blocks(message) if block["type"] == "text"]
    )
