"""Conversations as clients see them: messages in, controls, history by day, branches, files, exports, names.

Doors call in here; `inbox.py` is where a message is accepted. The session's own loop is in `session/`.
"""
