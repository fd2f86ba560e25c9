"""Who may call the host: what `paddock keys` takes."""

import sys
from typing import Annotated

import typer

from paddock.cli.commands.options import Config, Data, Url, family, option

keys = family("API keys: who may call this host.")


@keys.command("create")
def keys_create(
    user: Annotated[str, option("--user", says="Who acts with it.", metavar="U")],
    workspace: Annotated[
        str, option("--workspace", says="The workspace it opens; default unless set.", metavar="W")
    ] = "default",
    role: Annotated[str, option("--role", says="user, or admin to administer the host.", metavar="R")] = "user",
    if_none: Annotated[
        bool, option("--if-none", says="Only if there is no key yet; for set-ups that start again.")
    ] = False,
    data: Data = None,
    config: Config = None,
) -> None:
    """Make an API key and print it, once."""
    from paddock import settings
    from paddock.cli.keys import create

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
def keys_list(url: Url = None, data: Data = None) -> None:
    """Show who has keys, and which of them were revoked."""
    from paddock.cli.client import connect
    from paddock.cli.keys import show

    sys.exit(show(connect(url, data)))


@keys.command("revoke")
def keys_revoke(
    key: Annotated[str, typer.Argument(help="The id that `paddock keys list` shows.")],
    url: Url = None,
    data: Data = None,
) -> None:
    """Let nobody in with a key any more."""
    from paddock.cli.client import connect
    from paddock.cli.keys import revoke

    sys.exit(revoke(connect(url, data), key))


@keys.command("rotate-secret")
def keys_rotate_secret(data: Data = None, config: Config = None) -> None:
    """Make a new secret of the cluster in the data directory; those before it are kept for reading."""
    from paddock import settings
    from paddock.cli.keys import rotate_secret

    sys.exit(rotate_secret(settings.load({"data": data}, config=config)))


@keys.command("adopt-secret")
def keys_adopt_secret(data: Data = None, config: Config = None) -> None:
    """Go on with the secret that is set here when the one before is lost; what that one sealed is lost too."""
    from paddock import settings
    from paddock.cli.keys import adopt_secret

    sys.exit(adopt_secret(settings.load({"data": data}, config=config)))


@keys.command("rotate-signing")
def keys_rotate_signing(data: Data = None, config: Config = None) -> None:
    """Sign addresses of attachments with a new key; what the old one signed counts until it expires."""
    from paddock import settings
    from paddock.cli.keys import rotate_signing

    found = settings.load({"data": data}, config=config)
    sys.exit(rotate_signing(found))
