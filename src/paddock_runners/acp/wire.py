"""The Agent Client Protocol from the client's side: JSON-RPC lines, version 1. Unknown updates are left alone.

We offer no files and no terminal of ours: the agent works in its own directory with its own tools.
"""

import asyncio
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from paddock_runners.harness.attachments import Picture
from paddock_runners.harness.heard import (
    HarnessError,
    Heard,
    LostSessionError,
    Over,
    Permission,
    Piece,
    Session,
    ToolBegan,
    ToolEnded,
    Used,
)
from paddock_runners.harness.process import HarnessProcess
from paddock_runners.harness.rpc import RefusedError, RpcWire
from paddock_runners.toolkit.values import listing, mapping

VERSION = 1
QUIET_SECONDS, REPLAY_SECONDS = 0.5, 20.0
"""So long nothing is replayed any more, and so long we wait for that at most."""
AUTH_REQUIRED = -32000
CLIENT = {"name": "paddock", "title": "Paddock", "version": "0.1.0"}
CAPABILITIES = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
OWN_TOOL = re.compile(r"mcp__host__|mcp_host_|host__|.*\(host MCP Server\)$")
"""How agents call the tools of the run's own endpoint. What they may do is the host's decision at each call."""
STOPPED: Mapping[str, Over] = {
    "end_turn": Over(),
    "max_tokens": Over("harness.cut", "the answer was cut: the model reached its output limit"),
    "max_turn_requests": Over("harness.cut", "it stopped after the most requests it may make in a turn"),
    "refusal": Over("harness.refused", "the model refused to go on"),
    "cancelled": Over("harness.interrupted", "the turn was interrupted"),
}
PLACES = frozenset({"cwd", "workdir", "directory"})
_NAME = re.compile(r"[\w.:-]{1,80}")


@dataclass(frozen=True, slots=True)
class Opening:
    """How a session begins, or goes on."""

    directory: str
    servers: Sequence[Mapping[str, Any]] = field(repr=False)
    instructions: str = ""
    model: str = ""
    mode: str = ""
    auth: str = ""

    def params(self) -> dict[str, Any]:
        """Extensions are for the agents that know them; the others must leave them alone."""
        extra = {"systemPrompt": {"append": self.instructions}}
        return {"cwd": self.directory, "mcpServers": list(self.servers), "_meta": extra}


class AcpWire(RpcWire):
    def __init__(self, process: HarnessProcess, opening: Opening) -> None:
        super().__init__(process)
        self._opening = opening
        self._session = ""
        self._replays = 0
        """Updates heard while a session was replayed."""
        self._replaying = self._takes_pictures = False
        self._calls: dict[str, Call] = {}
        self._refused: set[str] = set()
        """Calls that were not allowed and told so; what the agent still says of them is not told again."""

    async def open(self, session_id: str | None) -> None:
        said = await self.request(
            "initialize", {"protocolVersion": VERSION, "clientCapabilities": CAPABILITIES, "clientInfo": CLIENT}
        )
        if said.get("protocolVersion") != VERSION:
            raise HarnessError(
                "harness.refused", f"it speaks version {said.get('protocolVersion')} of ACP, not {VERSION}"
            )
        if self._opening.auth:
            await self.request("authenticate", {"methodId": self._opening.auth})
        can = mapping(said.get("agentCapabilities"))
        self._takes_pictures = mapping(can.get("promptCapabilities")).get("image") is True
        if session_id is None:
            opened = await self._new()
        else:
            opened = await self._again(session_id, can)
        self._session = session_id or str(opened.get("sessionId"))
        await self.tell(Session(self._session))
        await self._adjust(opened)

    async def _new(self) -> dict[str, Any]:
        try:
            return await self.request("session/new", self._opening.params())
        except RefusedError as refusal:
            if refusal.number == AUTH_REQUIRED:
                said = "it wants a login first; log in where its home directory is, or set config.auth"
                raise HarnessError("harness.unauthorized", said) from None
            raise

    async def _again(self, session_id: str, can: Mapping[str, Any]) -> dict[str, Any]:
        """Resume where the agent can; loading replays the conversation, and what is replayed is not told again."""
        params = {**self._opening.params(), "sessionId": session_id}
        resumes = "resume" in mapping(can.get("sessionCapabilities"))
        if not resumes and not can.get("loadSession"):
            raise LostSessionError
        self._replaying = True
        try:
            opened = await self.request("session/resume" if resumes else "session/load", params)
            if not resumes:
                await self._replayed()
            return opened  # noqa: TRY300 - only what was asked can be refused
        except RefusedError:
            raise LostSessionError from None
        finally:
            self._replaying = False

    async def _replayed(self) -> None:
        """Gemini CLI goes on replaying after it has answered: wait until it is quiet, though not for ever."""
        with suppress(TimeoutError):
            async with asyncio.timeout(REPLAY_SECONDS):
                while self._replays != await self._a_moment_later():
                    pass

    async def _a_moment_later(self) -> int:
        await asyncio.sleep(QUIET_SECONDS)
        return self._replays

    async def _adjust(self, opened: Mapping[str, Any]) -> None:
        if self._opening.mode:
            await self.request("session/set_mode", {"sessionId": self._session, "modeId": self._opening.mode})
        if not self._opening.model:
            return
        options = [mapping(one) for one in listing(opened.get("configOptions"))]
        chooser = next((one for one in options if one.get("category") == "model"), None)
        if chooser is not None:
            params = {"sessionId": self._session, "configId": chooser.get("id"), "value": self._opening.model}
            await self.request("session/set_config_option", params)
        else:
            await self.request("session/set_model", {"sessionId": self._session, "modelId": self._opening.model})

    async def ask(self, text: str, pictures: Sequence[Picture] = ()) -> None:
        shown = [{"type": "image", "mimeType": one.mime_type, "data": one.base64} for one in pictures]
        prompt = [{"type": "text", "text": text}, *(shown if self._takes_pictures else [])]
        self.begin_request("session/prompt", {"sessionId": self._session, "prompt": prompt})

    async def steer(self, text: str) -> None:
        """The protocol has no word for it, so nobody asks for this."""
        raise HarnessError("harness.refused", f"it cannot take in further words in the middle of a turn: {text[:80]}")

    async def interrupt(self) -> None:
        if self._session:
            self.notify("session/cancel", {"sessionId": self._session})

    async def answer(self, asked: Permission, allowed: bool, why: str, *, stop: bool = False) -> None:  # noqa: ARG002 - ACP takes no reason
        kinds = ("allow_once", "allow_always") if allowed else ("reject_once", "reject_always")
        by_kind = {option.get("kind"): option.get("optionId") for option in reversed(asked.options)}
        chosen = next((by_kind[kind] for kind in kinds if kind in by_kind), None)
        outcome = {"outcome": "cancelled"} if stop or chosen is None else {"outcome": "selected", "optionId": chosen}
        self.reply(asked.key, {"outcome": outcome})
        if not allowed:
            self._refused.add(asked.call_id)
        if stop:
            await self.interrupt()

    # --- what it asks and says ------------------------------------------------------------------------------------

    def asked(self, key: Any, method: str, params: dict[str, Any]) -> Iterable[Heard] | None:
        if method != "session/request_permission":
            return None
        said = mapping(params.get("toolCall"))
        call_id = str(said.get("toolCallId") or key)
        call = self._learn(call_id, said)
        options = tuple(mapping(option) for option in listing(params.get("options")))
        own = OWN_TOOL.match(call.name) is not None
        about, exact = call.shown(said), call.is_exact(said)
        return [Permission(key, call_id, call.name, about, options, exact=exact, own=own)]

    def heard(self, method: str, params: dict[str, Any]) -> Iterable[Heard]:
        self._replays += self._replaying
        if method != "session/update" or self._replaying or params.get("sessionId") != self._session:
            return ()
        return self._update(mapping(params.get("update")))

    def answered(self, method: str, result: dict[str, Any]) -> Iterable[Heard]:
        if method == "session/prompt":
            yield from _usage(mapping(result.get("usage")))
            reason = str(result.get("stopReason"))
            yield STOPPED.get(reason, Over("harness.failed", f"it stopped for a reason we do not know: {reason[:80]}"))

    def refused(self, method: str, refusal: RefusedError) -> Iterable[Heard]:
        if method == "session/prompt":
            yield Over("harness.failed", str(refusal))

    def _update(self, update: dict[str, Any]) -> Iterator[Heard]:
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                yield Piece(str(mapping(update.get("content")).get("text") or ""))
            case "tool_call" | "tool_call_update":
                yield from self._tool(update)
            case "usage_update":
                cost = mapping(update.get("cost"))
                if cost.get("currency") == "USD" and isinstance(cost.get("amount"), int | float):
                    yield Used(totals={"cost_usd": float(cost["amount"])})
            case _:
                return

    def _tool(self, update: dict[str, Any]) -> Iterator[Heard]:
        """Some agents say only in the course of a call what it is called with; it is told when that is known."""
        call_id, status = str(update.get("toolCallId")), update.get("status")
        if update.get("sessionUpdate") == "tool_call":
            self._refused.discard(call_id)
        elif call_id in self._refused:
            return
        call = self._learn(call_id, update)
        over = status in {"completed", "failed"}
        if call.given or over:
            yield ToolBegan(call_id, call.name, call.given or call.about(update))
        if over:
            words = _words(update)
            error = (words or "it failed") if status == "failed" else None
            yield ToolEnded(call_id, call.name, error=error) if error else ToolEnded(call_id, call.name, result=words)
            self._calls.pop(call_id, None)

    def _learn(self, call_id: str, said: Mapping[str, Any]) -> "Call":
        call = self._calls.setdefault(call_id, Call())
        call.learn(said)
        return call


class Call:
    """What is known of one call of a tool, piece by piece."""

    def __init__(self) -> None:
        self.name = ""
        self.given: dict[str, Any] = {}
        self._draft: dict[str, Any] = {}

    def learn(self, said: Mapping[str, Any]) -> None:
        """The tool's name where the agent says it; the title is for people, and often the whole command."""
        told = mapping(mapping(said.get("_meta")).get("claudeCode")).get("toolName")
        title = str(said.get("title") or "")
        plain = title if _NAME.fullmatch(title) or OWN_TOOL.match(title) else ""
        self.name = str(told or self.name or plain or said.get("kind") or "tool")
        self.given = mapping(said.get("rawInput")) or self.given
        self._draft = _object_in(_words(said)) or self._draft

    def about(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """What it is called with, as far as the agent tells."""
        return self.given or self._draft or self.shown(said)

    def shown(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """All that describes it when a person is asked; some agents say it in the arguments, some in words."""
        title, content = str(said.get("title") or ""), listing(said.get("content"))
        words = ({"title": title} if title and title != self.name else {}) | ({"content": content} if content else {})
        return {**(self.given or self._draft), **words}

    def is_exact(self, said: Mapping[str, Any]) -> bool:
        """Whether more is told than which tool, and where."""
        return bool(set(self.shown(said)) - PLACES)


def _object_in(text: str) -> dict[str, Any]:
    """Arguments that an agent shows as text; half of them are none yet."""
    try:
        return mapping(json.loads(text)) if text.startswith("{") else {}
    except ValueError:
        return {}


def _usage(usage: Mapping[str, Any]) -> Iterator[Heard]:
    counts = {"prompt_tokens": usage.get("inputTokens"), "completion_tokens": usage.get("outputTokens")}
    known = {name: count for name, count in counts.items() if isinstance(count, int)}
    if known:
        yield Used(turn=known)


def _words(update: Mapping[str, Any]) -> str:
    """What a tool answered: its content in words, else what it gave to the model."""
    parts = [mapping(mapping(part).get("content")).get("text") for part in listing(update.get("content"))]
    told = "\n".join(str(part) for part in parts if part)
    raw = update.get("rawOutput")
    return told or (raw if isinstance(raw, str) else "")
