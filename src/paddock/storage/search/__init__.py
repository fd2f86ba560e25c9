"""Full-text search: what gets into the indexes and when, and how their hits become answers.

- `history.py` searches one conversation, `threads.py` finds conversations. Neither knows a database.
- An `Index` is a database's own: how words are kept there and found again (`search.py` of `sqlite/` and `postgres/`).

What never lives here: a decision about who may search. Words get in late: a part at a time, once enough has come
together or somebody looks, workspaces in turn.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from paddock.rules.search.queries import ThreadQuery, TranscriptQuery
from paddock.rules.values import Value
from paddock.storage.tables.statements import Values, Work, ask

Whose = tuple[str, str]
"""A workspace and a user."""
TextPlace = tuple[int, int]
"""The number of a session, and of an item in it; 0 stands for its title."""
GIVEN = "(select value >> 32 as session_no, value & 4294967295 as seq from each(:places::bigint[])) as given"
"""The places of a list that `packed` made, as rows."""
_UNCHANGED = f"""
select t.session_no, t.seq, octet_length(t.content) from {GIVEN}
  join transcript t on t.session_no = given.session_no and t.seq = given.seq /*postgres for share of t*/"""  # noqa: S608


class IndexedTo(Value, frozen=True):
    """Progress of one conversation in the index."""

    session_no: int
    seq: int
    missing: int
    """How many items are not in it yet; counted up to as many as was asked."""


class Text(Value, frozen=True):
    session_no: int
    seq: int
    content: str
    size: int
    """Its bytes in the database."""

    @property
    def place(self) -> TextPlace:
        return self.session_no, self.seq


class Index(Protocol):
    """The full-text indexes of one database. The table `search` has items, `thread_search` items and titles."""

    ENOUGH: int
    """So many new items of a conversation are indexed without anybody asking."""
    MAX_TAIL: int
    """So many items that are not indexed are read one by one by a search."""
    CONVERSATIONS: int
    MESSAGES: int
    """Conversations that are indexed in one commit, and messages of each: bounds how long others wait for theirs."""

    def words_of_item(self, session_no: int, seq: int, content: str) -> str:
        """The words under which an item of a conversation is kept, with spaces between them."""
        ...

    def words_of_text(self, mark: str, session_no: int, content: str) -> str:
        """The words under which a message or a title is kept; `mark` is its user's."""
        ...

    def add(self, table: str, words: Sequence[tuple[int, int, str]]) -> Work[None]:
        """Put words into an index, in the place of those that were there: (session, item, words)."""
        ...

    def find_items(
        self, place: IndexedTo, query: TranscriptQuery, filters: Mapping[str, Any], before: int, limit: int
    ) -> Work[Sequence[Values]]:
        """The newest indexed items before a number that answer the query, as their columns."""
        ...

    def find_texts(self, query: ThreadQuery, before: TextPlace, limit: int) -> Work[Sequence[TextPlace]]:
        """Some places before this one whose texts may answer, the newest first. None: there are no more."""
        ...


def packed(places: Sequence[TextPlace]) -> list[int]:
    return [(session_no << 32) + seq for session_no, seq in places]


def unchanged(texts: Sequence[Text]) -> Work[set[Text]]:
    """Those of these items that are still what was read: what was erased or deleted since must not come into the index.

    They stay so until the commit, and whoever erases one after it takes its words out of the index.
    """
    found = yield ask(_UNCHANGED, places=packed([text.place for text in texts]))
    sizes = {(session_no, seq): size for session_no, seq, size in found}
    return {text for text in texts if sizes.get(text.place) == text.size}
