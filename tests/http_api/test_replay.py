"""A reader gets the same frames whether it was there or comes later, from any place."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from http_api.facts import NEW, OLD, delta, fact, message, output, user_input
from paddock.http_api.ag_ui.events import AgUiPeer, frames
from paddock.rules.log.chain import ERASED, SALTS_BYTES, Head, StoredFact, seal
from paddock.rules.log.replay import expand
from paddock.rules.session.facts import Fact
from paddock.rules.values import replace

TEXT = st.text(max_size=6)
STEP = st.one_of(
    st.tuples(st.just("piece"), st.integers(0, 2), TEXT),
    st.tuples(st.just("piece"), st.integers(0, 2), TEXT),
    st.tuples(st.just("finish"), st.integers(0, 2), TEXT),
    st.tuples(st.just("revise"), st.integers(0, 2), TEXT),
    st.tuples(st.just("list"), st.integers(0, 2), TEXT),
    st.tuples(st.just("tool"), st.integers(0, 2), TEXT),
    st.tuples(st.just("inside"), st.integers(0, 2), TEXT),
)


@dataclass
class Story:
    """A turn as it is told live: up to three messages open at once, other facts in between."""

    facts: list[StoredFact] = field(default_factory=list)
    open: dict[int, tuple[str, list[tuple[int, str]]]] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    names: Iterator[int] = field(default_factory=count)

    def tell(self, said: Fact) -> None:
        self.facts += seal(Head(len(self.facts)), [said], bytes(SALTS_BYTES))[0]

    def step(self, what: str, slot: int, text: str) -> None:
        match what:
            case "piece":
                opens = slot not in self.open
                name, pieces = self.open.setdefault(slot, (f"m{next(self.names)}", []))
                pieces.append((len(self.facts) + 1, text))
                self.tell(delta(name, text, opens=opens))
            case "tool":
                self.tell(output("tool.call.started", {"tool_call_id": f"t{len(self.facts)}", "tool_name": "x"}))
            case "inside":
                self.tell(fact("EVENT:AGENT_STARTED"))
            case _:
                self.finish(slot, text, what)

    def finish(self, slot: int, text: str, how: str) -> None:
        if slot not in self.open:
            self.tell(message(f"m{next(self.names)}", text))
            return
        name, pieces = self.open.pop(slot)
        first, streamed = pieces[0][0], "".join(piece for _, piece in pieces)
        lengths = [0] * (pieces[-1][0] - first + 1)
        for seq, piece in pieces:
            lengths[seq - first] = len(piece)
        marks = {"first_seq": first, "lengths": lengths, "streamed": len(streamed)}
        whole = text if how == "revise" else streamed + text
        if not whole.startswith(streamed):
            marks |= {"revised": True, "streamed_text": streamed}
        parts = [{"type": "text", "text": streamed}, {"type": "image"}, {"type": "text", "text": text}]
        self.tell(message(name, parts if how == "list" else whole, **marks))
        self.gone |= {seq for seq, _ in pieces}

    def compacted(self) -> list[StoredFact]:
        kept = [told for told in self.facts if told.seq not in self.gone]
        return sorted(kept, key=lambda told: (told.position, told.seq))


def tell(steps: list[tuple[str, int, str]]) -> Story:
    story = Story()
    story.tell(user_input())
    for step in steps:
        story.step(*step)
    return story


def said(facts: list[StoredFact], peer: AgUiPeer, seq: int, k: int) -> bytes:
    """Everything a reader gets that has seen the k-th frame of fact `seq`."""
    out: list[bytes] = []
    for told in facts:
        if told.seq >= seq:
            out += frames(told, peer)[k + 1 if told.seq == seq else 0 :]
    return b"".join(out)


@pytest.mark.spec("http/cursor")
@settings(max_examples=300, deadline=None)
@given(
    steps=st.lists(STEP, max_size=25), peer=st.sampled_from([NEW, OLD]), place=st.integers(0, 60), k=st.integers(-1, 3)
)
def test_a_replay_gives_the_frames_of_the_live_stream_from_any_cursor(
    steps: list[tuple[str, int, str]], peer: AgUiPeer, place: int, k: int
) -> None:
    story = tell(steps)
    seq = place % (len(story.facts) + 2)
    replayed = list(expand(story.compacted(), seq - 1))
    assert [told.seq for told in replayed] == sorted(told.seq for told in replayed)
    assert said(replayed, peer, seq, k) == said(story.facts, peer, seq, k)


@settings(max_examples=100, deadline=None)
@given(steps=st.lists(STEP, max_size=25), after=st.integers(0, 30))
def test_durable_facts_come_back_as_they_are_and_nothing_comes_from_before_the_cursor(
    steps: list[tuple[str, int, str]], after: int
) -> None:
    story = tell(steps)
    replayed = list(expand(story.compacted(), after))
    assert all(told.seq > after for told in replayed)
    assert [told for told in replayed if told.seq not in story.gone] == [
        told for told in story.facts if told.seq > after and told.seq not in story.gone
    ]


def test_it_holds_only_the_messages_that_overlap_and_never_reads_ahead_of_them() -> None:
    taken: list[int] = []

    def log() -> Iterator[StoredFact]:
        for told in tell([step for _ in range(100) for step in (("piece", 0, "ab"), ("finish", 0, "c"))]).compacted():
            taken.append(told.seq)
            yield told

    replayed = expand(log(), 0)
    for _ in range(10):
        next(replayed)
    assert len(taken) <= 7


@pytest.mark.parametrize("peer", [NEW, OLD])
def test_a_message_whose_words_were_erased_still_opens_and_closes(peer: AgUiPeer) -> None:
    story = tell([("piece", 0, "secret"), ("finish", 0, " words")])
    erased = [
        replace(told, payload=ERASED + told.payload_digest) if told.position != told.seq else told
        for told in story.compacted()
    ]
    text = said(list(expand(erased, 0)), peer, 2, -1)
    assert text.count(b"TEXT_MESSAGE_START") == text.count(b"TEXT_MESSAGE_END") == 1
    assert b"secret" not in text
