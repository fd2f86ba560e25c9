"""How dealing with a runner program can fail, inside this room. Doors and sessions never see these."""


class HandshakeError(Exception):
    """The peer does not speak our protocol; the text is for a person. `quoted` is what the peer said of it."""

    def __init__(self, message: str, quoted: str = "") -> None:
        super().__init__(message)
        self.quoted = quoted


class PeerRefusedError(Exception):
    """The peer answered with an error, or went away before it answered. `quoted` is what it said, in its own words."""

    def __init__(self, message: str, quoted: str = "") -> None:
        super().__init__(message)
        self.quoted = quoted


class StartError(Exception):
    """No process could be had. `code` is one of the run failure codes of the wire, `message` is for anybody; `detail`,
    which may quote programs and name places on this machine, is for whoever runs the host."""

    def __init__(self, code: str, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.detail = detail or message
