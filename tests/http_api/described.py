"""The operations of the API as its own document describes them."""

import re
from dataclasses import dataclass
from typing import Any

import paddock.compose.doors  # noqa: F401 - knows every door
from paddock.http_api.description.document import openapi
from paddock.http_api.edge.operations import Operations

DOCUMENT = openapi("test", Operations.__subclasses__())
JSON = "application/json"
SSE = "text/event-stream"


@dataclass(frozen=True)
class Described:
    method: str
    path: str
    about: Any

    @property
    def public(self) -> bool:
        return self.about.get("security") == []

    @property
    def role(self) -> str:
        return self.about["x-role"]

    @property
    def named(self) -> set[str]:
        """The names in its path."""
        return set(re.findall(r"{(\w+)}", self.path))

    def parameters(self, *places: str) -> set[str]:
        return {one["name"] for one in self.about.get("parameters", ()) if one["in"] in places}

    @property
    def body(self) -> Any:
        """An example of its JSON body; None when it has none."""
        return self.about.get("requestBody", {}).get("content", {}).get(JSON, {}).get("example")


OPERATIONS = [
    Described(method.upper(), path, about)
    for path, methods in DOCUMENT["paths"].items()
    for method, about in methods.items()
]
