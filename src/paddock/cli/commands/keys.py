"""`paddock keys`: its options. The work is in `data/keys.py`."""

import sys
from pathlib import Path

from paddock.cli.commands.options import argument, family, option, with_config, with_data, with_url

keys = family("API keys: who may call this host.")


@keys.command("create")
@option("--user", says="Who acts with it.", metavar="U", required=True)
@option("--workspace", says="The workspace it opens; default unless set.", metavar="W", default="default")
@option("--role", says="user, or admin to administer the host.", metavar="R", default="user")
@option("--if-none", says="Only if there is no key yet; for set-ups that start again.", flag=True)
@with_data
@with_config
def keys_create(user: str, workspace: str, role: str, if_none: bool, data: Path | None, config: Path | None) -> None:
    """Make an API key and print it, once."""
    from paddock import settings
    from paddock.cli.data.keys import create

    found = settings.load({"data": data}, config=config)
    keyless = not found.takes_tokens
    sys.exit(
        create(
            workspace=workspace,
            user=user,
            role=role,
            data=data,
            store=found.store,
            keyless=keyless,
            if_none=if_none,
        )
    )


@keys.command("list")
@with_url
@with_data
def keys_list(url: str | None, data: Path | None) -> None:
    """Show who has keys, and which of them were revoked."""
    from paddock.cli.client import connect
    from paddock.cli.data.keys import show

    sys.exit(show(connect(url, data)))


@keys.command("revoke")
@argument("key", says="The id that `paddock keys list` shows.")
@with_url
@with_data
def keys_revoke(key: str, url: str | None, data: Path | None) -> None:
    """Let nobody in with a key any more."""
    from paddock.cli.client import connect
    from paddock.cli.data.keys import revoke

    sys.exit(revoke(connect(url, data), key))


@keys.command("take-over")
@option("--user", says="Who gets it.", metavar="U", required=True)
@with_url
@with_data
def keys_take_over(user: str, url: str | None, data: Path | None) -> None:
    """Hand what was said without a key, by dev, to a user of the workspace default."""
    from paddock.cli.client import connect
    from paddock.cli.data.keys import take_over

    sys.exit(take_over(connect(url, data), user))


@keys.command("rotate-secret")
@with_data
@with_config
def keys_rotate_secret(data: Path | None, config: Path | None) -> None:
    """Make a new secret of the cluster in the data directory; those before it are kept for reading."""
    from paddock import settings
    from paddock.cli.data.keys import rotate_secret

    sys.exit(rotate_secret(settings.load({"data": data}, config=config)))


@keys.command("adopt-secret")
@with_data
@with_config
def keys_adopt_secret(data: Path | None, config: Path | None) -> None:
    """Go on with the secret that is set here when the one before is lost; what that one sealed is lost too."""
    from paddock import settings
    from paddock.cli.data.keys import adopt_secret

    sys.exit(adopt_secret(settings.load({"data": data}, config=config)))


@keys.command("rotate-signing")
@with_data
@with_config
def keys_rotate_signing(data: Path | None, config: Path | None) -> None:
    """Sign addresses of attachments with a new key; what the old one signed counts until it expires."""
    from paddock import settings
    from paddock.cli.data.keys import rotate_signing

    found = settings.load({"data": data}, config=config)
    sys.exit(rotate_signing(found))
