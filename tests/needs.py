"""What a test needs of the machine: installed when it can be, named loudly when it cannot, and never missing in CI."""

import os
import shutil
import subprocess
from typing import NoReturn

import pytest


def not_run(what: str) -> NoReturn:
    """Leave a test out, in one line that says so; in CI that is a failure."""
    said = f"NOT RUN: {what}"
    if os.environ.get("CI"):
        pytest.fail(said)
    pytest.skip(said)


def needs(program: str, what: str) -> None:
    """This test needs a program that cannot be installed from here."""
    if shutil.which(program) is None:
        not_run(f"{what}, because there is no `{program}` on this machine")


def install(package: str, program: str) -> bool:
    """Have a Debian package's program, installing it when we may. The package lists of a new machine may be empty."""
    may = os.geteuid() == 0 and shutil.which("apt-get")
    for step in (["install", "-y", "-qq", package], ["update", "-qq"], ["install", "-y", "-qq", package]):
        if may and shutil.which(program) is None:
            subprocess.run(["apt-get", *step], check=False, capture_output=True)
    return shutil.which(program) is not None
