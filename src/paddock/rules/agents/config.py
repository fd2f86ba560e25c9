"""An agent's settings against the form its runner declares: what is wrong, what is filled in, what is secret. Pure.

A runner without a form takes anything. `instructions` and `context` may always be given: every agent can have them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any, Literal, cast

from paddock.rules.values import Value
from paddock_sdk.protocol.manifest import DynamicFormItemSchema

MASK = "***"
"""What stands for a secret wherever it is shown."""
ALWAYS = frozenset({"instructions", "context"})
MAX_DEPTH = 32
MAX_UNKNOWN = 20
"""So many settings that no runner knows are named; looking for what was meant takes time for each."""
MAX_NAME = 64

Form = Sequence[DynamicFormItemSchema]
SettingPath = tuple[str | int, ...]


class Reference(Value, frozen=True):
    """A secret that lies elsewhere: in a variable of the host's environment, or in a file."""

    kind: Literal["env", "file"]
    name: str


def reference(value: object, *, in_password: bool = False) -> Reference | None:
    """`secret:env:NAME` and `secret:file:PATH`; in a password field the first word may be left out."""
    if not isinstance(value, str):
        return None
    text = value.removeprefix("secret:")
    if text == value and not in_password:
        return None
    kind, colon, name = text.partition(":")
    if not colon or not name:
        return None
    return Reference("env", name) if kind == "env" else Reference("file", name) if kind == "file" else None


def references(config: object, passwords: frozenset[str]) -> Iterator[tuple[SettingPath, Reference]]:
    for place, value in leaves(config):
        found = reference(value, in_password=bool(place) and place[0] in passwords)
        if found is not None:
            yield place, found


def leaves(value: object, place: SettingPath = ()) -> Iterator[tuple[SettingPath, object]]:
    if len(place) > MAX_DEPTH:
        return
    if isinstance(value, Mapping):
        for key, inner in cast("Mapping[str, object]", value).items():
            yield from leaves(inner, (*place, key))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(cast("Sequence[object]", value)):
            yield from leaves(inner, (*place, index))
    else:
        yield place, value


def secret_places(defined: Mapping[str, Any]) -> Iterator[tuple[SettingPath, str]]:
    """Every text of an agent's definition that is not kept in the clear: its settings but for those every agent can
    have, whatever its runner calls a secret today, and the headers its MCP servers are sent."""
    for place, value in leaves(defined):
        of_config = place[:1] == ("config",) and not ALWAYS & {*place[1:2]}
        of_header = place[:1] == ("mcp",) and "headers" in place
        if isinstance(value, str) and value and (of_config or of_header):
            yield place, value


def with_values(value: object, found: Mapping[SettingPath, str], place: SettingPath = ()) -> Any:
    if place in found:
        return found[place]
    if isinstance(value, Mapping):
        inner = cast("Mapping[str, object]", value)
        return {key: with_values(one, found, (*place, key)) for key, one in inner.items()}
    if isinstance(value, list | tuple):
        return [with_values(one, found, (*place, index)) for index, one in enumerate(cast("Sequence[object]", value))]
    return value


def drop(value: Any, place: SettingPath) -> None:
    """Take the value at a place out of settings that nobody else holds; in a list the others keep their places."""
    for step in place[:-1]:
        value = value[step]
    if isinstance(place[-1], int):
        value[place[-1]] = ""
    else:
        del value[place[-1]]


def passwords_of(form: Form) -> frozenset[str]:
    return frozenset(field.name for field in form if field.type == "password")


def masked(config: Mapping[str, Any], form: Form | None) -> dict[str, Any]:
    """The settings as anybody but the runner may see them. While the form is not known, every value may be secret."""
    if form is None:
        return {name: value if name in ALWAYS else MASK for name, value in config.items()}
    secret = passwords_of(form)
    shown = {name: MASK if name in secret and value not in (None, "") else value for name, value in config.items()}
    return cast("dict[str, Any]", with_values(shown, {place: MASK for place, _ in references(shown, frozenset())}))


def masked_servers(servers: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {**server, **({"headers": dict.fromkeys(server["headers"], MASK)} if server.get("headers") else {})}
        for server in servers
    ]


def masked_again(
    config: Mapping[str, Any], before: Mapping[str, Any], outside: Callable[[Mapping[str, Any]], object]
) -> str | None:
    """A setting that came back masked though what `outside` tells of the settings has changed since it was written."""
    hidden = next((name for name, value in config.items() if value == MASK), None)
    return hidden if hidden is not None and outside(unmasked(config, before)) != outside(before) else None


def unmasked(config: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as somebody sends them back who only saw them masked: what still is the mask stays as it was."""
    return {name: before.get(name, value) if value == MASK else value for name, value in config.items()}


def with_defaults(config: Mapping[str, Any], form: Form) -> dict[str, Any]:
    defaults = {field.name: field.default for field in form if field.default is not None}
    return defaults | dict(config)


def problems(config: Mapping[str, Any], form: Form) -> list[str]:
    """Everything wrong with the settings, one sentence each; references count as text."""
    if not form:
        return []
    fields = {field.name: field for field in form}
    unknown = (name for name in config if name not in fields and name not in ALWAYS)
    found = [_unknown(name, fields) for name in islice(unknown, MAX_UNKNOWN)]
    for name, field in fields.items():
        value = config.get(name)
        if value is None:
            if field.required and field.default is None:
                found.append(f"config.{name} is missing; the runner needs it")
        elif (expected := _expected(field, value)) is not None:
            found.append(f"config.{name} must be {expected}")
    return found


def _unknown(name: str, fields: Mapping[str, object]) -> str:
    near = get_close_matches(name, list(fields), n=1) if len(name) <= MAX_NAME else []
    name = name[:MAX_NAME]
    known = f"did you mean {near[0]}?" if near else f"known are: {', '.join(fields)}"
    return f"config.{name} is no setting of this runner; {known}"


def _expected(field: DynamicFormItemSchema, value: object) -> str | None:
    """Return the expected form of a wrong value, None for a right one. Unknown field types accept anything."""
    kind = ALIASES.get(field.type, field.type)
    if kind == "select":
        known = [str(option.get("value", option.get("name"))) for option in field.options or []]
        return None if not known or str(value) in known else f"one of: {', '.join(known)}"
    if kind == "model-fallback-selector":
        right = isinstance(value, str) or (isinstance(value, Mapping) and "primary" in value)
        return None if right else "a model id, or {primary, fallbacks}"
    types, words = TYPES.get(kind, (object, ""))
    wrong_bool = isinstance(value, bool) and kind in {"integer", "number"}
    return words if wrong_bool or not isinstance(value, types) else None


ALIASES: Mapping[str, str] = {
    "select-llm-model": "llm-model-selector",
    "select-knowledge-bases": "knowledge-base-multi-selector",
}
TYPES: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "string": (str, "text"),
    "text": (str, "text"),
    "password": (str, "text, or a reference such as env:NAME"),
    "integer": (int, "a whole number"),
    "number": ((int, float), "a number"),
    "boolean": (bool, "true or false"),
    "llm-model-selector": (str, "a model id"),
    "rerank-model-selector": (str, "a model id"),
    "knowledge-base-multi-selector": (list, "a list of knowledge base ids"),
}
