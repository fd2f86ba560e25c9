"""Every place where the host or an official runner opens a connection is known, with who names its address."""

import ast
from collections.abc import Iterator
from pathlib import Path

from paddock.rules.agents.specs import ModelSpec, PlatformSpec
from paddock_sdk.client import wire

TOP = Path(__file__).parents[2]
SOURCES = (TOP / "src", Path(wire.__file__).parents[1])
OPENING = {
    "AsyncClient",
    "Client",
    "ClientSession",
    "HTTPConnection",
    "HTTPSConnection",
    "urlopen",
    "create_connection",
    "open_connection",
    "open_unix_connection",
    "open_socket",
    "connect",
}
MODULES = {"httpx2", "httpx", "aiohttp", "http", "urllib", "socket", "asyncio", "websockets", "requests"}
KNOWN = {
    "paddock_sdk/outbound.py": "addresses of agents: public ones only, if they came over the API",
    "paddock/models/connections.py": "models: settings and agents file; redirects are not followed",
    "paddock/platforms/webhooks.py": "a type; the client is made by outbound",
    "paddock_sdk/endpoint.py": "the host's own socket, at L1",
    "paddock/models/loading.py": "an Ollama on this machine, found at start",
    "paddock/http_api/edge/tokens.py": "keys of the issuer: settings",
    "paddock/http_api/admin/runners.py": "another host of the cluster: from the database",
    "paddock/cli/plugin_work/dev.py": "whoever runs the command",
    "paddock/cli/plugin_work/dev_cluster.py": "whoever runs the command",
    "paddock_sdk/client/wire.py": "whoever runs the client",
}


def _opens(path: Path) -> Iterator[str]:
    """What a file uses that opens connections, by how the library calls it."""
    tree = ast.parse(path.read_text())
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in MODULES:
            names |= {one.asname or one.name: one.name for one in node.names}
        elif isinstance(node, ast.Import):
            names |= {(one.asname or one.name).split(".")[0]: one.name for one in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and names.get(node.id) in OPENING:
            yield node.id
        elif isinstance(node, ast.Attribute) and node.attr in OPENING:
            root = node.value
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name) and names.get(root.id, "").split(".")[0] in MODULES:
                yield f"{root.id}.{node.attr}"


def _found() -> dict[str, list[str]]:
    files = ((source, path) for source in SOURCES for path in sorted(source.rglob("*.py")))
    found = {
        str(path.relative_to(source if source.name == "src" else source.parent)): [*_opens(path)]
        for source, path in files
    }
    return {name: calls for name, calls in found.items() if calls}


def test_every_client_that_is_made_is_one_whose_addresses_are_known_to_be_safe() -> None:
    assert set(_found()) == set(KNOWN), _found()


def test_no_shape_that_names_an_address_of_a_model_or_a_platform_is_taken_by_the_api() -> None:
    """They are part of the settings and of the agents file; their addresses may be private."""
    doors = "".join(path.read_text() for path in sorted((TOP / "src" / "paddock" / "http_api").rglob("*.py")))
    assert [one.__name__ for one in (ModelSpec, PlatformSpec) if one.__name__ in doors] == []
    assert "McpServerSpec" not in doors
