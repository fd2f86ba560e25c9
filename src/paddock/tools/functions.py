"""Python functions as tools: schema from annotations and docstring, checked arguments, bounded time and number. One
source of tools.

A function that is not `async` runs on a thread; when it takes too long nobody waits for it any more, but a thread
cannot be stopped: the outcome is then unknown, and is said to be.
"""

import asyncio
import inspect
import re
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.to_thread
import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError

from paddock.ports.places import Places
from paddock.ports.tools import ToolAnswer, ToolInfo, ToolUse
from paddock.rules.errors import HostError
from paddock.tools.catalog import NotJsonError, failed, given
from paddock_sdk.causes import cause_of, complaint_of

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_SECTION = re.compile(r"^(Args|Arguments|Parameters|Returns?|Raises|Yields|Examples?|Notes?):\s*$", re.MULTILINE)
_PARAMETER = re.compile(
    r"^[ \t]*+\*{0,2}(\w++)[ \t]*+(?:\([^)\n]*+\)[ \t]*+)?:\s*+(.+(?:\n[ \t]{6,}+.+)*)", re.MULTILINE
)


class ToolDefinitionError(Exception):
    """A function cannot be offered as a tool; the text says which, why, and what to write instead."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A function as models see it, and the check of its arguments."""

    info: ToolInfo
    arguments: type[BaseModel]
    names: Mapping[str, str]
    """Field of the model to parameter of the function."""

    def read(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments of the right types. Raises ValidationError."""
        given = self.arguments.model_validate(parameters)
        return {name: getattr(given, field) for field, name in self.names.items()}

    def complaint(self, error: ValidationError) -> str:
        """Say what is wrong with the arguments, and what is expected, in one sentence for the model."""
        found = [f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {complaint_of(one)}" for one in error.errors()[:5]]
        properties: Mapping[str, Any] = self.info.parameters.get("properties") or {}
        required = self.info.parameters.get("required") or ()
        expected = ", ".join(f"{name}{'' if name in required else ' (optional)'}" for name in properties) or "none"
        return f"wrong arguments for {self.info.name}: {'; '.join(found)}. It takes: {expected}."


def signature_of(function: Callable[..., Any], *, tool_type: str = "function", source: str = "") -> Signature:
    """Raises ToolDefinitionError with a sentence for the person who wrote the function."""
    name = function.__name__
    if not _NAME.fullmatch(name):
        raise ToolDefinitionError(f"{name!r} is no name for a tool; use letters, digits and '_', at most 64")
    description, about = _documented(inspect.getdoc(function) or "")
    if not description:
        raise ToolDefinitionError(f"{name} has no docstring; write one sentence that tells a model what it does")
    fields, names = _fields(function, about)
    try:
        arguments = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
        schema = _tidy(arguments.model_json_schema(by_alias=True))
    except (PydanticUserError, TypeError) as error:
        raise ToolDefinitionError(f"{name} has a parameter that JSON cannot describe: {error}") from error
    schema.pop("title", None)
    read_only = bool(getattr(function, "read_only", False))
    return Signature(ToolInfo(name, tool_type, description, schema, source, read_only), arguments, names)


def _fields(function: Callable[..., Any], about: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    name = function.__name__
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise ToolDefinitionError(f"{name}: an annotation cannot be read: {error}") from error
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    for number, parameter in enumerate(inspect.signature(function).parameters.values()):
        _refuse_odd(name, parameter, hints)
        field = f"p{number}"  # a parameter may have any name, also one that a model's own attributes have
        names[field] = parameter.name
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        described: dict[str, Any] = {"description": about[parameter.name]} if parameter.name in about else {}
        fields[field] = (hints[parameter.name], Field(default, alias=parameter.name, **described))
    return fields, names


def _refuse_odd(function: str, parameter: inspect.Parameter, hints: Mapping[str, Any]) -> None:
    odd = {
        inspect.Parameter.VAR_POSITIONAL: f"*{parameter.name}",
        inspect.Parameter.VAR_KEYWORD: f"**{parameter.name}",
        inspect.Parameter.POSITIONAL_ONLY: f"{parameter.name}, /",
    }.get(parameter.kind)
    if odd is not None:
        raise ToolDefinitionError(f"{function}({odd}): a tool's parameters are named; give each its own name and type")
    if parameter.name not in hints:
        raise ToolDefinitionError(
            f"{function}: the parameter {parameter.name!r} has no type; write for example {parameter.name}: str"
        )


def _documented(docstring: str) -> tuple[str, dict[str, str]]:
    parts = _SECTION.split(docstring)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    text = next((sections[key] for key in ("Args", "Arguments", "Parameters") if key in sections), "")
    about = {name: " ".join(words.split()) for name, words in _PARAMETER.findall(text)}
    return parts[0].strip(), about


def _tidy(schema: Any) -> Any:
    """Without the titles pydantic makes up from names: they cost tokens and say nothing."""
    if isinstance(schema, list):
        return [_tidy(one) for one in typing.cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    known = typing.cast("dict[str, Any]", schema)
    return {key: _tidy(value) for key, value in known.items() if not (key == "title" and isinstance(value, str))}


log = structlog.get_logger("paddock.tools")

MAX_AT_ONCE = 32
"""Calls of functions at once on this host; more wait their turn, within their own time."""
EACH = 24
"""Of them, calls of one workspace, so that the next one finds a thread at once."""
WAITING, WAITING_IN_ALL = 256, 2048


class FunctionTool:
    def __init__(self, function: Callable[..., Any], signature: Signature) -> None:
        self.info = signature.info
        self.signature = signature
        self._function = function
        self._is_async = inspect.iscoroutinefunction(function)

    async def run(self, arguments: dict[str, Any], threads: anyio.CapacityLimiter) -> ToolAnswer:
        if self._is_async:
            async with threads:
                return await self._awaited(arguments)
        return await anyio.to_thread.run_sync(self._on_thread, arguments, abandon_on_cancel=True, limiter=threads)

    async def _awaited(self, arguments: dict[str, Any]) -> ToolAnswer:
        try:
            return given(await self._function(**arguments))
        except SystemExit as error:
            raise RuntimeError("the tool tried to end the program") from error

    def _on_thread(self, arguments: dict[str, Any]) -> ToolAnswer:
        try:
            return given(self._function(**arguments))
        except SystemExit as error:  # it must not end the host
            raise RuntimeError("the tool tried to end the program") from error


class FunctionTools:
    """Functions by name. The `Tools` port."""

    def __init__(
        self, tools: Sequence[FunctionTool], *, clock: Callable[[], float], timeout_seconds: float = 60.0
    ) -> None:
        self._tools = {tool.info.name: tool for tool in tools}
        self._clock = clock
        self._timeout = timeout_seconds
        self._threads: anyio.CapacityLimiter | None = None
        self._places = Places(MAX_AT_ONCE, each=EACH, waiting=WAITING, waiting_in_all=WAITING_IN_ALL)
        self._earlier: dict[str, Mapping[str, FunctionTool]] = {}
        """Runs that began with other functions, and those."""

    def take(self, tools: Sequence[FunctionTool], live: Iterable[str] = ()) -> None:
        """These are the tools from now on; calls under way go on, and runs that are live keep those they began with."""
        self._earlier = {run_id: self._earlier.get(run_id, self._tools) for run_id in live}
        self._tools = {tool.info.name: tool for tool in tools}

    def list(self, workspace: str) -> Sequence[ToolInfo]:  # noqa: ARG002 - the same for every workspace
        return [tool.info for tool in self._tools.values()]

    def find(self, workspace: str, name: str) -> ToolInfo | None:  # noqa: ARG002 - as above
        every = (self._tools, *self._earlier.values())  # who may call one that is gone is in the grants
        tool = next((known[name] for known in every if name in known), None)
        return tool.info if tool else None

    async def call(self, use: ToolUse) -> ToolAnswer:
        tool = self._earlier.get(use.run_id, self._tools).get(use.name) or self._tools[use.name]
        try:
            arguments = tool.signature.read(use.parameters)
        except ValidationError as error:
            return failed(tool.signature.complaint(error))
        seconds = max(0.0, min(self._timeout, use.deadline_at - self._clock()))
        try:
            async with asyncio.timeout(seconds) as limit:
                await self._places.enter(use.workspace_id)
        except TimeoutError:
            return failed(f"{use.name}: its turn did not come within {seconds:.3g} seconds; it was not called")
        except HostError as error:
            return failed(f"{use.name}: {error.message}")
        try:
            return await self._call_now(tool, use, arguments, until=limit.when(), seconds=seconds)
        finally:
            self._places.leave(use.workspace_id)

    async def _call_now(
        self, tool: FunctionTool, use: ToolUse, arguments: dict[str, Any], *, until: float | None, seconds: float
    ) -> ToolAnswer:
        """`seconds` is the whole time of the call, `until` its end on the clock of the event loop."""
        try:
            async with asyncio.timeout_at(until):
                return await tool.run(arguments, self._limiter())
        except TimeoutError:
            return failed(
                f"{use.name} did not answer within {seconds:.3g} seconds; whether it did its work is not known",
                unknown=True,
            )
        except HostError as error:
            return failed(f"{use.name}: {error.message}")
        except NotJsonError as error:
            return failed(f"{use.name}: {error}")
        except Exception as error:
            log.warning("a tool raised", action="tools.call", tool=use.name, run_id=use.run_id, exc_info=error)
            return failed(f"{use.name} failed: {cause_of(error)}")

    def _limiter(self) -> anyio.CapacityLimiter:
        self._threads = self._threads or anyio.CapacityLimiter(MAX_AT_ONCE)
        return self._threads
