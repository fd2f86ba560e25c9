"""Coding harnesses: what `paddock harness` takes."""

import sys

from paddock.cli.commands.options import argument, family

harness = family("Coding harnesses: what is installed here.")


@harness.command("doctor")
@argument("names", says="Only these; exit 1 unless all of them are usable.", many=True, required=False)
def harness_doctor(names: list[str] | None) -> None:
    """Say which harnesses are installed, in which version, and how to install the others."""
    from paddock.cli.checks.harness import doctor

    sys.exit(doctor(names or []))
