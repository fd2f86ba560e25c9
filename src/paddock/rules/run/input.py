"""Validate the native door's run input: one table of rules, the first that fails answers. Pure.

Strict on purpose: what is not valid is refused with the sentence the table gives for it, never repaired. Both spellings
of a field, camelCase and snake_case, are read everywhere but inside `forwardedProps`; both at once must agree. Which
time zones exist and which threads belong to jobs come in as questions to ask; nothing here reads a clock or a file.
Whether a URL is ours is the last rule of the table and asked by the door, because it has to look it up.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from paddock.rules.errors import ErrorCode
from paddock.rules.run.input_shapes import CONTEXT, TOOL, is_missing, pick, read_list, read_message, snake
from paddock.rules.run.request_bodies import InvalidInputError, Json, decode_object, is_uuid, require
from paddock.rules.schedule.time_zones import CLIENT_TIME_PARTS, ClientTimePart

MAX_BODY_BYTES = 262_144
MAX_RUN_ID = 128
MAX_MESSAGES = 200
MAX_TEXT = 10_000
MAX_ATTACHMENTS = 3
TOO_LARGE = "RunAgentInput payload exceeds size limit"
NOT_SIGNED = "binary content url is not a valid signed URL"

_IMAGE = re.compile(r"image/[a-z0-9][a-z0-9!#$&^_.+-]*", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class NativeInput:
    """A valid request in camelCase, without nulls. Nobody vouches for what is in `params`."""

    thread_id: str
    thread_as_sent: str
    """The same id as the client spells it."""
    run_id: str
    message: Mapping[str, Any]
    text: str
    params: Mapping[str, Any]
    document: Mapping[str, Any]
    """The request as it came, for its hash."""
    urls: Sequence[str] = ()
    """What the attachments point at, in order; whether these are ours is still to be asked."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The refusal of a request."""

    code: ErrorCode
    message: str
    reason: str = ""
    """What exactly is wrong, where the sentence of the table does not say it."""


@dataclass(frozen=True, slots=True)
class World:
    """Questions that the rules ask because the answer is not in the request."""

    is_time_zone: Callable[[str], bool]
    is_job_thread: Callable[[str], bool] = lambda _thread_id: False
    """Automation is for threads that belong to a job."""


def read_run_input(body: bytes, world: World) -> NativeInput | Problem:
    return RunInputReader(body).read(world)


class RunInputReader:
    """Reads a request rule by rule. Read again, it goes on at the rule that was broken: the world may know more now."""

    def __init__(self, body: bytes) -> None:
        self._draft = _Draft(body)
        self._held = 0

    def read(self, world: World) -> NativeInput | Problem:
        draft = self._draft
        try:
            for rule in RULES[self._held :]:
                if not rule.holds(draft, world):
                    return Problem(rule.code, rule.sentence, draft.reason)
                self._held += 1
        except InvalidInputError as error:
            return Problem(ErrorCode.INVALID_ARGUMENT, str(error))
        return draft.accepted()


def with_attachments(given: NativeInput, blocks: Sequence[Mapping[str, Any]]) -> NativeInput:
    """The request with what its URLs stand for in their place, one for each: no signed URL is ever stored."""
    found = iter(blocks)
    content: list[Json] = given.message["content"]
    kept = [{**block, **next(found)} if block["type"] == "binary" else block for block in content]
    cleaned = [{key: value for key, value in block.items() if key != "url"} for block in kept]
    return replace(given, message={**given.message, "content": cleaned}, urls=())


@dataclass(slots=True)
class _Draft:
    """The request as far as the rules have come."""

    body: bytes
    document: Json = field(default_factory=dict[str, Any])
    thread_id: str = ""
    thread_as_sent: str = ""
    run_id: str = ""
    messages: list[Json] = field(default_factory=list[Json])
    forwarded_props: Json = field(default_factory=dict[str, Any])
    reason: str = ""
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
        return NativeInput(
            thread_id=self.thread_id,
            thread_as_sent=self.thread_as_sent,
            run_id=self.run_id,
            message=message,
            text="\n".join(_texts(user)),
            params=params,
            document=self.document,
            urls=[block["url"] for block in self.attachments()],
        )


def _json(draft: _Draft, _: World) -> bool:
    draft.document = decode_object(draft.body, "RunAgentInput")
    return True


def _thread_id(draft: _Draft, _: World) -> bool:
    given = draft.take("threadId")
    if not isinstance(given, str) or not is_uuid(given):
        return False
    draft.thread_id, draft.thread_as_sent = given.lower(), given
    return True


def _run_id(draft: _Draft, _: World) -> bool:
    given = draft.take("runId")
    require(isinstance(given, str) and given != "", "runId must be a non-empty string")
    draft.run_id = given
    return len(given) <= MAX_RUN_ID


def _messages(draft: _Draft, _: World) -> bool:
    given = draft.take("messages")
    require(isinstance(given, list), "RunAgentInput.messages must be a list")
    if len(given) > MAX_MESSAGES:
        return False
    draft.messages = [read_message(item, f"RunAgentInput.messages[{index}]") for index, item in enumerate(given)]
    return True


def _user_text(draft: _Draft, _: World) -> bool:
    return all(sum(map(len, _texts(message))) <= MAX_TEXT for message in draft.users())


def _forwarded_props(draft: _Draft, world: World) -> bool:
    given = draft.take("forwardedProps")
    if not isinstance(given, dict):
        draft.reason = "forwardedProps must be an object"
        return False
    draft.forwarded_props = props = cast("Json", given)
    draft.reason = _unknown_props(props) or _wrong_mode(props.get("runtime_mode"), draft.thread_id, world)
    return not draft.reason


def _unknown_props(props: Json) -> str:
    unknown = [name for name in props if name not in ("runtime_mode", "client_time")]
    if unknown:
        named = ", ".join(name[:64] for name in unknown[:5])
        tools = "enabledTools" in unknown or "enabled_tools" in unknown
        hint = "; the tools of an automation job are set in its own config.enabledTools" if tools else ""
        return f"not known in forwardedProps: {named}; it takes runtime_mode and client_time{hint}"
    return "" if isinstance(props.get("client_time", {}), dict) else "client_time must be an object"


def _wrong_mode(mode: object, thread_id: str, world: World) -> str:
    if mode == "chat":
        return ""
    if mode != "automation":
        return "runtime_mode must be chat or automation"
    allowed = world.is_job_thread(thread_id)
    return "" if allowed else "runtime_mode automation is for the thread of an automation job of yours"


def _one_user(draft: _Draft, _: World) -> bool:
    return len(list(draft.users())) == 1


def _image_types(draft: _Draft, _: World) -> bool:
    types = (block.get("mimeType") for block in draft.attachments())
    return all(isinstance(given, str) and _IMAGE.fullmatch(given) is not None for given in types)


def _urls(draft: _Draft, _: World) -> bool:
    return all(isinstance(block.get("url"), str) and block["url"] != "" for block in draft.attachments())


def _client_time(part: ClientTimePart) -> "Holds":
    def holds(draft: _Draft, world: World) -> bool:
        given = draft.forwarded_props.get("client_time")
        return given is None or part.holds(given.get(part.name), world.is_time_zone)

    return holds


def _optional_fields(draft: _Draft, _: World) -> bool:
    parent, state = draft.take("parentRunId"), draft.take("state")
    require(is_missing(parent) or isinstance(parent, str), "parentRunId must be a string")
    given = {"parentRunId": parent, "state": state}
    for name, fields in (("tools", TOOL), ("context", CONTEXT)):
        value = draft.take(name)
        given[name] = value if is_missing(value) else read_list(value, fields, f"RunAgentInput.{name}")
    draft.params = {name: value for name, value in given.items() if not is_missing(value) and value is not None}
    return True


Holds = Callable[[_Draft, World], bool]


@dataclass(frozen=True, slots=True)
class InputRule:
    """One rule: what must hold, and what is said when it does not. A step without a sentence only reads on; what
    has the wrong shape is refused where it is read, in words of its own."""

    holds: Holds
    sentence: str = ""
    code: ErrorCode = ErrorCode.INVALID_ARGUMENT


RULES: tuple[InputRule, ...] = (
    InputRule(lambda draft, _: len(draft.body) <= MAX_BODY_BYTES, TOO_LARGE, ErrorCode.PAYLOAD_TOO_LARGE),
    InputRule(_json),
    InputRule(_thread_id, "threadId must be a valid UUID"),
    InputRule(_run_id, "runId exceeds length limit"),
    InputRule(_messages, "RunAgentInput.messages exceeds limit"),
    InputRule(_user_text, "RunAgentInput user message text exceeds limit"),
    InputRule(_forwarded_props, "invalid RunAgentInput.forwardedProps"),
    InputRule(_one_user, "RunAgentInput.messages must contain exactly one user message"),
    InputRule(lambda draft, _: draft.messages[0]["role"] == "user", "RunAgentInput.messages[0].role must be user"),
    InputRule(_image_types, "binary content requires image mimeType"),
    InputRule(_urls, "binary content requires url"),
    InputRule(
        lambda draft, _: all("data" not in block for block in draft.attachments()), "binary content data is not allowed"
    ),
    InputRule(lambda draft, _: len(list(draft.attachments())) <= MAX_ATTACHMENTS, "Too many attachments"),
    *(InputRule(_client_time(part), f"invalid client_time.{part.name}") for part in CLIENT_TIME_PARTS),
    InputRule(_optional_fields),
)
"""In this order; the first that fails answers. What is left is `NOT_SIGNED`: it takes a look at what we keep."""

SENTENCES = (*(rule.sentence for rule in RULES if rule.sentence), NOT_SIGNED)


def _blocks(message: Json) -> list[Json]:
    content = message["content"]
    return cast("list[Json]", content) if isinstance(content, list) else []


def _texts(message: Json) -> list[str]:
    content = message["content"]
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in _blocks(message) if block["type"] == "text"]
