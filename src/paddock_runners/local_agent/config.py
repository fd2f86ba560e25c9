"""Settings of the local agent, and those one run uses. Only read here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from paddock_runners.toolkit.values import listing, mapping
from paddock_runners.toolkit.words import both

OWN_TOOLS = ("remember", "search_history", "show")
RETRIEVAL = ("always", "tool", "off")
TITLES = ("words", "model", "off")
CHINESE = {"always": "始终", "tool": "工具", "off": "关闭", "words": "开头", "model": "模型"}
DEFAULT_INSTRUCTIONS = "You are a helpful assistant. Be brief and friendly."

FORM: Sequence[Mapping[str, Any]] = (
    {
        "name": "model",
        "type": "llm-model-selector",
        "label": both("Model", "模型"),
        "description": both(
            "Which model answers; unless set, the host's default model, or the cheapest one the agent may use.",
            "由哪个模型作答；不填则用主机的默认模型，若不可用则用该智能体可用的最便宜的一个。",
        ),
    },
    {
        "name": "max_iterations",
        "type": "integer",
        "label": both("Rounds of tool calls", "工具调用轮数"),
        "description": both("After so many the agent stops and says so.", "达到这个轮数后，智能体停止并说明原因。"),
        "default": 10,
    },
    {
        "name": "history_tokens",
        "type": "integer",
        "label": both("Tokens of history", "历史的 token 数"),
        "description": both(
            "How much of the conversation is shown to the model, at most; the model's window limits it too.",
            "最多把多少对话内容交给模型；同时受模型上下文窗口限制。",
        ),
        "default": 24_000,
    },
    {
        "name": "retrieval",
        "type": "select",
        "label": both("Knowledge", "知识"),
        "description": both(
            "always: passages are looked up for every message; tool: the model asks for them; off.",
            "始终：每条消息都检索；工具：由模型自行检索；关闭。",
        ),
        "default": "always",
        "options": [{"name": name, "label": both(name, CHINESE[name])} for name in RETRIEVAL],
    },
    {
        "name": "top_k",
        "type": "integer",
        "label": both("Passages", "段落数"),
        "description": both("From each base.", "每个知识库取多少段。"),
        "default": 3,
    },
    {
        "name": "approve",
        "type": "json",
        "label": both("Tools that need approval", "需要批准的工具"),
        "description": both(
            'Names of tools a person must agree to before each call; one may end in *, "*" means all.',
            "每次调用前须由人同意的工具名；末尾可用 *，“*” 表示全部。",
        ),
        "default": [],
    },
    {
        "name": "own_tools",
        "type": "json",
        "label": both("Tools of its own", "自带工具"),
        "description": both("Of remember, search_history, show.", "可选 remember、search_history、show。"),
        "default": list(OWN_TOOLS),
    },
    {
        "name": "title",
        "type": "select",
        "label": both("Title of a new conversation", "新对话的标题"),
        "description": both(
            "words: the first words of it; model: the model is asked once; off.",
            "开头：取对话的开头；模型：请模型起一次；关闭。",
        ),
        "default": "words",
        "options": [{"name": name, "label": both(name, CHINESE[name])} for name in TITLES],
    },
    {
        "name": "extra_args",
        "type": "json",
        "label": both("Further arguments of the model", "模型的其他参数"),
        "host_only": False,
        "description": both("Such as temperature.", "例如 temperature。"),
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
