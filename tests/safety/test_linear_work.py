"""Nothing that strangers write makes the event loop work more than its length: what they hand in, at its worst, is
measured at one length and at four times that length."""

import pytest

from paddock.host.content_types import HEAD_BYTES, content_type
from safety.growth import Case, problem_of

CASES: dict[str, Case] = {
    "content_type: comments": Case(lambda n: b"<!---->" * (n // 7) + b"x", content_type, HEAD_BYTES),
    "content_type: comments that do not end": Case(lambda n: b"<!--" * (n // 4), content_type, HEAD_BYTES),
    "content_type: documents": Case(lambda n: b"<!doctype svg>" * (n // 14), content_type, HEAD_BYTES),
    "content_type: space": Case(lambda n: b"<?xml " + b" " * n, content_type, HEAD_BYTES),
}


@pytest.mark.parametrize("name", CASES)
def test_work_grows_no_faster_than_what_strangers_write(name: str) -> None:
    assert problem_of(CASES[name]) is None
