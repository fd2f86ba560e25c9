"""What goes out to platforms: what `paddock deliveries` takes."""

import sys
from pathlib import Path

from paddock.cli.commands.options import argument, family, option, with_data, with_url

deliveries = family("What is delivered to chat platforms, and what was given up.")


@deliveries.command("list")
@with_url
@with_data
@option("--status", says="pending, delivered or dead; all unless set.", metavar="S")
@option("--json", "as_json", says="Print them as JSON.", flag=True)
def deliveries_list(url: str | None, data: Path | None, status: str | None, as_json: bool) -> None:
    """Show deliveries, the newest first."""
    from paddock.cli.operating.deliveries import show

    sys.exit(show(status, url=url, data=data, as_json=as_json))


@deliveries.command("redeliver")
@argument("delivery", says="The id that `paddock deliveries list --status dead` shows.")
@with_url
@with_data
def deliveries_redeliver(delivery: str, url: str | None, data: Path | None) -> None:
    """Try something again that was given up."""
    from paddock.cli.operating.deliveries import again

    sys.exit(again(delivery, url=url, data=data))
