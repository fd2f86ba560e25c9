"""Server-sent events, as far as model providers use them: the data of each event, in order."""

MAX_EVENT_BYTES = 8 * 1024 * 1024


class RubbishError(Exception):
    """What the server said is not what it promised to say."""


class EventReader:
    """Cuts a stream of bytes into the data of its events."""

    __slots__ = ("_data", "_rest", "heard")

    def __init__(self) -> None:
        self.heard = False
        """There was an event."""
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, received: bytes) -> list[bytes]:
        """The data of every event that is complete now."""
        lines = (self._rest + received).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > MAX_EVENT_BYTES:
            raise RubbishError(f"a line of more than {MAX_EVENT_BYTES} bytes")
        return self._events(lines)

    def end(self) -> list[bytes]:
        """What was complete but for the empty line that ends it."""
        rest, self._rest = self._rest, b""
        return self._events([rest, b""])

    def _events(self, lines: list[bytes]) -> list[bytes]:
        found: list[bytes] = []
        for line in lines:
            if line.startswith(b"data:"):
                if line.endswith(b"\r"):
                    line = line[:-1]  # noqa: PLW2901 - some servers end their lines so
                self._data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif line in (b"", b"\r") and self._data:
                found.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
                self._data = []
        if found:
            self.heard = True
        return found
