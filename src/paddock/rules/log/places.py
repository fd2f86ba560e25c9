"""Places in a conversation, as runners are told them: cursors. Pure.

A cursor says which conversation and which of its threads it is of, and a check goes with it: one of elsewhere, or one
that nobody was given, names no place. It opens nothing that a run may not read anyhow, so nothing in it is secret.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b

from paddock.rules.rows.rows import View
from paddock.rules.values import Value

CHECK_BYTES = 6
MAX_CURSOR = 128
MAX_SEQ, MAX_NUMBER = 1 << 52, 1 << 62
ALL_SUBTHREADS = "*"


class Place(Value, frozen=True):
    """Before the fact of this number; or, of what happened after it and has no number, before one of these."""

    seq: int
    as_of: int | None = None
    """What a page that begins here shows is as it was when this fact was recorded."""
    after: int = 0
    """0 for the fact itself; else which kind of thing that follows it."""
    number: int = 0
    """Which of that kind."""


def cursor_of(place: Place, conversation_id: str, view: View) -> str:
    numbers = (place.seq, place.as_of or 0, place.after, place.number)
    body = ".".join(f"{number:x}" for number in numbers).encode()
    return urlsafe_b64encode(_check(body, conversation_id, view) + body).decode().rstrip("=")


def place_of(cursor: str, conversation_id: str, view: View) -> Place | None:
    """The place a cursor names in this part of a conversation; None when it was never given out for it."""
    if len(cursor) > MAX_CURSOR or not cursor.isascii():
        return None
    try:
        whole = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        check, body = whole[:CHECK_BYTES], whole[CHECK_BYTES:]
        numbers = [int(number, 16) for number in body.decode("ascii").split(".")]
    except ValueError:
        return None
    if check != _check(body, conversation_id, view) or len(numbers) != 4:
        return None
    if max(numbers) > MAX_NUMBER or numbers[0] > MAX_SEQ:
        return None
    seq, as_of, after, number = numbers
    return Place(seq, as_of or None, after, number)


def _check(body: bytes, conversation_id: str, view: View) -> bytes:
    of = ALL_SUBTHREADS if view.all_subthreads else f"={view.subthread_id}" if view.subthread_id is not None else ""
    where = f"{conversation_id}\0{of}\0".encode(errors="surrogatepass")
    return blake2b(where + body, digest_size=CHECK_BYTES, person=b"paddock cursor").digest()
