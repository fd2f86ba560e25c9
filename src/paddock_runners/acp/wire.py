"""The Agent Client Protocol from the client's side: JSON-RPC lines, version 1. Unknown updates are left alone.

We offer no files and no terminal of ours: the agent works in its own directory with its own tools.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from paddock_runners.acp.calls import Call, whole_text
from paddock_runners.acp.opening import Opening, offered_by
from paddock_runners.harness.attachments import Picture
from paddock_runners.harness.heard import (
    WHERE_KEYS_ARE,
    HarnessError,
    Heard,
    LostSessionError,
    Over,
    Permission,
    Piece,
    Session,
    ToolBegan,
    Used,
)
from paddock_runners.harness.obeyed import is_obeyed
from paddock_runners.harness.process import HarnessProcess
from paddock_runners.harness.rpc import RefusedError, RpcWire
from paddock_runners.toolkit.values import listing, mapping

VERSION = 1
QUIET_SECONDS, REPLAY_SECONDS = 0.5, 20.0
"""So long nothing is replayed any more, and so long we wait for that at most."""
AUTH_REQUIRED = -32000
CLIENT = {"name": "paddock", "title": "Paddock", "version": "0.1.0"}
CAPABILITIES: Mapping[str, Any] = {
    "fs": {"readTextFile": False, "writeTextFile": False},
    "terminal": False,
    "session": {"notices": {}},
}
"""Notices are taken so that an agent does not put them among its model's words."""
STOPPED: Mapping[str, Over] = {
    "end_turn": Over(),
    "max_tokens": Over("harness.cut", "the answer was cut: the model reached its output limit"),
    "max_turn_requests": Over("harness.cut", "it stopped after the most requests it may make in a turn"),
    "refusal": Over("harness.refused", "the model refused to go on"),
    "cancelled": Over("harness.interrupted", "the turn was interrupted"),
}
NOT_ALLOWED = Over("harness.refused", "it ended the turn, because it was not allowed to do what it asked for")
LOGIN = f"it wants a login, or its provider refused the key; {WHERE_KEYS_ARE}"
MAX_OFFERED = 30
TOOL_UPDATES = frozenset({"tool_call", "tool_call_update"})


class AcpWire(RpcWire):
    def __init__(self, process: HarnessProcess, opening: Opening) -> None:
        super().__init__(process)
        self._opening = opening
        self._session = ""
        self._replays = 0
        """Updates heard while a session was replayed."""
        self._replaying = self._takes_pictures = False
        self._calls: dict[str, Call] = {}
        self._growing: dict[str, Call] = {}
        """Calls that are not told yet, because the agent says piece by piece what they are called with."""
        self._refused: set[str] = set()
        """Calls that were not allowed and told so; what the agent still says of them is not told again."""
        self._questions: set[Any] = set()
        """Permissions it waits for."""
        self._interrupted = False
        self._trouble: str | None = None
        """Why the turn fails, in the agent's words, where it says so without ending the turn as a failure."""

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
        self.knows_page = _takes_instructions(can) or self._opening.imported
        self._takes_pictures = mapping(can.get("promptCapabilities")).get("image") is True
        if session_id is None:
            opened = await self._new(can)
        else:
            opened = await self._again(session_id, can)
        self._session = session_id or str(opened.get("sessionId"))
        await self.tell(Session(self._session))
        await self._adjust(opened)

    async def _new(self, can: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return await self.request("session/new", self._params(can))
        except RefusedError as refusal:
            if refusal.number == AUTH_REQUIRED:
                raise HarnessError("harness.unauthorized", LOGIN) from None
            raise

    def _params(self, can: Mapping[str, Any]) -> dict[str, Any]:
        return self._opening.params(takes_instructions=_takes_instructions(can))

    async def _again(self, session_id: str, can: Mapping[str, Any]) -> dict[str, Any]:
        """Resume where the agent can; loading replays the conversation, and what is replayed is not told again."""
        params = {**self._params(can), "sessionId": session_id}
        resumes = "resume" in mapping(can.get("sessionCapabilities"))
        if not resumes and not can.get("loadSession"):
            raise LostSessionError
        self._replaying = True
        try:
            opened = await self.request("session/resume" if resumes else "session/load", params)
            if not resumes:
                await self._replayed()
            return opened  # noqa: TRY300 - only what was asked can be refused
        except RefusedError as refusal:
            if refusal.number == AUTH_REQUIRED and "auth" in str(refusal).lower():  # the number alone may mean anything
                raise HarnessError("harness.unauthorized", LOGIN) from None
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
        if mode := self._opening.mode:
            offered = [
                str(mapping(one).get("id")) for one in listing(mapping(opened.get("modes")).get("availableModes"))
            ]
            await self._choose("mode", mode, offered, "session/set_mode", {"modeId": mode})
        if model := self._opening.model:
            options = [mapping(one) for one in listing(opened.get("configOptions"))]
            chooser = next((one for one in options if one.get("category") == "model"), None)
            if chooser is None:
                await self._choose("model", model, [], "session/set_model", {"modelId": model})
            else:
                about = {"configId": chooser.get("id"), "value": model}
                await self._choose("model", model, offered_by(chooser), "session/set_config_option", about)

    async def _choose(
        self, what: str, wish: str, offered: Sequence[str], method: str, about: Mapping[str, Any]
    ) -> None:
        """Raises HarnessError with what else could be chosen."""
        try:
            await self.request(method, {"sessionId": self._session, **about})
        except RefusedError as refusal:
            others = f"; it offers {', '.join(offered[:MAX_OFFERED])}" if offered else ""
            said = f"config.{what} is {wish!r}, and it does not take that ({refusal}){others}"
            raise HarnessError("agent.config_invalid", said) from None

    async def ask(self, text: str, pictures: Sequence[Picture] = ()) -> None:
        shown = [{"type": "image", "mimeType": one.mime_type, "data": one.base64} for one in pictures]
        prompt = [{"type": "text", "text": text}, *(shown if self._takes_pictures else [])]
        self.begin_request("session/prompt", {"sessionId": self._session, "prompt": prompt})

    async def steer(self, text: str) -> None:
        """The protocol has no word for it, so nobody asks for this."""
        raise HarnessError("harness.refused", f"it cannot take in further words in the middle of a turn: {text[:80]}")

    async def interrupt(self) -> None:
        """Answer every open request of the agent, as the protocol demands, and those it may still make."""
        if self._session:
            self._interrupted = True
            self.notify("session/cancel", {"sessionId": self._session})
            for key in list(self._questions):
                self._say(key, {"outcome": "cancelled"})

    def _say(self, key: Any, outcome: Mapping[str, Any]) -> None:
        """The answer to a question for permission, once."""
        if key in self._questions:
            self._questions.discard(key)
            self.reply(key, {"outcome": outcome})

    async def answer(self, asked: Permission, allowed: bool, why: str, *, stop: bool = False) -> None:  # noqa: ARG002 - ACP takes no reason
        kinds = ("allow_once", "allow_always") if allowed else ("reject_once", "reject_always")
        by_kind = {option.get("kind"): option.get("optionId") for option in reversed(asked.options)}
        chosen = next((by_kind[kind] for kind in kinds if kind in by_kind), None)
        outcome = {"outcome": "cancelled"} if stop or chosen is None else {"outcome": "selected", "optionId": chosen}
        self._say(asked.key, outcome)
        if not allowed:
            self._refused.add(asked.call_id)
        if stop:
            await self.interrupt()

    # --- what it asks and says ------------------------------------------------------------------------------------

    def asked(self, key: Any, method: str, params: dict[str, Any]) -> Iterable[Heard] | None:
        if method != "session/request_permission":
            return None
        self._questions.add(key)
        if self._interrupted:
            self._say(key, {"outcome": "cancelled"})
            return []
        said = mapping(params.get("toolCall"))
        call_id = str(said.get("toolCallId") or key)
        call = self._learn(call_id, said)
        options = tuple(mapping(option) for option in listing(params.get("options")))
        about, exact, at = call.shown(said), call.is_exact(said), self._opening
        obeyed = is_obeyed(call.writes, at.directory, at.obeys)
        permission = Permission(key, call_id, call.name, about, options, exact=exact, own=call.is_own, obeyed=obeyed)
        return [*self._told(), permission]

    def heard(self, method: str, params: dict[str, Any]) -> Iterable[Heard]:
        self._replays += self._replaying
        if method != "session/update" or self._replaying or params.get("sessionId") != self._session:
            return ()
        return self._update(mapping(params.get("update")))

    def answered(self, method: str, result: dict[str, Any]) -> Iterable[Heard]:
        if method == "session/prompt":
            yield from self._told()
            yield from _usage(mapping(result.get("usage")))
            yield self._last_word(str(result.get("stopReason")))

    def _last_word(self, reason: str) -> Over:
        if reason == "cancelled" and self._refused and not self._interrupted:
            return NOT_ALLOWED
        if reason == "end_turn" and self._trouble is not None:
            return Over("harness.failed", self._trouble.strip() or "the turn failed, and it does not say why")
        return STOPPED.get(reason, Over("harness.failed", f"it stopped for a reason we do not know: {reason[:80]}"))

    def refused(self, method: str, refusal: RefusedError) -> Iterable[Heard]:
        if method != "session/prompt":
            return
        yield from self._told()
        wants_login = refusal.number == AUTH_REQUIRED
        yield Over("harness.unauthorized", LOGIN) if wants_login else Over("harness.failed", str(refusal))

    def _update(self, update: dict[str, Any]) -> Iterator[Heard]:
        kind = update.get("sessionUpdate")
        if kind in TOOL_UPDATES:
            yield from self._tool(update)
            return
        yield from self._told()
        match kind:
            case "agent_message_chunk":
                yield from self._words(whole_text(update.get("content")))
            case "notice" if update.get("severity") == "error":
                yield Piece(f"({update.get('title')}: {update.get('description') or 'it says no more'})\n\n")
            case "session_info_update":
                self._status(mapping(mapping(update.get("_meta")).get("codex")))
            case "usage_update":
                yield from _cost(mapping(update.get("cost")))
            case _:
                return

    def _words(self, text: str) -> Iterator[Heard]:
        """After a failure its words are the reason for it, and none of the model's."""
        if self._trouble is None:
            yield Piece(text)
        else:
            self._trouble += text

    def _status(self, codex: Mapping[str, Any]) -> None:
        """Codex's adapter ends a turn that failed like one that went well; only the thread's state tells them apart."""
        status = mapping(codex.get("threadStatus")).get("type")
        if status is not None:
            self._trouble = "" if status == "systemError" else None

    def _tool(self, update: dict[str, Any]) -> Iterator[Heard]:
        """Some agents say only in the course of a call what it is called with; it is told when that is known."""
        call_id, status = str(update.get("toolCallId")), update.get("status")
        if update.get("sessionUpdate") == "tool_call":
            self._refused.discard(call_id)
        elif call_id in self._refused:
            return
        yield from self._told(but=call_id)
        call = self._learn(call_id, update)
        over = status in {"completed", "failed"}
        if call.comes_in_pieces and not over:
            self._growing[call_id] = call
        elif call.given or over:
            yield ToolBegan(call_id, call.name, call.given or call.about(update))
        if over:
            yield call.ended(call_id, update)
            self._calls.pop(call_id, None)
            self._growing.pop(call_id, None)

    def _told(self, but: str = "") -> Iterator[Heard]:
        """Something else is said: by now it is known what these calls are made with."""
        for call_id, call in list(self._growing.items()):
            if call_id != but:
                del self._growing[call_id]
                yield ToolBegan(call_id, call.name, call.given)

    def _learn(self, call_id: str, said: Mapping[str, Any]) -> Call:
        call = self._calls.setdefault(call_id, Call())
        call.learn(said)
        return call


def _takes_instructions(can: Mapping[str, Any]) -> bool:
    return "systemPrompt" in mapping(can.get("sessionCapabilities"))


def _usage(usage: Mapping[str, Any]) -> Iterator[Heard]:
    counts = {"prompt_tokens": usage.get("inputTokens"), "completion_tokens": usage.get("outputTokens")}
    known = {name: count for name, count in counts.items() if isinstance(count, int)}
    if known:
        yield Used(turn=known)


def _cost(cost: Mapping[str, Any]) -> Iterator[Heard]:
    if cost.get("currency") == "USD" and isinstance(cost.get("amount"), int | float):
        yield Used(totals={"cost_usd": float(cost["amount"])})
