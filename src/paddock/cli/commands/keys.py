"""`paddock keys`: its options, and what it asks of a running host. What opens the store is in `data/keys.py`."""

from typing import TYPE_CHECKING

from paddock.cli.client import HostClient, at
from paddock.cli.commands.options import argument, family, option, with_data, with_host, with_settings
from paddock.cli.output import FAILED, note, write

if TYPE_CHECKING:
    from paddock.settings import Settings

keys = family("API keys: who may call this host.")


@keys.command("create")
@option("--user", says="The user who acts with it.", metavar="U", required=True)
@option("--workspace", says="The workspace it opens; default unless set.", metavar="W", default="default")
@option("--role", says="user, or admin to administer the host.", metavar="R", default="user")
@option("--if-none", says="Only if there is no key yet; for set-ups that start again.", flag=True)
@with_settings(with_data)
def keys_create(user: str, workspace: str, role: str, if_none: bool, settings: "Settings") -> None:
    """Make an API key and print it, once."""
    from paddock.cli.data.keys import create

    create(settings, workspace=workspace, user=user, role=role, if_none=if_none)


@keys.command("list")
@with_host
def keys_list(host: HostClient) -> None:
    """Show who has keys, and which of them were revoked."""
    for row in host.call("GET", at("api-keys"))["keys"]:
        state = f"revoked {row['revokedAt']}" if "revokedAt" in row else "in force"
        write(f"{row['keyId']}  {row['workspace']}/{row['user']}  {row['role']}  made {row['createdAt']}  {state}\n")


@keys.command("revoke")
@argument("key", says="The id that `paddock keys list` shows.")
@with_host
def keys_revoke(key: str, host: HostClient) -> None:
    """Revoke a key: nobody is let in with it any more."""
    host.call("DELETE", at("api-keys", key))
    write(f"Nobody is let in with the key {key} any more.\n")


@keys.command("take-over")
@option("--user", says="The user who gets it.", metavar="U", required=True)
@with_host
def keys_take_over(user: str, host: HostClient) -> int:
    """Hand what was said without a key, by dev, to a user of the workspace default."""
    taken = 0
    while True:
        part = host.call("POST", at("take-over"), {"user": user})
        taken += part["conversations"]
        if not part["left"] or not part["conversations"]:
            break
    write(f"{taken} conversations of dev are {user}'s now.\n")
    if part["left"]:
        note(f"{part['left']} stay dev's, because something goes on in them. Stop it or wait, and try again.")
    return FAILED if part["left"] else 0


@keys.command("rotate-secret")
@with_settings(with_data)
def keys_rotate_secret(settings: "Settings") -> None:
    """Make a new secret of the cluster in the data directory; those before it are kept for reading."""
    from paddock.cli.data.keys import rotate_secret

    rotate_secret(settings)


@keys.command("adopt-secret")
@with_settings(with_data)
def keys_adopt_secret(settings: "Settings") -> None:
    """Go on with the secret that is set here when the one before is lost; what that one sealed is lost too."""
    from paddock.cli.data.keys import adopt_secret

    adopt_secret(settings)


@keys.command("rotate-signing")
@with_settings(with_data)
def keys_rotate_signing(settings: "Settings") -> None:
    """Sign addresses of attachments with a new key; what the old one signed counts until it expires."""
    from paddock.cli.data.keys import rotate_signing

    rotate_signing(settings)
