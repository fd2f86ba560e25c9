"""The log read back as it was said: a finished message gives out its pieces again, each at its old number.

The pieces of a message leave the log when it is whole; the fact that finished it knows where they were and how long.
`expand` puts them back among the other facts, so that a reader gets the same frames whether it came early, late or in
the middle. Pure, and it streams: only messages that overlap are held, never a run. Nothing here knows a dialect.
"""

from collections.abc import Iterable, Iterator, Mapping
from heapq import heappop, heappush
from itertools import accumulate
from typing import Any

import msgspec

from paddock.rules.log.chain import DELTA, NO_BYTES, StoredFact
from paddock.rules.log.payloads import a_delta, text_of
from paddock.rules.values import replace

_encode = msgspec.json.Encoder().encode

_Waiting = tuple[int, StoredFact, Iterator[StoredFact]]
"""(number, the fact at it, what follows it from the same message). Numbers are unique, so facts are never compared."""


def expand(facts: Iterable[StoredFact], after: int) -> Iterator[StoredFact]:
    """Facts in order of (position, seq), as the log gives them, become facts in order of number, those beyond `after`.

    When `facts` is one page of more, what comes out from the last position on may still miss what the next page holds.
    """
    waiting: list[_Waiting] = []
    for fact in facts:
        while waiting and waiting[0][0] < fact.position:
            yield _take(waiting)
        if fact.position != fact.seq:
            _put(waiting, _said(fact, after))
        elif fact.seq > after:
            yield fact
    while waiting:
        yield _take(waiting)


def _put(waiting: list[_Waiting], said: Iterator[StoredFact]) -> None:
    first = next(said, None)
    if first is not None:
        heappush(waiting, (first.seq, first, said))


def _take(waiting: list[_Waiting]) -> StoredFact:
    _, fact, rest = heappop(waiting)
    _put(waiting, rest)
    return fact


def _said(message: StoredFact, after: int) -> Iterator[StoredFact]:
    metadata = message.read_metadata()
    lengths: list[int] = metadata["lengths"]
    text = _streamed(message, metadata)
    ends = accumulate(lengths)
    for seq, (length, end) in enumerate(zip(lengths, ends, strict=True), start=message.position):
        # Zero means another fact has this number; the first number is always the message's own.
        if seq > after and (length or seq == message.position):
            opens = {"opens": True} if seq == message.position else {}
            yield _piece(message, seq, text[end - length : end], {"message_id": metadata["message_id"], **opens})
    if message.seq > after:
        yield message


def _streamed(message: StoredFact, metadata: Mapping[str, Any]) -> str:
    if "streamed_text" in metadata:
        return metadata["streamed_text"]
    payload = message.read_payload()
    return text_of(payload["data"]["message"].get("content")) if payload else ""


def _piece(message: StoredFact, seq: int, text: str, metadata: dict[str, object]) -> StoredFact:
    return replace(
        message,
        seq=seq,
        position=seq,
        kind=DELTA,
        payload=_encode(a_delta(text)),
        metadata=_encode(metadata),
        digest=NO_BYTES,
        payload_digest=NO_BYTES,
    )
