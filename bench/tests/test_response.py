"""A client that accepts wrong answers measures nothing: what counts as a good run, byte by byte."""

import pytest

from bench.response import Response, problem_with
from bench.scripts import TOKEN, stream

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
STARTED = b'id: 1\ndata: {"type":"RUN_STARTED"}\n\n'
TWO_JOINED = b'data: {"type":"TEXT_MESSAGE_CONTENT","delta":"' + 2 * TOKEN.encode() + b'"}\n\n'
ONE = b'data: {"type": "TEXT_MESSAGE_CONTENT", "delta": "' + TOKEN.encode() + b'"}\n\n'
FINISHED = b'data: {"type":"RUN_FINISHED"}\n\n'


def answered(*frames: bytes) -> Response:
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(frame), frame) for frame in frames)
    response = Response()
    response.feed(HEAD + chunks + b"0\r\n\r\n", 1.0)
    return response


def test_a_response_reads_the_same_however_it_is_cut() -> None:
    wire = HEAD + b"5\r\nda\r\nt\r\n10\r\n" + b"x" * 16 + b"\r\n0\r\n\r\n"
    for cut in range(1, len(wire)):
        response = Response()
        response.feed(wire[:cut], 1.0)
        assert not response.complete
        response.feed(wire[cut:], 2.0)
        assert response.complete
        assert response.body == b"da\r\nt" + b"x" * 16


def test_a_response_with_a_length_ends_there() -> None:
    response = Response()
    response.feed(b'HTTP/1.1 202 Accepted\r\nContent-Length: 4\r\n\r\n{"a', 1.0)
    assert (response.status, response.complete) == (202, False)
    response.feed(b"}", 1.0)
    assert response.complete


def test_the_first_event_is_the_first_whole_one_and_no_comment() -> None:
    response = Response()
    for moment, arrived in enumerate((HEAD, b"E\r\n: keep-alive\n\n\r\n", b"8\r\ndata: {}\r\n", b"2\r\n\n\n\r\n")):
        assert response.first_event_at == 0.0
        response.feed(arrived, float(moment))
    assert response.first_event_at == 3.0


def test_deltas_count_alike_joined_or_apart() -> None:
    assert problem_with(answered(STARTED, ONE, ONE, FINISHED), stream(2)) == ""
    assert problem_with(answered(STARTED, TWO_JOINED, FINISHED), stream(2)) == ""


@pytest.mark.parametrize(
    ("frames", "complaint"),
    [
        ((STARTED, ONE, FINISHED), "instead of"),
        ((STARTED, ONE, TWO_JOINED, FINISHED), "instead of"),
        ((STARTED, TWO_JOINED.replace(b"lorem", b"LOREM"), FINISHED), "other text"),
        ((STARTED, TWO_JOINED), "exactly one good end"),
        ((STARTED, TWO_JOINED, FINISHED, FINISHED), "exactly one good end"),
        ((STARTED, TWO_JOINED, b'data: {"type":"RUN_ERROR"}\n\n', FINISHED), "exactly one good end"),
        ((STARTED, TWO_JOINED, FINISHED, STARTED), "after the end"),
    ],
)
def test_a_run_that_went_wrong_is_named(frames: tuple[bytes, ...], complaint: str) -> None:
    assert complaint in problem_with(answered(*frames), stream(2))


def test_a_refusal_is_named_with_its_status() -> None:
    response = Response()
    response.feed(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nbusy", 1.0)
    assert problem_with(response, stream(2)).startswith("status 503")
