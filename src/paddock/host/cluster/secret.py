"""Notices at every start which secret an installation is used with: a lost one is said, a foreign one refused."""

import structlog

from paddock.ports.definitions import SecretRecords
from paddock.rules.cluster.secret import ClusterSecret
from paddock.rules.errors import StorageUnavailableError

log = structlog.get_logger("paddock.secret")


async def settle_secret(records: SecretRecords, secret: ClusterSecret, *, shared: bool) -> None:
    """Note the secret in use. `shared`: other hosts may use the same data, and must have the same secret.

    Raises StorageUnavailableError where they would not.
    """
    known = await records.secret_mark()
    if known == secret.mark:
        return
    if known is not None and known not in secret.marks:
        if shared:
            raise StorageUnavailableError(foreign(known, secret))
        text = "the cluster's secret is another one than before: what was sealed with that cannot be opened any more"
        log.warning(text, action="secret.lost", source=secret.source, mark=secret.mark, before=known)
    await records.set_secret_mark(secret.mark)


def foreign(known: str, secret: ClusterSecret) -> str:
    return (
        f"this database is used with the cluster's secret {known}, and {secret.source} has {secret.mark}: set "
        "PADDOCK_SECRET to the same at every host, or, when it is lost, run `paddock keys adopt-secret`"
    )
