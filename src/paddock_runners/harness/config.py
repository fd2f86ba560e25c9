"""Settings every harness has, as the agent's owner wrote them. A wrong one is one sentence that says what to write."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

OnPermission = Literal["ask", "deny", "allow"]
Afterwards = Literal["keep", "remove"]
ON_PERMISSION: tuple[OnPermission, ...] = ("ask", "deny", "allow")
AFTERWARDS: tuple[Afterwards, ...] = ("keep", "remove")


class ConfigError(ValueError):
    """The text names the setting and what to write."""


def select(name: str, label: str, options: Sequence[str], description: str) -> dict[str, Any]:
    """A field of the form with a few choices; the first is the default."""
    named = [{"name": option} for option in options]
    return {
        "name": name,
        "type": "select",
        "label": label,
        "default": options[0],
        "options": named,
        "description": description,
    }


COMMAND: Mapping[str, Any] = {
    "name": "command",
    "type": "string",
    "label": "Program",
    "default": "",
    "description": "Its name or path, when it is not on the PATH under its own name.",
}
FORM: tuple[Mapping[str, Any], ...] = (
    {"name": "model", "type": "string", "label": "Model", "default": ""},
    {"name": "api_key", "type": "password", "label": "Key of the model's provider"},
    {"name": "base_url", "type": "string", "label": "Address of the model's provider", "default": ""},
    {"name": "args", "type": "json", "label": "Further arguments", "default": []},
    {
        "name": "env",
        "type": "json",
        "label": "Variables",
        "default": [],
        "description": "Names of environment variables it is given; the host must allow them to runners (env_allow).",
    },
    {
        "name": "home",
        "type": "string",
        "label": "Home directory",
        "default": "",
        "description": "Where it finds its own settings and login. Empty: a fresh one for every conversation.",
    },
    select("on_permission", "When it asks for permission", ON_PERMISSION, "Ask the person, refuse, or allow."),
    {"name": "allow", "type": "json", "label": "Tools it may use without asking", "default": []},
    {"name": "deny", "type": "json", "label": "Tools it may never use", "default": []},
    select(
        "projection", "Context files after a turn", AFTERWARDS, "Keep them in the working directory, or remove them."
    ),
)


@dataclass(frozen=True, slots=True)
class Config:
    """What the form says, read."""

    command: str
    model: str
    api_key: str
    base_url: str
    args: tuple[str, ...]
    env: tuple[str, ...]
    home: str
    on_permission: OnPermission
    allow: tuple[str, ...]
    deny: tuple[str, ...]
    afterwards: Afterwards

    @classmethod
    def read(cls, said: Mapping[str, Any], *, program: str) -> "Config":
        """Raises ConfigError."""
        return cls(
            command=text(said, "command") or program,
            model=text(said, "model"),
            api_key=text(said, "api_key"),
            base_url=text(said, "base_url"),
            args=texts(said, "args"),
            env=texts(said, "env"),
            home=text(said, "home"),
            on_permission=cast("OnPermission", one_of(said, "on_permission", ON_PERMISSION)),
            allow=texts(said, "allow"),
            deny=texts(said, "deny"),
            afterwards=cast("Afterwards", one_of(said, "projection", AFTERWARDS)),
        )


def text(said: Mapping[str, Any], name: str) -> str:
    value = said.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ConfigError(f"config.{name} must be text, not {value!r}")
    return value.strip()


def texts(said: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = said.get(name)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in cast("list[Any]", value)):
        raise ConfigError(f"config.{name} must be a list of texts, not {value!r}")
    return tuple(cast("list[str]", value))


def one_of(said: Mapping[str, Any], name: str, known: Sequence[str]) -> str:
    value = said.get(name) or known[0]
    if value not in known:
        raise ConfigError(f"config.{name} must be one of: {', '.join(known)}; not {value!r}")
    return str(value)
