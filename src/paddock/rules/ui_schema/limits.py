"""How large a document may get. What does not fit is cut and noted; a document is never refused for its size."""

from paddock.rules.values import Value


class Limits(Value, frozen=True):
    depth: int = 6
    nodes: int = 200
    children: int = 50
    text_chars: int = 4_000
    all_chars: int = 20_000
    columns: int = 10
    rows: int = 50
    buttons: int = 6
    inputs: int = 12
    images: int = 8
    url_chars: int = 2_048
    bytes: int = 64 * 1024
    link_schemes: frozenset[str] = frozenset({"https"})
    """`mailto` and `tel` may be added."""


DEFAULT = Limits()
CARD = Limits(bytes=28 * 1024)
"""For chat platforms that cap a card."""
