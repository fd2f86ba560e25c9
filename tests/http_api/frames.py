"""A body of server-sent events taken apart into its frames."""


def split(body: bytes) -> list[bytes]:
    """The frames of events, byte for byte; comments are left out."""
    return [frame + b"\n\n" for frame in body.split(b"\n\n")[:-1] if not frame.startswith(b":")]


def cursor_of(frame: bytes) -> str:
    return frame.split(b"\n")[0][4:].decode()
