"""Settings every harness has, as the agent's owner wrote them. A wrong one is one sentence that says what to write."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal, cast

from paddock_runners.toolkit.words import both

OnPermission = Literal["ask", "deny", "allow"]
Afterwards = Literal["keep", "remove"]
ON_PERMISSION: tuple[OnPermission, ...] = ("ask", "deny", "allow")
AFTERWARDS: tuple[Afterwards, ...] = ("keep", "remove")


class ConfigError(ValueError):
    """The text names the setting and what to write."""


CHINESE = {"ask": "询问", "deny": "拒绝", "allow": "允许", "keep": "保留", "remove": "删除"}
"""Of choices that are ours; what a harness calls its own stays as the harness calls it."""


def select(name: str, label: Mapping[str, str], options: Sequence[str], about: Mapping[str, str]) -> dict[str, Any]:
    """A field of the form with a few choices; the first is the default."""
    named = [
        {"name": option, "label": both(option, CHINESE[option])} if option in CHINESE else {"name": option}
        for option in options
    ]
    return {
        "name": name,
        "type": "select",
        "label": label,
        "default": options[0],
        "options": named,
        "description": about,
    }


COMMAND: Mapping[str, Any] = {
    "name": "command",
    "type": "string",
    "label": both("Program", "程序"),
    "default": "",
    "host_only": True,
    "description": both(
        "Its name or path, when it is not on the PATH under its own name.",
        "程序名或路径；若不在 PATH 中或名称不同时填写。",
    ),
}
FORM: tuple[Mapping[str, Any], ...] = (
    {"name": "model", "type": "string", "label": both("Model", "模型"), "default": ""},
    {"name": "api_key", "type": "password", "label": both("Key of the model's provider", "模型提供方的密钥")},
    {
        "name": "base_url",
        "type": "string",
        "label": both("Address of the model's provider", "模型提供方的地址"),
        "default": "",
        "host_only": True,
    },
    {
        "name": "args",
        "type": "json",
        "label": both("Further arguments", "其他参数"),
        "default": [],
        "host_only": True,
    },
    {
        "name": "env",
        "type": "json",
        "label": both("Variables", "环境变量"),
        "default": [],
        "host_only": True,
        "description": both(
            "Names of environment variables it is given; the host must allow them to runners (env_allow).",
            "交给它的环境变量名；主机须允许运行器使用它们（env_allow）。",
        ),
    },
    {
        "name": "home",
        "type": "string",
        "label": both("Home directory", "主目录"),
        "default": "",
        "host_only": True,
        "description": both(
            "Where it finds its own settings and login. Empty: a fresh one for every conversation.",
            "它查找自身设置和登录信息的位置。留空则每个对话用新的目录。",
        ),
    },
    select(
        "on_permission",
        both("When it asks for permission", "当它请求许可时"),
        ON_PERMISSION,
        both("Ask the person, refuse, or allow.", "询问人、拒绝或允许。"),
    ),
    {
        "name": "allow",
        "type": "json",
        "label": both("Tools it may use without asking", "无需询问即可使用的工具"),
        "default": [],
    },
    {"name": "deny", "type": "json", "label": both("Tools it may never use", "绝不可使用的工具"), "default": []},
    select(
        "projection",
        both("Context files after a turn", "一轮结束后的上下文文件"),
        AFTERWARDS,
        both("Keep them in the working directory, or remove them.", "保留在工作目录中，或删除。"),
    ),
)


@dataclass(frozen=True, slots=True)
class Config:
    """Settings of the agent, read from its form."""

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


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Tell if a tool's name matches a pattern of `allow` or `deny`."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)
