"""Actions that wait for somebody: what `paddock approvals` takes."""

import sys
from typing import Annotated

import typer

from paddock.cli.commands.options import Data, Url, family, option

approvals = family("Actions that wait for your approval.")


@approvals.command("list")
def approvals_list(
    url: Url = None,
    data: Data = None,
    status: Annotated[
        str | None, option("--status", says="pending, granted, denied or expired; all unless set.", metavar="S")
    ] = None,
    as_json: Annotated[bool, option("--json", says="Print them as JSON.")] = False,
) -> None:
    """Show what your agents asked for, newest first."""
    from paddock.cli.approvals import show

    sys.exit(show(status, url=url, data=data, as_json=as_json))


Approval = Annotated[str, typer.Argument(help="The id that `paddock approvals list` shows.")]


@approvals.command("grant")
def approvals_grant(approval: Approval, url: Url = None, data: Data = None) -> None:
    """Approve an action. It is done once, now."""
    from paddock.cli.approvals import decide

    sys.exit(decide(approval, "grant", url=url, data=data))


@approvals.command("deny")
def approvals_deny(approval: Approval, url: Url = None, data: Data = None) -> None:
    """Refuse an action. It is never done."""
    from paddock.cli.approvals import decide

    sys.exit(decide(approval, "deny", url=url, data=data))
