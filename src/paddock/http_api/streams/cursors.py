"""Where a reader of a stream stands: `<dialect>.<seq>.<k>`, the k-th frame of one fact in one dialect."""

import re

from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.values import Value

DIALECTS = ("1", "0")
"""AG-UI 1.0, and the 0.x peers that came before it. The first is what the native stream speaks."""

_CURSOR = re.compile(r"([01])\.([0-9]{1,18})\.([0-9]{1,9})", re.ASCII)


class Cursor(Value, frozen=True):
    """The last frame a reader has. `k` -1 means nothing of that fact yet."""

    dialect: str
    seq: int
    k: int


def parse_cursor(text: str) -> Cursor:
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise HostError(
            ErrorCode.INVALID_ARGUMENT,
            f"{text[:80]!r} is not a cursor: send the last `id:` of the stream as it came, such as 1.42.0",
        )
    return Cursor(found[1], int(found[2]), int(found[3]))
