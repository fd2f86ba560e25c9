"""What an agent's owner can set, and what of it one run uses. Only read here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from paddock_runners.toolkit.values import listing, mapping

OWN_TOOLS = ("remember", "search_history", "show")
RETRIEVAL = ("always", "tool", "off")
TITLES = ("words", "model", "off")
DEFAULT_INSTRUCTIONS = "You are a helpful assistant. Be brief and friendly."

FORM: Sequence[Mapping[str, Any]] = (
    {
        "name": "model",
        "type": "llm-model-selector",
        "label": "Model",
        "description": "Which model answers; unless set, the first one the agent may use.",
    },
    {
        "name": "max_iterations",
        "type": "integer",
        "label": "Rounds of tool calls",
        "description": "After so many the agent stops and says so.",
        "default": 10,
    },
    {
        "name": "history_tokens",
        "type": "integer",
        "label": "Tokens of history",
        "description": "How much of the conversation is shown to the model, at most; the model's window limits it too.",
        "default": 24_000,
    },
    {
        "name": "retrieval",
        "type": "select",
        "label": "Knowledge",
        "description": "always: passages are looked up for every message; tool: the model asks for them; off.",
        "default": "always",
        "options": [{"name": name} for name in RETRIEVAL],
    },
    {"name": "top_k", "type": "integer", "label": "Passages", "description": "From each base.", "default": 3},
    {
        "name": "approve",
        "type": "json",
        "label": "Tools that need approval",
        "description": 'Names of tools a person must agree to before each call; one may end in *, "*" means all.',
        "default": [],
    },
    {
        "name": "own_tools",
        "type": "json",
        "label": "Tools of its own",
        "description": "Of remember, search_history, show.",
        "default": list(OWN_TOOLS),
    },
    {
        "name": "title",
        "type": "select",
        "label": "Title of a new conversation",
        "description": "words: the first words of it; model: the model is asked once; off.",
        "default": "words",
        "options": [{"name": name} for name in TITLES],
    },
    {
        "name": "extra_args",
        "type": "json",
        "label": "Further arguments of the model",
        "description": "Such as temperature.",
        "default": {},
    },
)


DEFAULTS = {field["name"]: field.get("default") for field in FORM}


class ConfigError(ValueError):
    """A setting that cannot be used; the text says which and what to write."""


@dataclass(frozen=True, slots=True)
class Config:
    model: str
    max_iterations: int
    history_tokens: int
    retrieval: str
    top_k: int
    approve: tuple[str, ...]
    own_tools: tuple[str, ...]
    title: str
    extra_args: Mapping[str, Any]
    instructions: str
    context: tuple[Mapping[str, Any], ...]

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> "Config":
        """Raises ConfigError."""
        said = DEFAULTS | dict(given)
        return cls(
            model=str(said["model"] or ""),
            max_iterations=_number(said, "max_iterations", 1, 100),
            history_tokens=_number(said, "history_tokens", 200, 1_000_000),
            retrieval=_one_of(said, "retrieval", RETRIEVAL),
            top_k=_number(said, "top_k", 1, 20),
            approve=_names(said, "approve"),
            own_tools=_names(said, "own_tools"),
            title=_one_of(said, "title", TITLES),
            extra_args=_object(said, "extra_args"),
            instructions=str(said.get("instructions") or DEFAULT_INSTRUCTIONS),
            context=tuple(mapping(one) for one in listing(said.get("context"))),
        )

    def needs_approval(self, tool_name: str) -> bool:
        return any(
            tool_name.startswith(pattern[:-1]) if pattern.endswith("*") else tool_name == pattern
            for pattern in self.approve
        )


def _number(said: Mapping[str, Any], name: str, least: int, most: int) -> int:
    value = said[name]
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ConfigError(f"config.{name} must be a whole number from {least} to {most}, not {value!r}")
    return value


def _one_of(said: Mapping[str, Any], name: str, known: Sequence[str]) -> str:
    if said[name] not in known:
        raise ConfigError(f"config.{name} must be one of: {', '.join(known)}; not {said[name]!r}")
    return str(said[name])


def _names(said: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = said[name]
    if not isinstance(value, list) or not all(isinstance(one, str) for one in cast("list[Any]", value)):
        raise ConfigError(f"config.{name} must be a list of names of tools, not {value!r}")
    return tuple(cast("list[str]", value))


def _object(said: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    if not isinstance(said[name], dict):
        raise ConfigError(f"config.{name} must be an object, not {said[name]!r}")
    return cast("dict[str, Any]", said[name])
