"""Coding harnesses: what `paddock harness` takes."""

import sys
from typing import Annotated

import typer

from paddock.cli.commands.options import family

harness = family("Coding harnesses: what is installed here.")


@harness.command("doctor")
def harness_doctor(
    names: Annotated[list[str] | None, typer.Argument(help="Only these; exit 1 unless all of them are usable.")] = None,
) -> None:
    """Say which harnesses are installed, in which version, and how to install the others."""
    from paddock.cli.harness import doctor

    sys.exit(doctor(names or []))
