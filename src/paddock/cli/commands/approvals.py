"""Actions that wait for somebody: what `paddock approvals` takes."""

import sys
from pathlib import Path

from paddock.cli.commands.options import argument, family, option, with_data, with_url

approvals = family("Actions that wait for your approval.")


@approvals.command("list")
@with_url
@with_data
@option("--status", says="pending, granted, denied or expired; all unless set.", metavar="S")
@option("--json", "as_json", says="Print them as JSON.", flag=True)
def approvals_list(url: str | None, data: Path | None, status: str | None, as_json: bool) -> None:
    """Show what your agents asked for, newest first."""
    from paddock.cli.operating.approvals import show

    sys.exit(show(status, url=url, data=data, as_json=as_json))


with_approval = argument("approval", says="The id that `paddock approvals list` shows.")


@approvals.command("grant")
@with_approval
@with_url
@with_data
def approvals_grant(approval: str, url: str | None, data: Path | None) -> None:
    """Approve an action. It is done once, now."""
    from paddock.cli.operating.approvals import decide

    sys.exit(decide(approval, "grant", url=url, data=data))


@approvals.command("deny")
@with_approval
@with_url
@with_data
def approvals_deny(approval: str, url: str | None, data: Path | None) -> None:
    """Refuse an action. It is never done."""
    from paddock.cli.operating.approvals import decide

    sys.exit(decide(approval, "deny", url=url, data=data))
