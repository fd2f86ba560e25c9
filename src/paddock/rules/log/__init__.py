"""The log of a session: numbers and digests, events, cursors, replay, and what is left after erasure."""
