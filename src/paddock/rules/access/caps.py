"""Conditions on how much is kept, and what is said when one does not hold. Pure."""

from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import ArtifactsCap, StorageCap, UploadsCap


def check_cap(held: int, cap: ArtifactsCap | UploadsCap | StorageCap) -> None:
    """Raise PAYLOAD_TOO_LARGE when more is held than the cap allows."""
    if held <= cap.max_bytes:
        return
    if isinstance(cap, ArtifactsCap):
        what, cure = "the artifacts of this workspace", "wait until some expire, or ask for a higher limit"
    elif isinstance(cap, UploadsCap):
        what, cure = "your uploads", "delete some, or wait until they expire"
    else:
        what, cure = "this storage area", "delete keys first"
    raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, f"{what} would hold more than {cap.max_bytes} bytes; {cure}")
