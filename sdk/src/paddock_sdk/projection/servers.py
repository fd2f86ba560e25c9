"""MCP servers of a run, said in the form of each harness. Pure; no secret is in what it makes.

A token or a header's value stands in an environment variable, and the form names the variable. Only the list of an ACP
session holds values: it travels over a pipe and is never written down.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paddock_sdk.protocol.resources import McpResource

OWN = "host"
"""What the run's own endpoint is called in a harness: its tools are `mcp__host__...`, or alike."""
MAX_NAME = 48
_LIKE_OWN = re.compile(rf"^{OWN}_+")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Server:
    """One server, its secrets by the names of their variables."""

    name: str
    url: str
    sse: bool = False
    token_env: str | None = None
    header_envs: Mapping[str, str] = field(default_factory=dict[str, str])
    """Header to variable."""
    own: bool = False

    def headers(self, variable: str) -> dict[str, str]:
        """Headers whose values are references; `variable` says how to write one: `${{{}}}`, `$`..."""
        bearer = {"Authorization": f"Bearer {variable.format(self.token_env)}"} if self.token_env else {}
        return bearer | {header: variable.format(name) for header, name in self.header_envs.items()}


def servers_of(
    granted: Sequence[McpResource], *, mcp_url: str | None, token_env: str | None
) -> tuple[tuple[Server, ...], dict[str, str]]:
    """The servers of a run, and the variables that hold the values of their headers."""
    found: dict[str, Server] = {}
    variables: dict[str, str] = {}
    for server in granted:
        url = mcp_url if server.token_env else server.url
        if url is None or not url.startswith(("http://", "https://")):
            continue
        name = OWN if server.token_env else _free_name(server.name, found)
        envs: dict[str, str] = {}
        for header, value in server.headers.items():
            envs[header] = _free_variable(name, header, variables)
            variables[envs[header]] = value
        token = (token_env or server.token_env) if server.token_env else None
        found[name] = Server(name, url, server.transport == "sse", token, envs, own=bool(server.token_env))
    return tuple(found.values()), variables


def _free_name(name: str, taken: Mapping[str, object]) -> str:
    """A name every harness accepts, not taken yet, neither the run's own endpoint's nor one that is read like it."""
    plain = _LIKE_OWN.sub(f"{OWN}-", _UNSAFE.sub("-", name).strip("-"))[:MAX_NAME] or "server"
    names = (plain, *(f"{plain}-{number}" for number in range(2, 1000)))
    return next(one for one in names if one not in taken and one != OWN)


def _free_variable(server: str, header: str, taken: Mapping[str, object]) -> str:
    """No two headers share one: a server must not be told another's key."""
    plain = "PADDOCK_MCP_" + re.sub(r"[^A-Z0-9]+", "_", f"{server}_{header}".upper())
    names = (plain, *(f"{plain}_{number}" for number in range(2, 10_000)))
    return next(one for one in names if one not in taken)


# --- forms ----------------------------------------------------------------------------------------------------------


def claude(servers: Sequence[Server]) -> dict[str, Any]:
    """For `--mcp-config`. `alwaysLoad`: its tools are else hidden behind a search tool."""
    return {
        "mcpServers": {
            server.name: {
                "type": "sse" if server.sse else "http",
                "url": server.url,
                "alwaysLoad": True,
                "headers": server.headers("${{{}}}"),
            }
            for server in servers
        }
    }


OWN_OF_CODEX: Mapping[str, Any] = {"default_tools_approval_mode": "approve", "required": True}
"""Without `required` it would run without us."""
ASKED_OF_CODEX: Mapping[str, Any] = {"default_tools_approval_mode": "prompt"}
"""Before every call: else it believes a server that says of a tool that it changes nothing."""


def codex(servers: Sequence[Server]) -> dict[str, Any]:
    """For `config` of thread/start and thread/resume, or a config.toml."""
    return {"mcp_servers": {server.name: _codex(server) for server in servers}}


def _codex(server: Server) -> dict[str, Any]:
    said: dict[str, Any] = {"url": server.url}
    if server.token_env:
        said["bearer_token_env_var"] = server.token_env
    if server.header_envs:
        said["env_http_headers"] = dict(server.header_envs)
    return {**said, **(OWN_OF_CODEX if server.own else ASKED_OF_CODEX)}


def codex_arguments(servers: Sequence[Server]) -> list[str]:
    """Codex's MCP settings as `-c key=value`; only names of variables appear, no secrets."""
    arguments: list[str] = []
    for name, said in codex(servers)["mcp_servers"].items():
        for key, value in said.items():
            arguments += ["-c", f"mcp_servers.{name}.{key}={_toml(value)}"]
    return arguments


def codex_toml(servers: Sequence[Server]) -> str:
    tables = codex(servers)["mcp_servers"]
    return "\n".join(
        f"[mcp_servers.{name}]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in said.items())
        for name, said in tables.items()
    )


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(one)}" for key, one in value.items()) + "}"  # pyright: ignore[reportUnknownVariableType]
    return '"' + str(value).translate(_TOML_ESCAPES) + '"'


_TOML_ESCAPES = {code: f"\\u{code:04x}" for code in (*range(32), 127)} | {ord('"'): '\\"', ord("\\"): "\\\\"}


def gemini(servers: Sequence[Server]) -> dict[str, Any]:
    """For settings.json."""
    return {
        "mcpServers": {
            server.name: {"url" if server.sse else "httpUrl": server.url, "headers": server.headers("${{{}}}")}
            for server in servers
        }
    }


def opencode(servers: Sequence[Server]) -> dict[str, Any]:
    """For the file that OPENCODE_CONFIG names."""
    return {
        "mcp": {
            server.name: {
                "type": "remote",
                "url": server.url,
                "enabled": True,
                "oauth": False,
                "headers": server.headers("{{env:{}}}"),
            }
            for server in servers
        }
    }


def acp(servers: Sequence[Server], values: Mapping[str, str]) -> list[dict[str, Any]]:
    """For session/new, session/load and session/resume: here the values themselves, out of these variables."""
    return [
        {
            "type": "sse" if server.sse else "http",
            "name": server.name,
            "url": server.url,
            "headers": [{"name": name, "value": value} for name, value in _values(server, values).items()],
        }
        for server in servers
    ]


def _values(server: Server, values: Mapping[str, str]) -> dict[str, str]:
    token = values.get(server.token_env) if server.token_env else None
    bearer = {"Authorization": f"Bearer {token}"} if token else {}
    return bearer | {header: values[name] for header, name in server.header_envs.items() if name in values}
