"""Memory of a conversation: the turns since the last checkpoint, pulled from the host.

When they outgrow their share of the model's window, the older ones become a summary and a new checkpoint. So a turn
costs about the same however long the conversation is, and between two checkpoints nothing the model saw changes.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from paddock_runners.local_agent.config import Config
from paddock_runners.local_agent.prompt import SUMMARIZE, system_message, whole_prompt
from paddock_runners.toolkit.parts import in_words
from paddock_runners.toolkit.replies import Asked, Reply, speak
from paddock_runners.toolkit.speakers import is_group
from paddock_runners.toolkit.tokens import tokens_in
from paddock_runners.toolkit.transcript import Said, Turn, shortened, turns_of
from paddock_sdk import HostApi, HostCallError, RunContext
from paddock_sdk.protocol.errors import DEADLINE_EXCEEDED
from paddock_sdk.protocol.history import TranscriptItem

KEY = "runner.compaction.checkpoint"
VERSION = 1
MAX_SUMMARY_CHARS = 12_000


@dataclass(frozen=True, slots=True)
class Checkpoint:
    summary: str
    covers_until: str
    """Cursor of the last item it stands for."""
    covers_seq: int
    generation: int = 1
    """How many summaries are in it: each was made from the one before and what followed."""

    def to_state(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "summary": self.summary,
            "covers_until": self.covers_until,
            "covers_seq": self.covers_seq,
            "incremental": self.generation > 1,
            "generation": self.generation,
        }


def read_checkpoint(value: object, *, before_seq: int | None) -> Checkpoint | None:
    """The checkpoint in a state value, or None when there is none that fits."""
    if not isinstance(value, dict):
        return None
    said = cast("Mapping[str, Any]", value)
    summary, cursor, seq = said.get("summary"), said.get("covers_until"), said.get("covers_seq")
    if said.get("version") != VERSION or not isinstance(summary, str) or not isinstance(cursor, str):
        return None
    if not summary or len(summary) > MAX_SUMMARY_CHARS or type(seq) is not int or seq < 0:
        return None
    if before_seq is not None and seq >= before_seq:
        return None  # the conversation was cut back behind it
    generation = said.get("generation")
    return Checkpoint(summary, cursor, seq, generation if type(generation) is int else 1)


log = logging.getLogger("paddock.local_agent")

PAGE = 100
MAX_ITEMS = 400
"""Items of history a run looks at, however short they are."""
KEPT_SHARE = 0.4
"""How much of the room is left to whole turns after a compaction; the rest is room to grow."""
CHARS_AHEAD = 16
"""Reading stops when what was read cannot fit: so many characters per token of room."""


@dataclass(frozen=True, slots=True)
class Memory:
    summary: str
    turns: tuple[Turn, ...]

    @property
    def tokens(self) -> int:
        return tokens_in(self.summary) + sum(turn.tokens for turn in self.turns)


class Remembering:
    """Pulls, and compacts when it must."""

    def __init__(self, ctx: RunContext, api: HostApi, config: Config, asked: Asked, room: int) -> None:
        self._ctx, self._api, self._config = ctx, api, config
        self._asked = Asked(asked.model_id, (), asked.extra_args, asked.streams)
        self._room = room
        self._stateful = ctx.context.available_apis.state
        self.usage: list[dict[str, int]] = []
        """What summaries cost."""

    async def recall(self) -> Memory:
        """The conversation before this input, within the room there is. Raises HostCallError."""
        found = read_checkpoint(self._ctx.state.conversation.get(KEY), before_seq=self._ctx.context.event_seq)
        turns, whole = await self._turns(found)
        memory = Memory(found.summary if found else "", tuple(turns))
        items = sum(turn.items for turn in turns)
        if whole and memory.tokens <= self._room and items <= MAX_ITEMS:
            return memory
        return await self._compacted(memory, found)

    # --- pulling

    async def _turns(self, found: Checkpoint | None) -> tuple[list[Turn], bool]:
        """Turns after the checkpoint, oldest first, and whether that is all of them."""
        if not (self._ctx.context.available_apis.history_page and self._ctx.context.has_history_before):
            return [], True
        items, whole = await self._items(found.covers_seq if found else -1)
        bot = self._ctx.conversation.bot_id if self._ctx.conversation else None
        return turns_of(reversed(items), agent_id=bot, group=is_group(self._ctx)), whole

    async def _items(self, after: int) -> tuple[list[TranscriptItem], bool]:
        """Newest first, from where the conversation stood when this run began."""
        items: list[TranscriptItem] = []
        cursor, chars = self._ctx.context.latest_cursor, 0
        while True:
            page = await self._api.history.page(before_cursor=cursor, limit=PAGE, include_artifacts=True)
            for item in page.items:
                if item.seq is not None and item.seq <= after:
                    return items, True
                if item.event_id != self._ctx.event.event_id:
                    items.append(item)
                    chars += len(item.content or "")
            cursor = page.next_cursor
            if not page.has_more or cursor is None:
                return items, True
            if len(items) > MAX_ITEMS or chars > self._room * CHARS_AHEAD:
                return items, False

    # --- compacting

    async def _compacted(self, memory: Memory, found: Checkpoint | None) -> Memory:
        at = _cut(memory.turns, int(self._room * KEPT_SHARE))
        if at == 0:
            return memory  # one turn fills the room: it is shown as it is, and the model decides
        older, kept = memory.turns[:at], memory.turns[at:]
        summary = await self._summary(memory.summary, older) if self._stateful else None
        if summary is None:
            return Memory(memory.summary, kept)
        last = max(older, key=lambda turn: turn.last)
        await self._keep(Checkpoint(summary, last.cursor, last.last, found.generation + 1 if found else 1))
        return Memory(summary, kept)

    async def _summary(self, before: str, older: Sequence[Turn]) -> str | None:
        """None when the model does not give one: the run goes on with what fits, and the next one tries again."""
        messages = whole_prompt(
            self._system(before), _fitting(older, self._room), (), ({"role": "user", "content": SUMMARIZE},)
        )
        reply = Reply()
        try:
            async for _ in speak(self._api, self._asked, [*map(in_words, messages)], reply):
                pass
        except HostCallError as error:
            if error.code == DEADLINE_EXCEEDED:
                raise
            log.warning("run %s: the conversation could not be summarized: %s", self._ctx.run_id, error)
            return None
        self.usage.append(reply.usage)
        return shortened(reply.text.strip(), MAX_SUMMARY_CHARS - 100) or None

    def _system(self, summary: str) -> Said:
        return system_message(self._config.instructions, self._config.context, summary)

    async def _keep(self, made: Checkpoint) -> None:
        """Only over the checkpoint this one was made from; if another came first, that one stays."""
        try:
            value, version = await self._api.state.get_with_version("conversation", KEY)
            if value == self._ctx.state.conversation.get(KEY):
                await self._api.state.set("conversation", KEY, made.to_state(), expected_version=version)
        except HostCallError as error:
            if error.code == DEADLINE_EXCEEDED:
                raise
            log.warning("run %s: the checkpoint could not be kept: %s", self._ctx.run_id, error)


def _cut(turns: Sequence[Turn], room: int) -> int:
    """Where the turns that stay whole begin: as many as fit, and none that began before an older one ended."""
    at, tokens = len(turns), 0
    while at > 0 and tokens + turns[at - 1].tokens <= room:
        at -= 1
        tokens += turns[at].tokens
    while 0 < at < len(turns) and max(turn.last for turn in turns[:at]) > min(turn.first for turn in turns[at:]):
        at -= 1
    return at


def _fitting(turns: Sequence[Turn], room: int) -> Sequence[Turn]:
    """The newest turns that a summary can be made of at once; of a very long conversation met for the first time the
    beginning is left out."""
    at, tokens = len(turns), 0
    while at > 0 and (tokens == 0 or tokens + turns[at - 1].tokens <= room):
        at -= 1
        tokens += turns[at].tokens
    return turns[at:]
