"""Streaming of unfinished messages to platforms that can show them.

A convenience only: each piece is sent once, a platform that fails gets no more of that message, and the whole message
follows as a delivery.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import msgspec

from paddock.host.platforms.platforms import Platform, Platforms
from paddock.host.session.arrivals import Accepted, NewRun
from paddock.host.streams.tails import Entry, Tails
from paddock.rules.log.payloads import delta_text

MAX_SECONDS = 3600.0
QUIET_SECONDS = 60.0
MAX_STREAMS = 256
"""How many runs are streamed at once; the messages of further runs are only delivered whole."""
ENDS = frozenset(
    {"AGENT_OUTPUT:FINAL", "ERROR:RUN_FAILED", "ERROR:ROUTE_TIMEOUT", "EVENT:CANCELED", "EVENT:TURN_STEERED"}
)


@dataclass(eq=False)
class DeltaStream:
    tails: Tails
    platforms: Platforms
    _: KW_ONLY
    clock: Callable[[], float]
    spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    _followed: int = field(default=0, init=False)

    def follow(self, platform: Platform, accepted: Accepted, new: NewRun) -> None:
        """Send the pieces of this run's messages, if its platform can show them."""
        spec = platform.spec
        if spec.streaming and spec.webhook is not None and self._followed < MAX_STREAMS:
            target = new.event.delivery.get("reply_target") if new.event and new.event.delivery else None
            self.spawn(self._send(platform, accepted, target or {}))

    async def _send(self, platform: Platform, accepted: Accepted, target: Mapping[str, Any]) -> None:
        follower = self.tails.follow(accepted.session_id, accepted.run_id, max(0, accepted.first_seq - 1))
        self._followed += 1
        pieces = _Pieces()
        try:
            async with asyncio.timeout(MAX_SECONDS):
                while not pieces.over:
                    pieces.collect(await follower.next(QUIET_SECONDS))
                    await self._post(platform, accepted, target, pieces)
        except TimeoutError:
            pass
        finally:
            self._followed -= 1
            follower.close()

    async def _post(self, platform: Platform, accepted: Accepted, target: Mapping[str, Any], pieces: "_Pieces") -> None:
        if not pieces.text or pieces.given_up == pieces.message_id:
            pieces.text = ""
            return
        pieces.sent += 1
        body = {
            "type": "message.delta",
            "run_id": accepted.run_id,
            "message_id": pieces.message_id,
            "sequence": pieces.sent,
            "text": pieces.text,
            "reply_target": target,
            "timestamp": self.clock(),
        }
        pieces.text = ""
        name = f"{accepted.run_id}.delta.{pieces.sent}"
        posted = await self.platforms.post(platform, name, msgspec.json.encode(body))
        if not posted.ok:
            pieces.given_up = pieces.message_id


class _Pieces:
    """Text of the unfinished message that was read and not sent yet."""

    __slots__ = ("given_up", "message_id", "over", "sent", "text")

    def __init__(self) -> None:
        self.message_id: str | None = None
        self.text = ""
        self.sent = 0
        self.over = False
        self.given_up: str | None = ""

    def collect(self, entries: list[Entry]) -> None:
        for entry in entries:
            fact = entry.fact
            if fact.is_delta:
                message_id = fact.read_metadata().get("message_id")
                if message_id != self.message_id:
                    self.message_id, self.text = message_id, ""
                self.text += delta_text(fact.read_payload()["data"])
            elif fact.kind == "AGENT_OUTPUT:MESSAGE":
                self.text = ""  # finished: it is delivered whole
            elif fact.kind in ENDS:
                self.over = True
                self.text = ""
