"""Streams of committed facts: tails of live sessions, messages about them between hosts, and streams that users open.

Only facts of the log pass here; doors decide what frames look like.
"""
