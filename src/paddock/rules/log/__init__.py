"""The log of a session and what follows from it: numbers and digests, the rows a fact makes, events and cursors for
runners, replay, and what is left after erasure.

The session machine decides what is recorded; nothing is decided here.
"""
