"""Server-sent events, as servers cut and end them."""

import pytest

from paddock_sdk import sse
from paddock_sdk.sse import EventReader, EventTooLargeError

STREAM = (
    b': ping\n\nevent: a\ndata: {"n": 1}\n\ndata:two\r\ndata: lines\r\n\r\ndata: \xe2\x80\xa8 is no end of a line\n\n'
)
EVENTS = [b'{"n": 1}', b"two\nlines", b"\xe2\x80\xa8 is no end of a line"]


@pytest.mark.parametrize("size", [1, 2, 7, len(STREAM)])
def test_events_are_the_same_however_the_stream_is_cut(size: int) -> None:
    reader = EventReader()
    found = [data for at in range(0, len(STREAM), size) for data in reader.feed(STREAM[at : at + size])]
    assert found == EVENTS
    assert reader.heard


def test_a_last_event_needs_no_empty_line() -> None:
    reader = EventReader()
    assert reader.feed(b"data: one\n\ndata: tw") == [b"one"]
    assert reader.feed(b"o") == []
    assert reader.end() == [b"two"]
    assert reader.end() == []


@pytest.mark.parametrize("piece", [b"data: " + b"x" * 1000, b"data: " + b"x" * 1000 + b"\n", b"data:\n", b"event:"])
def test_an_event_that_never_ends_is_refused(piece: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 10_000)
    reader = EventReader()

    def send() -> None:
        for _ in range(20_000):
            reader.feed(piece)

    with pytest.raises(EventTooLargeError):
        send()


def test_pauses_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 1000)
    reader = EventReader()
    assert [data for _ in range(1000) for data in reader.feed(b": ping\n\n")] == []
    assert reader.feed(b"data: still here\n\n") == [b"still here"]
