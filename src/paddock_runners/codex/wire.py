"""Codex's app-server: JSON-RPC lines. Threads are its sessions, turns our turns, items what happens in them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paddock_runners.codex import approvals
from paddock_runners.harness.attachments import Picture
from paddock_runners.harness.heard import (
    Heard,
    LostSessionError,
    Over,
    Permission,
    Piece,
    Session,
    ToolBegan,
    ToolEnded,
    Unreachable,
    Used,
    Whole,
)
from paddock_runners.harness.process import HarnessProcess
from paddock_runners.harness.rpc import RefusedError, RpcWire
from paddock_runners.toolkit.values import listing, mapping


def began(item: Mapping[str, Any]) -> Iterator[Heard]:
    call = _call(item)
    if call is not None:
        yield ToolBegan(str(item.get("id")), *call)


def ended(item: Mapping[str, Any]) -> Iterator[Heard]:
    call = _call(item)
    if call is None:
        return
    call_id, failed = str(item.get("id")), item.get("status") in {"failed", "declined"}
    words = _words(item)
    if failed:
        yield ToolEnded(call_id, call[0], error=words or str(item.get("status")))
    else:
        yield ToolEnded(call_id, call[0], result=words)


def _call(item: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The tool's name and what it is called with."""
    match item.get("type"):
        case "commandExecution":
            return "shell", {"command": item.get("command"), "cwd": item.get("cwd")}
        case "fileChange":
            return "apply_patch", {"changes": item.get("changes")}
        case "mcpToolCall":
            return f"mcp__{item.get('server')}__{item.get('tool')}", mapping(item.get("arguments"))
        case "webSearch":
            return "web_search", {"query": item.get("query")}
        case _:
            return None


def _words(item: Mapping[str, Any]) -> str:
    if item.get("type") == "commandExecution":
        output, status = str(item.get("aggregatedOutput") or ""), item.get("exitCode")
        return output if status in {0, None} else f"{output}\n(exit status {status})".lstrip()
    if item.get("type") == "mcpToolCall":
        error = mapping(item.get("error")).get("message")
        parts = map(mapping, listing(mapping(item.get("result")).get("content")))
        return str(error or "\n".join(str(part.get("text", f"({part.get('type')})")) for part in parts))
    return str(item.get("status") or "")


CLIENT = {"name": "paddock", "title": "Paddock", "version": "0.1.0"}
TRIES = 4
"""So often in a row it may say that it tries again (that takes half a minute); by itself it would do so for ever."""
LOST = ("no rollout found", "not found", "no such thread")


@dataclass(frozen=True, slots=True)
class Opening:
    """How a thread begins, or goes on."""

    directory: str
    instructions: str
    sandbox: str
    model: str
    config: Mapping[str, Any]

    def params(self) -> dict[str, Any]:
        """Codex judges nothing itself: what its sandbox does not allow, we are asked about."""
        said: dict[str, Any] = {
            "cwd": self.directory,
            "approvalPolicy": "on-request",
            "approvalsReviewer": "user",
            "sandbox": self.sandbox,
            "developerInstructions": self.instructions,
            "config": dict(self.config),
        }
        return said | ({"model": self.model} if self.model else {})


class CodexWire(RpcWire):
    steers = True
    header: Mapping[str, Any] = {}

    def __init__(self, process: HarnessProcess, opening: Opening) -> None:
        super().__init__(process)
        self._opening = opening
        self._thread = self._turn = ""
        self._items: dict[str, dict[str, Any]] = {}
        self._steering = self._tries = 0
        self._held: Over | None = None
        """The end of a turn, while it is not known whether words on their way came in time for it."""

    async def open(self, session_id: str | None) -> None:
        await self.request("initialize", {"clientInfo": CLIENT})
        self.notify("initialized", {})
        if session_id is None:
            said = await self.request("thread/start", self._opening.params())
        else:
            said = await self._resumed(session_id)
        self._thread = str(mapping(said.get("thread")).get("id"))
        await self.tell(Session(self._thread))

    async def _resumed(self, session_id: str) -> dict[str, Any]:
        params = {**self._opening.params(), "threadId": session_id, "excludeTurns": True}
        try:
            return await self.request("thread/resume", params)
        except RefusedError as refusal:
            if any(word in str(refusal).lower() for word in LOST):
                raise LostSessionError from None
            raise

    async def ask(self, text: str, pictures: Sequence[Picture] = ()) -> None:
        shown = [{"type": "localImage", "path": str(picture.path)} for picture in pictures]
        params = {"threadId": self._thread, "input": [{"type": "text", "text": text}, *shown]}
        said = await self.request("turn/start", params)
        self._turn = str(mapping(said.get("turn")).get("id"))

    async def steer(self, text: str) -> None:
        """Codex cuts its model short and asks again with the words. Too late for this turn, they begin another."""
        self._steering += 1
        where = {"threadId": self._thread, "expectedTurnId": self._turn}
        try:
            await self.request("turn/steer", {**where, "input": [{"type": "text", "text": text}]})
        except RefusedError:
            self._held = None
            self.begin_turn()
            await self.ask(text)
        finally:
            self._steering -= 1
            held, self._held = self._held, None
            if held is not None:
                await self.tell(held)

    async def interrupt(self) -> None:
        if self._turn:
            self.begin_request("turn/interrupt", {"threadId": self._thread, "turnId": self._turn})

    async def answer(self, asked: Permission, allowed: bool, why: str, *, stop: bool = False) -> None:  # noqa: ARG002 - Codex takes no reason
        key, method = asked.key
        word = "accept" if allowed else "cancel" if stop else "decline"
        self.reply(key, {"action": word} if method == approvals.ELICITATION else {"decision": word})
        if stop and method == approvals.ELICITATION:
            await self.interrupt()

    # --- what it asks and says ------------------------------------------------------------------------------------

    def asked(self, key: Any, method: str, params: dict[str, Any]) -> Iterable[Heard] | None:
        match method:
            case approvals.COMMAND:
                return [approvals.for_command(key, params)]
            case approvals.PATCH:
                return [approvals.for_patch(key, params, self._items, self._opening.directory)]
            case approvals.ELICITATION:
                asked = approvals.for_server(key, params, self._items.values())
                if asked is None:
                    self.reply(key, {"action": "decline"})  # a form of the server's: nobody here fills it in
                return [asked] if asked is not None else ()
            case "item/tool/requestUserInput":
                self.reply(key, {"answers": {}})  # a question in words: the person reads it in the answer
                return ()
            case _:
                return None

    def heard(self, method: str, params: dict[str, Any]) -> Iterable[Heard]:
        if params.get("threadId") not in {None, self._thread}:
            return ()  # what its helpers do
        return self._said(method, params)

    def _said(self, method: str, params: dict[str, Any]) -> Iterator[Heard]:
        self._tries = self._tries + 1 if method == "error" else 0
        match method:
            case "item/agentMessage/delta":
                yield Piece(str(params.get("delta") or ""))
            case "item/started" | "item/completed":
                yield from self._item(method, mapping(params.get("item")))
            case "thread/tokenUsage/updated":
                yield _used(mapping(mapping(params.get("tokenUsage")).get("total")))
            case "mcpServer/startupStatus/updated" if params.get("status") == "failed":
                yield Unreachable(str(params.get("name")))
            case "turn/started":
                self._turn = str(mapping(params.get("turn")).get("id"))
            case "turn/completed":
                yield from self._completed(mapping(params.get("turn")))
            case "error":
                yield from _complaint(params, self._tries)
            case _:
                return

    def _item(self, method: str, item: dict[str, Any]) -> Iterator[Heard]:
        if item.get("type") == "agentMessage":
            if method == "item/completed":
                yield Whole(str(item.get("text") or ""))
        elif method == "item/started":
            self._items[str(item.get("id"))] = item
            yield from began(item)
        else:
            self._items.pop(str(item.get("id")), None)
            yield from ended(item)

    def _completed(self, turn: dict[str, Any]) -> Iterator[Heard]:
        over = _over(turn)
        if self._steering and over.code is None:
            self._held = over
        else:
            yield over


def _over(turn: Mapping[str, Any]) -> Over:
    match turn.get("status"):
        case "completed":
            return Over()
        case "interrupted":
            return Over("harness.interrupted", "the turn was interrupted")
        case _:
            error = mapping(turn.get("error"))
            return Over(_code(error), str(error.get("message") or f"the turn ended as {turn.get('status')}"))


def _complaint(params: Mapping[str, Any], tries: int) -> Iterator[Heard]:
    """An error it goes on trying after is none yet, unless no further try can help, or it has tried enough."""
    error = mapping(params.get("error"))
    about = error.get("additionalDetails") or error.get("message")
    if not params.get("willRetry"):
        return
    if _code(error) == "harness.unauthorized":
        yield Over("harness.unauthorized", f"the model's provider refused the key: {about}")
    elif tries >= TRIES:
        yield Over("harness.failed", f"its model's provider cannot be reached: {about}", retryable=True)


def _code(error: Mapping[str, Any]) -> str:
    about = error.get("codexErrorInfo")
    status = next((mapping(one).get("httpStatusCode") for one in mapping(about).values()), None)
    return "harness.unauthorized" if about == "unauthorized" or status in {401, 403} else "harness.failed"


def _used(total: Mapping[str, Any]) -> Used:
    counts = {"prompt_tokens": total.get("inputTokens"), "completion_tokens": total.get("outputTokens")}
    return Used(totals={name: int(count) for name, count in counts.items() if isinstance(count, int)})
