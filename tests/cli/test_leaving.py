"""The end of the program is its exit code, also where a library would make a crash of it."""

import subprocess
import sys

import pytest

PROGRAM = """
import {library}
import atexit, os, sys
from paddock.cli.hosting.process import leave
print("said", end="")
atexit.register(os.abort)  # what comes late while Python takes itself apart
leave({code!r})
"""


def leaving(code: object, library: str = "obstore") -> tuple[int, str, str]:
    program = PROGRAM.format(code=code, library=library)
    seen = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    return seen.returncode, seen.stdout, seen.stderr.strip()


@pytest.mark.parametrize(("code", "left"), [(2, (2, "said", "")), (None, (0, "said", "")), ("why", (1, "said", "why"))])
def test_where_the_library_of_s3_is_loaded_python_is_not_taken_apart(code: object, left: object) -> None:
    assert leaving(code) == left


def test_elsewhere_it_is() -> None:
    assert leaving(2, "json")[0] == -6
