"""The one version number of the protocol and the rule of who may talk to whom. Nothing else is negotiated."""

PROTOCOL_VERSION = "1"


def major_of(version: str) -> str:
    """The part that decides: "1" of "1", "1.4" or "1.4.2"."""
    return version.partition(".")[0].strip()


def is_compatible(version: str | None) -> bool:
    """Tell if a peer of that version is compatible: its major is ours. None (not stated) is not compatible.

    A manifest that leaves the version out means "1"; its model fills that in. A handshake has no such grace.
    """
    return version is not None and major_of(version) == PROTOCOL_VERSION
