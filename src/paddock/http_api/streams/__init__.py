"""Server-sent events of runs and conversations: opened at a cursor, followed, resumed."""
