"""What goes out to platforms: what `paddock deliveries` takes."""

import sys
from typing import Annotated

import typer

from paddock.cli.commands.options import Data, Url, family, option

deliveries = family("What is delivered to chat platforms, and what was given up.")


@deliveries.command("list")
def deliveries_list(
    url: Url = None,
    data: Data = None,
    status: Annotated[
        str | None, option("--status", says="pending, delivered or dead; all unless set.", metavar="S")
    ] = None,
    as_json: Annotated[bool, option("--json", says="Print them as JSON.")] = False,
) -> None:
    """Show deliveries, the newest first."""
    from paddock.cli.deliveries import show

    sys.exit(show(status, url=url, data=data, as_json=as_json))


@deliveries.command("redeliver")
def deliveries_redeliver(
    delivery: Annotated[str, typer.Argument(help="The id that `paddock deliveries list --status dead` shows.")],
    url: Url = None,
    data: Data = None,
) -> None:
    """Try something again that was given up."""
    from paddock.cli.deliveries import again

    sys.exit(again(delivery, url=url, data=data))
