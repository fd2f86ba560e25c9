"""Conversations as clients see them: their copy of the history, names, attachments."""
