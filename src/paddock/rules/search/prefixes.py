"""Where the texts that begin with a prefix end, in order of code points: a range instead of a pattern to escape."""

LAST = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


def after_prefix(prefix: str) -> str | None:
    """The first text after all that begin with `prefix`; None when nothing comes after them."""
    kept = prefix.rstrip(chr(LAST))
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    return kept[:-1] + chr(_SURROGATES.stop if following in _SURROGATES else following)
