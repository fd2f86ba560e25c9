"""Notice that a plugin's files were saved. What no package would hold is not looked at, a host's data least of all:
a host writes there all the time.
"""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

from paddock.runners.packages.contents import LEFT_OUT
from paddock.runners.packages.trees import holds_data

POLL_SECONDS = 0.3

Stamps = dict[str, tuple[int, int]]


def snapshot(directory: Path) -> Stamps:
    """Every file with its time and size; a save changes one of them."""
    stamps: Stamps = {}
    for top, names, files in os.walk(directory):
        names[:] = [name for name in names if name not in LEFT_OUT and not holds_data(f"{top}/{name}")]
        for name in files:
            path = os.path.join(top, name)  # noqa: PTH118 - thousands of files, twice a second
            with suppress(OSError):
                found = os.stat(path)  # noqa: PTH116
                stamps[path] = (found.st_mtime_ns, found.st_size)
    return stamps


async def changed(directory: Path, before: Stamps) -> None:
    """Return when something was saved since then."""
    while snapshot(directory) == before:  # noqa: ASYNC110 - files have no event to wait for without another library
        await asyncio.sleep(POLL_SECONDS)
