"""Options of a model call that a runner may set. Pure; every question is judged before its wire sees it.

A question is asked with the operator's key. An option that a provider knows and this page does not may reach the
provider's files, tools and other models, or cost what nobody counts: it is refused by its name.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

from paddock.rules.agents.specs import ModelSpec
from paddock.rules.errors import ErrorCode, HostError

Judge = Callable[[Any], bool]
LENGTHS = frozenset({"max_tokens", "max_completion_tokens", "max_output_tokens"})


def is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def is_words(value: Any) -> bool:
    return is_plain(value) or (isinstance(value, list) and all(map(is_plain, cast("list[Any]", value))))


def is_length(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_bias(value: Any) -> bool:
    return isinstance(value, dict) and all(map(is_plain, cast("dict[str, Any]", value).values()))


def has(*fields: str, **judged: Judge) -> Judge:
    """An object of these fields; those with a judge are judged, the others hold what they like."""

    def judge(value: Any) -> bool:
        if not isinstance(value, dict):
            return False
        about = cast("dict[str, Any]", value)
        return about.keys() <= {*fields, *judged} and all(judged[name](about[name]) for name in judged if name in about)

    return judge


def _either(*judges: Judge) -> Judge:
    return lambda value: any(judge(value) for judge in judges)


def plain(*fields: str) -> Judge:
    return has(**dict.fromkeys(fields, is_plain))


_FORMAT = has("json_schema", "schema", type=is_plain, name=is_plain, strict=is_plain, description=is_plain)

CHAT: Mapping[str, Judge] = {
    **dict.fromkeys(
        (
            "temperature",
            "top_p",
            "top_k",
            "min_p",
            "presence_penalty",
            "frequency_penalty",
            "repetition_penalty",
            "seed",
            "parallel_tool_calls",
            "reasoning_effort",
            "verbosity",
            "enable_thinking",
        ),
        is_plain,
    ),
    "stop": is_words,
    "logit_bias": _is_bias,
    "max_tokens": is_length,
    "max_completion_tokens": is_length,
    "response_format": _FORMAT,
    "tool_choice": _either(is_plain, has(type=lambda value: value == "function", function=plain("name"))),
    "thinking": plain("type", "budget_tokens"),
    "chat_template_kwargs": plain("enable_thinking", "thinking"),
}
RESPONSES: Mapping[str, Judge] = {
    **dict.fromkeys(("temperature", "top_p", "parallel_tool_calls", "truncation"), is_plain),
    "max_output_tokens": is_length,
    "reasoning": plain("effort", "summary"),
    "text": has(format=_FORMAT, verbosity=is_plain),
    "tool_choice": _either(is_plain, has(type=lambda value: value == "function", name=is_plain)),
    "include": lambda value: value == ["reasoning.encrypted_content"],  # to be sent back: nothing is stored there
}
ANTHROPIC: Mapping[str, Judge] = {
    **dict.fromkeys(("temperature", "top_p", "top_k"), is_plain),
    "stop_sequences": is_words,
    "max_tokens": is_length,
    "thinking": plain("type", "budget_tokens", "display"),
    "tool_choice": plain("type", "name", "disable_parallel_tool_use"),
    "output_config": has(effort=is_plain, format=_FORMAT),
}


def taken(options: Mapping[str, Any], known: Mapping[str, Judge], spec: ModelSpec) -> dict[str, Any]:
    """The options as they are sent: an answer gets no longer than the operator allows. Raises INVALID_ARGUMENT."""
    refused = sorted(name for name, value in options.items() if not _may(name, value, known, spec))
    if refused:
        raise HostError(ErrorCode.INVALID_ARGUMENT, _refusal(refused[0], known, spec))
    return {name: _cut(name, value, known, spec) for name, value in options.items()}


def _may(name: str, value: Any, known: Mapping[str, Judge], spec: ModelSpec) -> bool:
    return name in spec.allow_args or (name in known and known[name](value))


def _cut(name: str, value: Any, known: Mapping[str, Judge], spec: ModelSpec) -> Any:
    is_bound = name in LENGTHS or known.get(name) is is_length
    return min(value, spec.max_output_tokens) if is_bound and spec.max_output_tokens and is_length(value) else value


def _refusal(name: str, known: Mapping[str, Judge], spec: ModelSpec) -> str:
    named = name[:100]
    if name in known:
        return f"extra_args.{named} has a value that runners may not send to this model"
    may = ", ".join(sorted({*known, *spec.allow_args}))
    return (
        f"extra_args.{named} is not for runners to set; they may set {may}. "
        "Whoever runs the host can open more by allow_args of the model"
    )
