"""Looking after the data: what `paddock admin` takes."""

import sys
from pathlib import Path

from paddock.cli.commands.options import argument, family, option, with_config, with_data, with_url

admin = family("Look after the data: check, rebuild, back up, restore, delete, erase, move into a cluster.")


with_store = option("--store", says="The database.", env="PADDOCK_STORE", metavar="ADDRESS")


@admin.command("verify")
@with_data
@with_store
@with_config
def admin_verify(data: Path | None, store: str | None, config: Path | None) -> None:
    """Check every conversation's log and every stored file. May run beside a host."""
    from paddock.cli.data.admin import verify_all
    from paddock.settings import load

    sys.exit(verify_all(data, load({"store": store, "data": data}, config=config)))


@admin.command("rebuild")
@with_data
@with_store
@option("--check", says="Only compare; may run beside a host.", flag=True)
@with_config
def admin_rebuild(data: Path | None, store: str | None, check: bool, config: Path | None) -> None:
    """Make runs and transcripts anew from the log, and say what was different."""
    from paddock.cli.data.admin import rebuild_all
    from paddock.settings import load

    sys.exit(rebuild_all(data, load({"store": store, "data": data}, config=config), only_check=check))


@admin.command("backup")
@argument("target", says="A new directory, or a new file ending in .tar.", kind=Path)
@with_data
@with_store
@with_config
def admin_backup(target: Path, data: Path | None, store: str | None, config: Path | None) -> None:
    """Back up a data directory, or a PostgreSQL database and its files. Hosts may go on meanwhile."""
    from paddock.cli.data.admin import back_up
    from paddock.settings import load

    sys.exit(back_up(target, data, load({"store": store, "data": data}, config=config)))


@admin.command("restore")
@argument("backup", says="What `paddock admin backup` made.", kind=Path)
@with_data
@with_store
@with_config
def admin_restore(backup: Path, data: Path | None, store: str | None, config: Path | None) -> None:
    """Make a new data directory, or fill an empty PostgreSQL database, of a backup, after checking every file of it."""
    from paddock.cli.data.admin import restore
    from paddock.settings import load

    sys.exit(restore(backup, data, load({"store": store, "data": data}, config=config)))


@admin.command("migrate")
@with_store
@option("--check", says="Only say what is to come; 1 when something is.", flag=True)
@with_config
def admin_migrate(store: str | None, check: bool, config: Path | None) -> None:
    """Bring the schema of a PostgreSQL database up to date. Hosts do the same when they start."""
    from paddock.cli.data.cluster import migrate
    from paddock.settings import load

    sys.exit(migrate(load({"store": store}, config=config), only_check=check))


@admin.command("import")
@argument("directory", says="The data directory of an embedded host that is stopped.", kind=Path)
@with_store
@with_data
@with_config
def admin_import(directory: Path, store: str | None, data: Path | None, config: Path | None) -> None:
    """Move an embedded installation into an empty PostgreSQL database, and its files to where files are kept."""
    from paddock.cli.data.cluster import import_from
    from paddock.settings import load

    sys.exit(import_from(directory.absolute(), load({"store": store, "data": data}, config=config)))


with_thread = argument("thread", says="The conversation: its threadId.")


@admin.command("delete-thread")
@with_thread
@with_url
@with_data
def admin_delete_thread(thread: str, url: str | None, data: Path | None) -> None:
    """Delete a conversation with everything that belongs to it."""
    from paddock.cli.data.admin import delete_thread

    sys.exit(delete_thread(thread, url=url, data=data))


@admin.command("erase")
@with_thread
@argument("item", says="The message: its item id, such as 0198...-....1")
@option("--files", says="Also forget the files it refers to.", flag=True)
@with_url
@with_data
def admin_erase(thread: str, item: str, files: bool, url: str | None, data: Path | None) -> None:
    """Erase the words of one message; the log still verifies."""
    from paddock.cli.data.admin import erase

    sys.exit(erase(thread, item, files=files, url=url, data=data))
