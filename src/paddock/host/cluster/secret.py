"""Checks the cluster's secret at every start against the one this installation was used with before."""

import structlog

from paddock.ports.definitions import SecretRecords
from paddock.rules.cluster import ClusterSecret
from paddock.rules.errors import StorageUnavailableError

log = structlog.get_logger("paddock.secret")


async def settle_secret(records: SecretRecords, secret: ClusterSecret, *, shared: bool) -> None:
    """Record the secret in use, and warn when it changed. `shared`: other hosts may use the same data.

    Raises StorageUnavailableError when they would use another secret.
    """
    known = await records.secret_mark()
    if known == secret.mark:
        return
    if known is not None and known not in secret.marks:
        if shared:
            raise StorageUnavailableError(foreign(known, secret))
        text = "the cluster's secret has changed: settings sealed with the old one cannot be opened any more"
        log.warning(text, action="secret.lost", source=secret.source, mark=secret.mark, before=known)
    await records.set_secret_mark(secret.mark)


def foreign(known: str, secret: ClusterSecret) -> str:
    return (
        f"this database is used with the cluster's secret {known}, but {secret.source} has {secret.mark}: set "
        "PADDOCK_SECRET to the same at every host, or, when it is lost, run `paddock keys adopt-secret`"
    )
