"""One call of a tool as ACP agents tell it, piece by piece: its name, what it is called with, what came of it. Pure."""

import json
import re
from collections.abc import Mapping
from typing import Any

from paddock_runners.harness.heard import ToolEnded
from paddock_runners.toolkit.values import listing, mapping

OWN_SERVER = "host"
OWN_TOOL = re.compile(r"(?:mcp__host__|mcp_host_|host__)[\w-]+")
"""How agents call the tools of the run's own endpoint. What they may do is the host's decision at each call."""
SAID_OF_A_SERVER = re.compile(r"([\w-]+) \(([\w-]+) MCP Server\)")
"""How Gemini CLI calls a tool of a server."""
WRITING = frozenset({"edit", "delete", "move"})
PLACES = frozenset({"cwd", "workdir", "directory"})
COMMANDS = ("command", "cmd")
MAX_OUTPUT_CHARACTERS = 4 * 1024 * 1024
_NAME = re.compile(r"[\w.:-]{1,80}")


class Call:
    """One tool call as far as the agent has described it."""

    def __init__(self) -> None:
        self.name = ""
        self.given: dict[str, Any] = {}
        self.comes_in_pieces = False
        """Claude Code's adapter shows the arguments while the model still writes them."""
        self._draft: dict[str, Any] = {}
        self._kind = self._title = self._output = ""
        self._of_a_server = False
        self.writes: set[str] = set()
        """Files that it would change, as far as it says so."""

    def learn(self, said: Mapping[str, Any]) -> None:
        """The tool's name where the agent says it; the title is for people, and often the whole command."""
        meta, title = mapping(said.get("_meta")), str(said.get("title") or "")
        claude = mapping(meta.get("claudeCode"))
        self.comes_in_pieces = self.comes_in_pieces or bool(claude)
        self.given = mapping(said.get("rawInput")) or self.given
        self._kind, self._title = str(said.get("kind") or self._kind), title or self._title
        self._of_a_server = self._of_a_server or meta.get("is_mcp_tool_call") is True
        self.name = str(claude.get("toolName") or self.name or said.get("name") or self._plain(title) or "tool")
        self._draft = _object_in(_shown_text(said)) or self._draft
        self.writes |= _changed(said)
        if self._kind in WRITING:
            self.writes |= _named(said)
        self._hear(mapping(meta.get("terminal_output_delta") or meta.get("terminal_output")))

    def _plain(self, title: str) -> str:
        if (said := SAID_OF_A_SERVER.fullmatch(title)) and not self._is_command:
            return f"mcp__{said[2]}__{said[1]}"
        return title if _NAME.fullmatch(title) and title not in self._commands else self._kind

    @property
    def _commands(self) -> list[Any]:
        """Commands written by a model; they must not be taken for the name of a tool."""
        return [self.given[name] for name in COMMANDS if name in self.given]

    @property
    def _is_command(self) -> bool:
        """True when a model may have written the title."""
        return bool(self._commands) or self._kind == "execute"

    def _hear(self, output: Mapping[str, Any]) -> None:
        room = MAX_OUTPUT_CHARACTERS - len(self._output)
        self._output += str(output.get("data") or "")[:room]

    @property
    def is_own(self) -> bool:
        """True for a tool of the run's own endpoint."""
        if self._of_a_server:
            return self.given.get("server") == OWN_SERVER
        return OWN_TOOL.fullmatch(self.name) is not None and not self._is_command

    def about(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments of the call, as far as the agent tells them."""
        return self.given or self._draft or self.shown(said)

    def shown(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """All that describes it when a person is asked; some agents say it in the arguments, some in words."""
        title, content = str(said.get("title") or ""), listing(said.get("content"))
        words = ({"title": title} if title and title != self.name else {}) | ({"content": content} if content else {})
        return {**(self.given or self._draft), **words}

    def is_exact(self, said: Mapping[str, Any]) -> bool:
        """True when more than the tool and its location is known."""
        return bool(set(self.shown(said)) - PLACES)

    def ended(self, call_id: str, said: Mapping[str, Any]) -> ToolEnded:
        words = _answer(said) or self._output
        if said.get("status") == "failed":
            return ToolEnded(call_id, self.name, error=words or "it failed")
        return ToolEnded(call_id, self.name, result=words)


def _changed(said: Mapping[str, Any]) -> set[str]:
    """Files of which it shows what they become."""
    shown = [mapping(part) for part in listing(said.get("content"))]
    return {path for part in shown if part.get("type") == "diff" and isinstance(path := part.get("path"), str)}


def _named(said: Mapping[str, Any]) -> set[str]:
    """Files that a call is about: agents name them beside it, in its arguments, or both."""
    beside = [mapping(one).get("path") for one in listing(said.get("locations"))]
    given = mapping(said.get("rawInput")).items()
    told = [value for name, value in given if name.casefold().replace("_", "").endswith(("path", "file"))]
    return {path for path in (*beside, *told) if isinstance(path, str)}


def whole_text(content: object) -> str:
    return str(mapping(content).get("text") or "")


def _answer(said: Mapping[str, Any]) -> str:
    """Answer of the tool as the model got it, else as it is shown to people."""
    raw = said.get("rawOutput")
    return (raw if isinstance(raw, str) else _of_a_server(mapping(raw))) or _shown_text(said)


def _of_a_server(raw: Mapping[str, Any]) -> str:
    """An answer of an MCP server, handed on as it came."""
    parts = [whole_text(part) for part in listing(mapping(raw.get("result")).get("content"))]
    return "\n".join(part for part in parts if part) or str(mapping(raw.get("error")).get("message") or "")


def _shown_text(said: Mapping[str, Any]) -> str:
    parts = [whole_text(mapping(part).get("content")) for part in listing(said.get("content"))]
    return "\n".join(part for part in parts if part)


def _object_in(text: str) -> dict[str, Any]:
    """Arguments that an agent shows as text; half of them are none yet."""
    try:
        return mapping(json.loads(text)) if text.startswith("{") else {}
    except ValueError:
        return {}
