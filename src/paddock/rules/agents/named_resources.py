"""What an agents file may bring along beside its agents: models, tools and MCP servers, by name. Pure.

The same words as in the settings; where both name one thing, the settings win: an operator can put another model in
the place of one that a team's file asks for.
"""

from collections.abc import Mapping
from pathlib import Path

from paddock.rules.agents.mcp_specs import McpServerSpec
from paddock.rules.agents.model_specs import ModelSpec
from paddock.rules.values import Value

FILE = "file:"
NO_MODELS: Mapping[str, ModelSpec] = {}
NO_SERVERS: Mapping[str, McpServerSpec] = {}


class NamedResources(Value, frozen=True):
    """`tools` are Python files and modules whose functions are tools."""

    models: Mapping[str, ModelSpec] = NO_MODELS
    tools: tuple[str, ...] = ()
    mcp_servers: Mapping[str, McpServerSpec] = NO_SERVERS

    def beside(self, directory: Path) -> "NamedResources":
        """The same, with every path that is relative meant from this directory."""
        return NamedResources(
            {name: _model_beside(spec, directory) for name, spec in self.models.items()},
            tuple(
                str(directory / Path(place).expanduser()) if place.endswith(".py") else place for place in self.tools
            ),
            {name: _server_beside(spec, directory) for name, spec in self.mcp_servers.items()},
        )


def _model_beside(spec: ModelSpec, directory: Path) -> ModelSpec:
    return spec if spec.key is None else spec.model_copy(update={"key": _reference(spec.key, directory)})


def _server_beside(spec: McpServerSpec, directory: Path) -> McpServerSpec:
    env = {name: _reference(value, directory) for name, value in spec.env.items()}
    headers = {name: _reference(value, directory) for name, value in spec.headers.items()}
    return spec.model_copy(update={"env": env, "headers": headers})


def _reference(value: str, directory: Path) -> str:
    if not value.startswith(FILE):
        return value
    return f"{FILE}{directory / Path(value.removeprefix(FILE)).expanduser()}"
