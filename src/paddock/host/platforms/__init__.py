"""Chat platforms: signed events come in through `ingress.py`, deliveries and platform actions go out as webhooks.

Nothing here knows a particular platform, and nothing runs an agent: an event becomes a run like any other message.
"""
