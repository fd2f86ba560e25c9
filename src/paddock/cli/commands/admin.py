"""`paddock admin`: its options, and what it asks of a running host. The work on the data is in `data/`."""

from pathlib import Path
from typing import TYPE_CHECKING

from paddock.cli.client import SESSIONS, HostClient, at
from paddock.cli.commands.options import argument, family, option, with_data, with_host, with_settings
from paddock.cli.output import write

if TYPE_CHECKING:
    from paddock.settings import Settings

admin = family("Look after the data: check, rebuild, back up, restore, delete, erase, move into a cluster.")
with_store = option("--store", says="The database.", env="PADDOCK_STORE", metavar="ADDRESS")
with_thread = argument("thread", says="The conversation: its threadId.")


@admin.command("verify")
@with_settings(with_data, with_store)
def admin_verify(settings: "Settings") -> int:
    """Check every conversation's log and every stored file. May run beside a host."""
    from paddock.cli.data.admin import verify

    return verify(settings)


@admin.command("rebuild")
@with_settings(with_data, with_store)
@option("--check", says="Only compare; may run beside a host.", flag=True)
def admin_rebuild(settings: "Settings", check: bool) -> int:
    """Make runs and transcripts again from the log, and say what was different."""
    from paddock.cli.data.admin import rebuild

    return rebuild(settings, only_check=check)


@admin.command("backup")
@argument("target", says="A new directory, or a new file ending in .tar.", kind=Path)
@with_settings(with_data, with_store)
def admin_backup(target: Path, settings: "Settings") -> None:
    """Back up a data directory, or a PostgreSQL database and its files. Hosts may go on meanwhile."""
    from paddock.cli.data.admin import back_up

    back_up(target, settings)


@admin.command("restore")
@argument("backup", says="What `paddock admin backup` made.", kind=Path)
@with_settings(with_data, with_store)
def admin_restore(backup: Path, settings: "Settings") -> int:
    """Make a new data directory, or fill an empty PostgreSQL database, from a backup, after checking all its files."""
    from paddock.cli.data.admin import restore

    return restore(backup, settings)


@admin.command("migrate")
@with_settings(with_store)
@option("--check", says="Only say what would change; exit 1 when something would.", flag=True)
def admin_migrate(settings: "Settings", check: bool) -> int:
    """Bring the schema of a PostgreSQL database up to date. Hosts do the same when they start."""
    from paddock.cli.data.cluster import migrate

    return migrate(settings, only_check=check)


@admin.command("import")
@argument("directory", says="The data directory of an embedded host that is stopped.", kind=Path)
@with_settings(with_store, with_data)
def admin_import(directory: Path, settings: "Settings") -> None:
    """Move an embedded installation into an empty PostgreSQL database, and its files to where files are kept."""
    from paddock.cli.data.cluster import import_from

    import_from(directory.absolute(), settings)


@admin.command("delete-thread")
@with_thread
@with_host
def admin_delete_thread(thread: str, host: HostClient) -> None:
    """Delete a conversation with everything that belongs to it."""
    host.call("DELETE", at(*SESSIONS, thread))
    write(f"Conversation {thread} is deleted.\n")


@admin.command("erase")
@with_thread
@argument("item", says="The message: its item id, such as 0198...-....1")
@option("--files", says="Also forget the files it refers to.", flag=True)
@with_host
def admin_erase(thread: str, item: str, files: bool, host: HostClient) -> None:
    """Erase the words of one message; the log still verifies."""
    erased = host.call("POST", at(*SESSIONS, thread, "items", item, "erase"), {"artifacts": files})
    more = f" and {erased['artifacts']} of its files" if files else ""
    write(f"Message {item} of conversation {thread}{more} is erased.\n")
