"""The native door: runs, conversations, history, attachments and what belongs to one user."""
