"""Signed addresses: ours count for their owner until they expire; anything changed about them makes them nobody's."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.rules.access.signatures import SigningKeys
from paddock.rules.conversations.attachments import (
    Owner,
    Upload,
    counts,
    granted_upload,
    read_address,
    taken_apart,
    upload_address,
)

KEYS = SigningKeys("new", {"new": b"one", "old": b"two"})
ANN = Owner("w", "ann")
UPLOAD = Upload("art_1", "w", "ann", "image/png", 5, None, "a.png", 100)


def address(keys: SigningKeys = KEYS, owner: Owner = ANN, **more: Any) -> str:
    return read_address(keys, owner, "art_1", expires=100, **more)


def holds(url: str, owner: Owner = ANN, now: float = 50.0, keys: SigningKeys = KEYS) -> bool:
    found = taken_apart(url)
    return found is not None and counts(keys, owner, found, now)


def test_an_address_counts_for_its_owner_until_it_expires_wherever_it_points() -> None:
    assert holds(address())
    assert holds("https://agents.example.com" + address(disposition="attachment"))
    assert not holds(address(), now=100.0)
    assert not holds(address(), Owner("w", "bob"))
    assert not holds(address(), Owner("v", "ann"))


def test_a_replaced_key_counts_while_it_is_kept_and_not_after() -> None:
    by_old = address(SigningKeys("old", {"old": b"two"}))
    assert "key=old" in by_old
    assert holds(by_old)
    assert not holds(by_old, keys=SigningKeys("new", {"new": b"one"}))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("art_1", "art_2"),
        ("expires=100", "expires=101"),
        ("expires=100", "expires=1e9"),
        ("expires=100", "expires=１００"),
        ("disposition=inline", "disposition=attachment"),
        ("key=new", "key=old"),
        ("key=new", "key="),
        ("&signature", "&more=1&signature"),
        ("&signature", "&expires=100&signature"),
        ("/content", "/content/"),
        ("/content", ""),
        ("/api/v1/agent/attachments/", "/api/v1/agent/attachments/../attachments/"),
        ("/api", "/x/api"),
    ],
)
def test_anything_changed_about_an_address_makes_it_nobodys(old: str, new: str) -> None:
    assert old in address()
    assert not holds(address().replace(old, new, 1))


@given(st.text() | st.from_regex(r"/api/v1/agent/attachments/[^/]*/content\?.*"))
def test_no_text_is_too_strange_to_be_judged(text: str) -> None:
    assert not holds(text)
    assert granted_upload(KEYS, "art_1", text, 0.0) is None


def query_of(url: str) -> str:
    return url.partition("?")[2]


def test_an_address_to_upload_says_what_may_come_and_until_when() -> None:
    query = query_of(upload_address(KEYS, UPLOAD))
    assert granted_upload(KEYS, "art_1", query, 99.0) == UPLOAD
    assert granted_upload(KEYS, "art_1", query, 100.0) is None
    assert granted_upload(KEYS, "art_2", query, 50.0) is None
    assert granted_upload(KEYS, "art_1", query.replace("upload=ey", "upload=eX"), 50.0) is None


def test_an_address_to_read_is_none_to_upload_and_the_other_way_round() -> None:
    assert granted_upload(KEYS, "art_1", query_of(address()), 50.0) is None
    assert not holds(upload_address(KEYS, UPLOAD))


def test_an_address_with_more_fields_than_ours_have_is_not_ours() -> None:
    query = upload_address(KEYS, UPLOAD).partition("?")[2]
    assert granted_upload(KEYS, "art_1", query + "&more=1" * 9, 99.0) is None
