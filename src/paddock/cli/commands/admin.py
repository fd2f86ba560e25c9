"""Looking after the data: what `paddock admin` takes."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from paddock.cli.commands.options import Config, Data, Url, family, option

admin = family("Look after the data: check, rebuild, back up, restore, delete, erase, move into a cluster.")


Store = Annotated[str | None, option("--store", says="The database.", env="PADDOCK_STORE", metavar="ADDRESS")]


@admin.command("verify")
def admin_verify(data: Data = None, store: Store = None, config: Config = None) -> None:
    """Check every conversation's log and every stored file. May run beside a host."""
    from paddock.cli.admin import verify_all
    from paddock.settings import load

    sys.exit(verify_all(data, load({"store": store, "data": data}, config=config)))


@admin.command("rebuild")
def admin_rebuild(
    data: Data = None,
    store: Store = None,
    check: Annotated[bool, option("--check", says="Only compare; may run beside a host.")] = False,
    config: Config = None,
) -> None:
    """Make runs and transcripts anew from the log, and say what was different."""
    from paddock.cli.admin import rebuild_all
    from paddock.settings import load

    sys.exit(rebuild_all(data, load({"store": store, "data": data}, config=config), only_check=check))


@admin.command("backup")
def admin_backup(
    target: Annotated[Path, typer.Argument(help="A new directory, or a new file ending in .tar.")],
    data: Data = None,
    store: Store = None,
    config: Config = None,
) -> None:
    """Back up a data directory, or a PostgreSQL database and its files. Hosts may go on meanwhile."""
    from paddock.cli.admin import back_up
    from paddock.settings import load

    sys.exit(back_up(target, data, load({"store": store, "data": data}, config=config)))


@admin.command("restore")
def admin_restore(
    backup: Annotated[Path, typer.Argument(help="What `paddock admin backup` made.")],
    data: Data = None,
    store: Store = None,
    config: Config = None,
) -> None:
    """Make a new data directory, or fill an empty PostgreSQL database, of a backup, after checking every file of it."""
    from paddock.cli.admin import restore
    from paddock.settings import load

    sys.exit(restore(backup, data, load({"store": store, "data": data}, config=config)))


@admin.command("migrate")
def admin_migrate(
    store: Store = None,
    check: Annotated[bool, option("--check", says="Only say what is to come; 1 when something is.")] = False,
    config: Config = None,
) -> None:
    """Bring the schema of a PostgreSQL database up to date. Hosts do the same when they start."""
    from paddock.cli.cluster import migrate
    from paddock.settings import load

    sys.exit(migrate(load({"store": store}, config=config), only_check=check))


@admin.command("import")
def admin_import(
    directory: Annotated[Path, typer.Argument(help="The data directory of an embedded host that is stopped.")],
    store: Store = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Move an embedded installation into an empty PostgreSQL database, and its files to where files are kept."""
    from paddock.cli.cluster import import_from
    from paddock.settings import load

    sys.exit(import_from(directory.absolute(), load({"store": store, "data": data}, config=config)))


Thread = Annotated[str, typer.Argument(help="The conversation: its threadId.")]


@admin.command("delete-thread")
def admin_delete_thread(thread: Thread, url: Url = None, data: Data = None) -> None:
    """Delete a conversation with everything that belongs to it."""
    from paddock.cli.admin import delete_thread

    sys.exit(delete_thread(thread, url=url, data=data))


@admin.command("erase")
def admin_erase(
    thread: Thread,
    item: Annotated[str, typer.Argument(help="The message: its item id, such as 0198...-....1")],
    files: Annotated[bool, option("--files", says="Also forget the files it refers to.")] = False,
    url: Url = None,
    data: Data = None,
) -> None:
    """Erase the words of one message; the log still verifies."""
    from paddock.cli.admin import erase

    sys.exit(erase(thread, item, files=files, url=url, data=data))
