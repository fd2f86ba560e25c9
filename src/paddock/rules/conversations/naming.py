"""Names of conversations: the title, else the beginning. Pure; nothing here is stored.

The beginning is read where it is wanted and never written down beside the message, so it is erased with it.
"""

from paddock.rules.rows.rows import SessionSummary

WORDS_CHARS = 60
READ_CHARS = 4_000
"""Of a message, for its beginning."""


def name_of(session: SessionSummary) -> str | None:
    """None while nothing was said in it."""
    return session.title or shortened(session.begins or "") or None


def shortened(text: str) -> str:
    """The beginning of a message on one line, cut between words where there are any; whom it calls is left out."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text[:READ_CHARS]).split())
    called, _, rest = line.partition(" ")
    line = rest if called.startswith("@") and rest else line
    if len(line) <= WORDS_CHARS:
        return line
    whole, _, _ = line[:WORDS_CHARS].rpartition(" ")
    return (whole if len(whole) > WORDS_CHARS // 2 else line[: WORDS_CHARS - 1]) + "…"
