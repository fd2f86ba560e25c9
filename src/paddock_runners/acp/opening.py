"""How a session with an ACP agent begins, and what it offers to choose from then. Values only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paddock_runners.toolkit.values import listing, mapping


@dataclass(frozen=True, slots=True)
class Opening:
    """How a session begins, or goes on."""

    directory: str
    servers: Sequence[Mapping[str, Any]] = field(repr=False)
    instructions: str = ""
    extensions: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """For the agents that know them; the others must leave them alone."""
    model: str = ""
    mode: str = ""
    auth: str = ""
    imported: bool = False
    """Whether the agent reads the instructions by itself."""
    obeys: Sequence[str] = ()
    """Names of files that this agent obeys besides those that every harness is kept from."""

    def params(self, *, takes_instructions: bool = False) -> dict[str, Any]:
        said = {"cwd": self.directory, "mcpServers": list(self.servers), "_meta": dict(self.extensions)}
        if takes_instructions and self.instructions:
            content = [{"type": "text", "text": self.instructions}]
            said["systemPrompt"] = {"mode": "append", "content": content}
        return said


def offered_by(chooser: Mapping[str, Any]) -> list[str]:
    """The values of an option; some agents put them in groups."""
    given = [mapping(one) for one in listing(chooser.get("options"))]
    flat = [mapping(inner) for one in given for inner in (listing(one.get("options")) or [one])]
    return [str(one.get("value")) for one in flat if one.get("value") is not None]
