"""From a Python function to a tool: its schema from annotations and docstring, its arguments checked against it.

Pure but for reading the function; calling it is the business of `functions.py`.
"""

import inspect
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError

from paddock.ports.tools import ToolInfo
from paddock_sdk.causes import complaint_of

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_SECTION = re.compile(r"^(Args|Arguments|Parameters|Returns?|Raises|Yields|Examples?|Notes?):\s*$", re.MULTILINE)
_PARAMETER = re.compile(
    r"^[ \t]*+\*{0,2}(\w++)[ \t]*+(?:\([^)\n]*+\)[ \t]*+)?:\s*+(.+(?:\n[ \t]{6,}+.+)*)", re.MULTILINE
)


class ToolDefinitionError(Exception):
    """A function cannot be offered as a tool; the text says which, why, and what to write instead."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes: the tool as models see it, and the check of its arguments."""

    info: ToolInfo
    arguments: type[BaseModel]
    names: Mapping[str, str]
    """Field of the model to parameter of the function."""

    def read(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments of the right types. Raises ValidationError."""
        given = self.arguments.model_validate(parameters)
        return {name: getattr(given, field) for field, name in self.names.items()}

    def complaint(self, error: ValidationError) -> str:
        """What is wrong with the arguments, and what is expected, in one sentence for the model."""
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
    """The description, and what the section of arguments says about each."""
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
