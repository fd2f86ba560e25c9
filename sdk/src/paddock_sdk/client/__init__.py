"""Talk to a Paddock host from Python: hand in a message, follow its answer through broken connections, read history.

    from paddock_sdk.client import Client

    client = Client("http://127.0.0.1:8484")
    print(client.ask("hello"))

Standard library only, and blocking: it loads in an instant and works in any thread.
"""

from paddock_sdk.client.client import Client
from paddock_sdk.client.platform import File, NotSignedError, Platform
from paddock_sdk.client.shapes import (
    Accepted,
    FoundPage,
    FoundSession,
    HistoryDay,
    HistoryMessage,
    Me,
    Run,
    RunFailedError,
    Session,
)
from paddock_sdk.client.wire import Event, GoneError, RefusedError, Wire

__all__ = [
    "Accepted",
    "Client",
    "Event",
    "File",
    "FoundPage",
    "FoundSession",
    "GoneError",
    "HistoryDay",
    "HistoryMessage",
    "Me",
    "NotSignedError",
    "Platform",
    "RefusedError",
    "Run",
    "RunFailedError",
    "Session",
    "Wire",
]
