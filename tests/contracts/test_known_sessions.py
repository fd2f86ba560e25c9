"""The filter that spares a new session the look for it: it may call a new one known, and never a known one new."""

from uuid import uuid4

from paddock.storage.sqlite.store import KnownSessions


def ids(count: int) -> list[str]:
    return [str(uuid4()) for _ in range(count)]


def test_a_session_on_file_is_never_called_new() -> None:
    known, on_file = KnownSessions(), ids(200_000)  # more than the first parts have room for
    known.fill(on_file)
    assert all(known.claimed(session_id) for session_id in on_file)


def test_a_session_that_was_claimed_once_may_be_on_file() -> None:
    known = KnownSessions()
    known.fill([])
    assert not known.claimed("a")
    assert known.claimed("a")


def test_few_new_sessions_are_looked_for_in_vain() -> None:
    known = KnownSessions()
    known.fill(ids(20_000))
    assert sum(known.claimed(session_id) for session_id in ids(2_000)) < 40  # twelve on average


def test_few_are_looked_for_in_vain_in_a_house_that_grew_large() -> None:
    known = KnownSessions()
    known.fill(ids(200_000))
    assert sum(known.claimed(session_id) for session_id in ids(2_000)) < 100


def test_every_session_may_be_on_file_until_all_are_learned() -> None:
    known = KnownSessions()
    assert known.claimed("a")
    assert known.claimed("b")
