"""How dealing with a runner program can fail, inside this room. Doors and sessions never see these."""


class HandshakeError(Exception):
    """The peer does not speak our protocol; the text is for a person."""


class PeerRefusedError(Exception):
    """The peer answered with an error, or went away before it answered."""


class StartError(Exception):
    """No process could be had. `code` is one of the run failure codes of the wire."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
