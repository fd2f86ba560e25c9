"""The loop that owns one session: it takes all that waits, drafts facts, commits them, then acts on them.

Messages come in from `conversations/inbox.py` (people) and `runs/live_run.py` (results); committed facts leave to
`streams/tails.py`. Nothing is decided here: `rules/session` decides. Runners and databases are behind ports.
"""
