"""Server-sent events of another server, out of a stream of bytes. Bounded, whatever that server sends."""

MAX_EVENT_BYTES = 8 * 1024 * 1024


class EventTooLargeError(ValueError):
    """An event, or one line of it, has more than `MAX_EVENT_BYTES`."""


class EventReader:
    """Cuts a stream of bytes into the data of its events."""

    __slots__ = ("_data", "_data_size", "_rest", "_rest_size", "heard")

    def __init__(self) -> None:
        self.heard = False
        """There was an event."""
        self._data: list[bytes] = []
        """Of the event that has not ended."""
        self._data_size = 0
        self._rest: list[bytes] = []
        """Pieces of the line that has not ended."""
        self._rest_size = 0

    def feed(self, received: bytes) -> list[bytes]:
        """Return the data of every event that is complete now. Raises EventTooLargeError."""
        *lines, rest = received.split(b"\n")
        if lines and self._rest:
            lines[0] = b"".join((*self._rest, lines[0]))
            self._rest, self._rest_size = [], 0
        if rest:
            self._rest.append(rest)
            self._rest_size += len(rest)
        found = self._events(lines)
        if self._rest_size + self._data_size > MAX_EVENT_BYTES:
            raise EventTooLargeError(f"an event of more than {MAX_EVENT_BYTES} bytes")
        return found

    def end(self) -> list[bytes]:
        """Return the last event, when only its closing empty line is missing."""
        rest, self._rest, self._rest_size = b"".join(self._rest), [], 0
        return self._events([rest, b""])

    def _events(self, lines: list[bytes]) -> list[bytes]:
        found: list[bytes] = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data_size += len(line)
                if line.endswith(b"\r"):
                    line = line[:-1]  # noqa: PLW2901 - some servers end their lines so
                self._data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif line in (b"", b"\r") and self._data:
                found.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
                self._data, self._data_size = [], 0
        if found:
            self.heard = True
        return found
