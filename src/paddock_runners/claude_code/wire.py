"""Claude Code's stream-json, both ways. One line, one meaning; what is not known here is left alone.

The same text comes three times: in pieces, in the finished block and in the result. Pieces and blocks are read, the
result never is.
"""

import asyncio
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from paddock_runners.harness.attachments import Picture
from paddock_runners.harness.heard import (
    WHERE_KEYS_ARE,
    WHICH_VERSION,
    HarnessError,
    Heard,
    LostSessionError,
    Over,
    Permission,
    Piece,
    Question,
    Session,
    ToolBegan,
    ToolEnded,
    Unreachable,
    Used,
    Whole,
)
from paddock_runners.harness.process import HarnessProcess
from paddock_runners.harness.wire import Wire
from paddock_runners.toolkit.values import listing, mapping

TOOL = "AskUserQuestion"


def words_of(given: Mapping[str, Any]) -> str:
    """Each question with what may be chosen; nothing when it asks nothing."""
    return "\n\n".join(filter(None, map(_words, _questions(given))))


def choices_of(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Where one of them is the whole answer."""
    questions = _questions(given)
    if len(questions) != 1 or questions[0].get("multiSelect"):
        return ()
    return tuple(str(option["label"]) for option in _options(questions[0]))


def _questions(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [asked for one in listing(given.get("questions")) if (asked := mapping(one)).get("question")]


def _options(question: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [option for one in listing(question.get("options")) if (option := mapping(one)).get("label")]


def _words(question: Mapping[str, Any]) -> str:
    offered = [f"- {option['label']}" + _more(option.get("description")) for option in _options(question)]
    return "\n".join([str(question["question"]), *offered])


def _more(description: object) -> str:
    return f": {description}" if description else ""


START_SECONDS = 60.0
LOST = "No conversation found"
MADE_UP = "<synthetic>"
"""The model of messages that Claude Code writes itself, such as an error of the provider in words."""
NO_LOGIN = "authentication_failed"
NOT_REACHED = frozenset({"failed", "needs-auth"})
FINAL_STATUS = frozenset({401, 403})
NOT_DONE = "The user is asked for permission first. Stop here; the answer comes with the next message."
ASKED = "The user is shown the question. Stop here; the answer comes with the next message."


class ClaudeWire(Wire):
    steers = True

    def __init__(self, process: HarnessProcess, servers: frozenset[str] = frozenset()) -> None:
        super().__init__(process)
        self._servers = servers
        self._greeted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._read = self._written = 0
        """Tokens so far; each result counts its own, the cost alone goes on."""
        self._trouble: object = None
        """What kind of error its own last words were about."""
        self._not_taken_in: set[str] = set()
        """What was added in the middle of the turn and not yet read by the model: each begins a turn if need be."""

        self._readers: dict[str, Callable[[dict[str, Any]], Iterable[Heard]]] = {
            "stream_event": self._streamed,
            "assistant": self._finished,
            "user": self._user,
            "system": self._system,
            "control_request": self._asked,
            "control_response": self._answered,
            "result": self._result,
        }

    async def open(self, session_id: str | None) -> None:
        self._control({"subtype": "initialize"})
        try:
            await asyncio.wait_for(asyncio.shield(self._greeted), START_SECONDS)
        except TimeoutError:
            said = f"it was not ready within {START_SECONDS:.0f} seconds"
            raise HarnessError("harness.not_started", said, retryable=True) from None
        except HarnessError:
            if session_id and LOST in self.process.complaints:
                raise LostSessionError from None
            raise

    async def ask(self, text: str, pictures: Sequence[Picture] = ()) -> None:
        shown = [{"type": "image", "source": _source(picture)} for picture in pictures]
        self._say([{"type": "text", "text": text}, *shown] if shown else text)

    async def steer(self, text: str) -> None:
        mark = str(uuid.uuid4())
        self._not_taken_in.add(mark)
        self._say(text, uuid=mark)

    async def interrupt(self) -> None:
        self._control({"subtype": "interrupt"})

    async def answer(self, asked: Permission, allowed: bool, why: str, *, stop: bool = False) -> None:
        if allowed:
            verdict: dict[str, Any] = {"behavior": "allow", "updatedInput": asked.parameters}
        else:
            verdict = {"behavior": "deny", "message": _end(asked) if stop else why, "interrupt": stop}
        response = {"subtype": "success", "request_id": asked.key, "response": verdict}
        self.write({"type": "control_response", "response": response})

    def _say(self, content: str | Sequence[Mapping[str, Any]], **more: Any) -> None:
        self.write({"type": "user", "message": {"role": "user", "content": content}, **more})

    def _control(self, request: dict[str, Any]) -> None:
        self.write({"type": "control_request", "request_id": str(uuid.uuid4()), "request": request})

    # --- what it says ---------------------------------------------------------------------------------------

    def read(self, said: dict[str, Any]) -> Iterable[Heard]:
        if said.get("parent_tool_use_id"):
            return ()  # what its helpers say among themselves
        reader = self._readers.get(str(said.get("type")))
        return reader(said) if reader is not None else ()

    def on_silence(self) -> None:
        if not self._greeted.done():
            why = self.process.complaints[-500:] or "it ended at once"
            self._greeted.set_exception(HarnessError("harness.not_started", f"{why}; {WHICH_VERSION}"))
            self._greeted.exception()

    def _answered(self, _said: dict[str, Any]) -> Iterable[Heard]:
        if not self._greeted.done():
            self._greeted.set_result(None)
        return ()

    def _streamed(self, said: dict[str, Any]) -> Iterator[Heard]:
        event = mapping(said.get("event"))
        about = mapping(event.get("delta"))
        if event.get("type") == "content_block_delta" and about.get("type") == "text_delta":
            yield Piece(str(about.get("text") or ""))

    def _finished(self, said: dict[str, Any]) -> Iterator[Heard]:
        message = mapping(said.get("message"))
        if message.get("model") == MADE_UP:
            self._trouble = said.get("error")
            return
        for block in map(mapping, listing(message.get("content"))):
            if block.get("type") == "text":
                yield Whole(str(block.get("text") or ""))
            elif block.get("type") == "tool_use":
                yield ToolBegan(str(block.get("id")), str(block.get("name")), mapping(block.get("input")))

    def _user(self, said: dict[str, Any]) -> Iterator[Heard]:
        if said.get("isReplay"):
            self._not_taken_in.discard(str(said.get("uuid")))
            return
        for block in map(mapping, listing(mapping(said.get("message")).get("content"))):
            if block.get("type") == "tool_result":
                words = text_of(block.get("content"))
                call_id, is_error = str(block.get("tool_use_id")), bool(block.get("is_error"))
                yield ToolEnded(call_id, error=words) if is_error else ToolEnded(call_id, result=words)

    def _system(self, said: dict[str, Any]) -> Iterator[Heard]:
        match said.get("subtype"):
            case "init":
                yield Session(str(said.get("session_id")))
                yield from self._unreachable(said)
            case "api_retry" if said.get("error_status") in FINAL_STATUS:
                message = f"the model's provider refused the key (status {said.get('error_status')})"
                yield Over("harness.unauthorized", message)
            case _:
                return

    def _unreachable(self, said: dict[str, Any]) -> Iterator[Heard]:
        """Without the host's tools it would go on, and nobody would know why. Without another's it may, and says so."""
        for server in map(mapping, listing(said.get("mcp_servers"))):
            if server.get("status") not in NOT_REACHED:
                continue
            if server.get("name") in self._servers:
                yield Over("harness.mcp_unreachable", "it could not reach the host's tools over MCP", retryable=True)
            else:
                yield Unreachable(str(server.get("name")))

    def _asked(self, said: dict[str, Any]) -> Iterator[Heard]:
        key, request = said.get("request_id"), mapping(said.get("request"))
        if request.get("subtype") == "can_use_tool":
            call_id = str(request.get("tool_use_id") or key)
            asked = Permission(key, call_id, str(request.get("tool_name")), mapping(request.get("input")))
            words = words_of(asked.parameters) if asked.name == TOOL else ""
            yield Question(asked, words, choices_of(asked.parameters)) if words else asked
            return
        unknown = {"subtype": "error", "request_id": key, "error": f"this client has no {request.get('subtype')}"}
        self.write({"type": "control_response", "response": unknown})

    def _result(self, said: dict[str, Any]) -> Iterator[Heard]:
        usage = mapping(said.get("usage"))
        read = [
            usage.get(name) or 0 for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        ]
        self._read += sum(read)
        self._written += int(usage.get("output_tokens") or 0)
        turn = {"prompt_tokens": self._read, "completion_tokens": self._written}
        yield Used(turn, {"cost_usd": float(said.get("total_cost_usd") or 0)})
        if said.get("is_error") or said.get("subtype") != "success":
            yield self._failure(said)
        elif not self._not_taken_in:
            yield Over()

    def _failure(self, said: dict[str, Any]) -> Over:
        words = "; ".join(str(one) for one in listing(said.get("errors"))) or str(said.get("result") or "")
        if str(said.get("terminal_reason") or "").startswith("aborted"):
            return Over("harness.interrupted", "the turn was interrupted")
        if self._trouble == NO_LOGIN:
            return Over("harness.unauthorized", f"{words}; {WHERE_KEYS_ARE}")
        return Over("harness.failed", words or str(said.get("subtype")))


def _end(asked: Permission) -> str:
    return ASKED if asked.name == TOOL else NOT_DONE


def _source(picture: Picture) -> dict[str, str]:
    return {"type": "base64", "media_type": picture.mime_type, "data": picture.base64}


def text_of(content: object) -> str:
    """The words of a tool's answer; what is no text is named."""
    if isinstance(content, str):
        return content
    parts = [mapping(block) for block in listing(content)]
    return "\n".join(str(part.get("text")) if part.get("type") == "text" else f"({part.get('type')})" for part in parts)
