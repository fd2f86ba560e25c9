"""What commands say of the cluster's secret: which one it is, where it is, what needs it. Never the secret itself."""

from pathlib import Path

from paddock.cli.checks.findings import Finding
from paddock.rules.cluster.secret import ClusterSecret
from paddock.rules.errors import StorageUnavailableError
from paddock.settings import EMBEDDED, Settings
from paddock.storage.files.cluster_secret import FILE_NAME, VARIABLE, find, is_there

LOST = "Set it again, or run `paddock keys adopt-secret` and write the settings of agents made over the API again."


def secret_apart(data: Path) -> str:
    """Return the sentence that a backup ends with."""
    where = f"{VARIABLE}" if not (data / FILE_NAME).exists() else f"{data / FILE_NAME}"
    return (
        f"Not in it: the cluster's secret ({where}). Keep it as safely, in another place: without it the settings of "
        "agents made over the API cannot be opened.\n"
    )


def secret_needed(data: Path) -> str:
    """Return the sentence that a restored backup is given with."""
    return (
        f"Before a host starts on it, bring the cluster's secret: set {VARIABLE}, or put the file {FILE_NAME} into "
        f"{data}. Without it the settings of agents made over the API have to be written again.\n"
    )


def secret(settings: Settings) -> Finding:
    """Whether the cluster's secret is there, and is the one the data were last used with."""
    if not is_there(settings.data):
        return Finding("secret", "ok", f"made in {settings.data} at the first start")
    try:
        found = find(settings.data)
    except StorageUnavailableError as error:
        return Finding("secret", "fail", str(error), f"Set {VARIABLE}, or restore the file.")
    if settings.store != EMBEDDED:
        return _shared(found)
    if (known := _last_used(settings.data)) is not None and known not in found.marks:
        return Finding("secret", "fail", f"{found.mark} ({found.source}) is not {known}, which was used before", LOST)
    return Finding("secret", "ok", f"{found.mark} ({found.source}), kept apart from backups")


def _shared(found: ClusterSecret) -> Finding:
    says = f"{found.mark} ({found.source})"
    if found.source == VARIABLE:
        return Finding("secret", "ok", f"{says}: every host needs the same")
    return Finding("secret", "note", f"{says} is this host's alone", f"Several hosts need the same {VARIABLE}.")


def _last_used(data: Path) -> str | None:
    import apsw

    from paddock.storage.sqlite.connection import open_reader

    try:
        connection = open_reader(data)
    except apsw.Error:
        return None
    try:
        row = connection.execute("select mark from cluster_secret").fetchone()
    except apsw.Error:  # written by an older version
        return None
    finally:
        connection.close()
    return row[0] if row else None
