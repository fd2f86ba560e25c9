"""Collect the output of one turn: results become outputs for the session, pieces become finished messages.

Runners send pieces without ids; here each message gets its id, its range of numbers in the log and the lengths of its
pieces, so that the pieces can be dropped from the log once the message is whole and a reader in the middle still finds
its place. One `Collected` lives as long as its turn. No I/O, no clock.
"""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

import msgspec

from paddock.rules.errors import RunnersOwn
from paddock.rules.log.chain import StoredFact
from paddock.rules.log.payloads import a_delta, as_object, delta_text, text_of
from paddock.rules.run.results import Result
from paddock.rules.session.facts import Fact
from paddock.rules.session.messages import OutputReceived, RunFailed
from paddock_sdk.protocol.results import KNOWN_RESULTS

STEPS = frozenset({"step.started", "step.finished"})
MAX_STEPS = 32
"""Stages open at once; the host keeps no more in mind."""
MAX_CODE, MAX_REASON = 100, 2000
"""Characters of what a run failed of. It is told in lists of runs, so it is a sentence and no document."""


class Collected(msgspec.Struct):
    """The messages of one turn as they come in."""

    turn_id: str
    agent_id: str
    begun: int = 0
    message_id: str | None = None
    pieces: list[str] = []
    marks: list[tuple[int, int]] = []
    """(number in the log, characters) of each piece of the open message."""
    steps: list[str] = []
    """Stages that have begun and not ended."""

    def read(self, result: Result, at: float) -> Iterator[OutputReceived | RunFailed]:
        """Say one result in the session's words. Unknown types say nothing."""
        match result.type:
            case "message.delta":
                yield from self._piece(delta_text(result.data), at)
            case "message.completed":
                yield self._whole(result.data, at)
            case "run.completed":
                yield from self._completed(result.data, at)
            case "run.failed":
                yield from self.close(at)
                yield self._failed(result.data, at)
            case "step.started" | "step.finished":
                yield from self._step(result.type, str(result.data["step_name"]), at)
            case known if known in KNOWN_RESULTS:  # every other known type is passed on as it is
                yield self._output("MESSAGE", {"type": known, "data": result.data}, {}, at)
            case _:
                return

    def gather(self, results: list[Result]) -> list[Result]:
        """Pieces that wait together become one; pieces of a message that ended meanwhile are left to its whole text."""
        if len(results) < 2:
            return results
        out: list[Result] = []
        pieces: list[str] = []
        for result in results:
            if result.type == "message.delta":
                pieces.append(delta_text(result.data))
                continue
            if pieces and not self._contains(result, pieces, out):
                out.append(_joined_piece(result.run_id, pieces))
            pieces = []
            out.append(result)
        if pieces:
            out.append(_joined_piece(results[-1].run_id, pieces))
        return out

    def _contains(self, result: Result, pieces: list[str], before: list[Result]) -> bool:
        """Return true if this result is the whole message that the pieces belong to."""
        message = as_object(result.data.get("message"))
        if result.type not in {"message.completed", "run.completed"} or not message:
            return False
        streamed = [] if any(earlier.type != "message.delta" for earlier in before) else self.pieces
        return text_of(message.get("content")).startswith("".join([*streamed, *pieces]))

    def note(self, seq: int, fact: Fact) -> None:
        """Remember the number a piece got, when the session recorded it."""
        if fact.is_delta and fact.turn_id == self.turn_id:
            text = delta_text(fact.payload["data"])
            self.pieces.append(text)
            self.marks.append((seq, len(text)))
            self.message_id = fact.metadata["message_id"]

    def remember(self, stored: StoredFact) -> None:
        """Restore from a stored fact, when a new owner takes over a turn in the middle."""
        metadata = stored.read_metadata()
        if stored.is_delta:
            if metadata.get("opens"):
                self.begun += 1
            text = delta_text(stored.read_payload()["data"])
            self.pieces.append(text)
            self.marks.append((stored.seq, len(text)))
            self.message_id = metadata["message_id"]
        elif "message_id" in metadata:
            self._forget()
        elif stored.kind == "AGENT_OUTPUT:MESSAGE":
            said = as_object(stored.read_payload())
            self._note_step(str(said.get("type")), str(as_object(said.get("data")).get("step_name")))

    def close(self, at: float) -> Iterator[OutputReceived]:
        """Finish what the turn left open: a message, its words so far kept and marked as partial, and its stages."""
        if self.message_id is not None:
            content = {"role": "assistant", "content": "".join(self.pieces)}
            yield self._whole({"message": content}, at, partial=True)
        yield from self._close_steps(at)

    def _step(self, kind: str, name: str, at: float) -> Iterator[OutputReceived]:
        """A stage begins or ends. One that begins twice, or ends without having begun, says nothing."""
        if (kind == "step.started") != (name in self.steps) and len(self.steps) < MAX_STEPS:
            self._note_step(kind, name)
            yield self._output("MESSAGE", {"type": kind, "data": {"step_name": name}}, {}, at)

    def _note_step(self, kind: str, name: str) -> None:
        if kind == "step.started":
            self.steps.append(name)
        elif kind == "step.finished" and name in self.steps:
            self.steps.remove(name)

    def _close_steps(self, at: float) -> Iterator[OutputReceived]:
        for name in reversed(self.steps):
            yield self._output("MESSAGE", {"type": "step.finished", "data": {"step_name": name}}, {}, at)
        self.steps.clear()

    def _piece(self, text: str, at: float) -> Iterator[OutputReceived]:
        if not text:
            return
        opens = self.message_id is None
        if opens:
            self.message_id = self._next_id()
        metadata: dict[str, Any] = {"message_id": self.message_id}
        if opens:
            metadata["opens"] = True
        yield self._output("CHUNK", a_delta(text), metadata, at)

    def _whole(self, data: Mapping[str, Any], at: float, *, partial: bool = False) -> OutputReceived:
        text = text_of(as_object(data.get("message")).get("content"))
        metadata = self._finish(text)
        if partial:
            metadata["partial"] = True
        return self._output("MESSAGE", {"type": "message.completed", "data": data}, metadata, at)

    def _completed(self, data: Mapping[str, Any], at: float) -> Iterator[OutputReceived]:
        if isinstance(data.get("message"), dict):
            yield self._whole({"message": data["message"]}, at)
        else:
            # A runner that streams and then says it is done has finished its message; nothing is partial about it.
            for closing in self.close(at):
                about = {key: value for key, value in closing.metadata.items() if key != "partial"}
                yield self._output("MESSAGE", closing.payload, about, at)
        yield from self._close_steps(at)
        rest = {key: value for key, value in data.items() if key != "message"}
        yield self._output("FINAL", {"type": "run.completed", "data": rest}, {}, at)

    def _failed(self, data: Mapping[str, Any], at: float) -> RunFailed:
        message = str(data.get("message") or data.get("error") or "the runner failed without saying why")
        return RunFailed(
            turn_id=self.turn_id,
            code=RunnersOwn(str(data["code"])[:MAX_CODE]) if data.get("code") else "runner.error",
            message=message if len(message) <= MAX_REASON else f"{message[: MAX_REASON - 1]}…",
            retryable=bool(data.get("retryable", False)),
            at=at,
        )

    def _finish(self, text: str) -> dict[str, Any]:
        if self.message_id is None:
            return {"message_id": self._next_id()}
        streamed = "".join(self.pieces)
        first, last = self.marks[0][0], self.marks[-1][0]
        lengths = [0] * (last - first + 1)
        for seq, length in self.marks:
            lengths[seq - first] = length
        metadata: dict[str, Any] = {
            "message_id": self.message_id,
            "first_seq": first,
            "lengths": lengths,
            "streamed": len(streamed),
            "text_hash": sha256(text.encode()).hexdigest(),
        }
        if not text.startswith(streamed):
            metadata |= {"revised": True, "streamed_text": streamed}
        self._forget()
        return metadata

    def _next_id(self) -> str:
        self.begun += 1
        return f"{self.turn_id}.{self.begun}"

    def _forget(self) -> None:
        self.message_id = None
        self.pieces.clear()
        self.marks.clear()

    def _output(self, kind: Any, payload: Any, metadata: Mapping[str, Any], at: float) -> OutputReceived:
        return OutputReceived(
            turn_id=self.turn_id, agent_id=self.agent_id, kind=kind, payload=payload, metadata=metadata, at=at
        )


def _joined_piece(run_id: str, pieces: list[str]) -> Result:
    return Result(run_id=run_id, type="message.delta", data=a_delta("".join(pieces))["data"])
