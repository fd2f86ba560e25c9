"""What an open, idle conversation costs the host in memory: `python -m bench.sessions`. Real store, no runner."""

import asyncio
import sys
import tempfile
from pathlib import Path
from uuid import uuid4

import psutil

from paddock.compose.build import house_of
from paddock.compose.rooms import rooms_of
from paddock.host.conversations.controls import Controls
from paddock.host.people.principals import DEV
from paddock.settings import Settings

TARGET_KB = 20.0
COUNT = 10_000
WARM = 1_000


async def kilobytes_per_session(count: int = COUNT) -> float:
    """Growth of the process while so many conversations are opened and left open."""
    with tempfile.TemporaryDirectory() as directory:
        rooms = rooms_of(Settings(data=Path(directory) / "data"))
        async with house_of(rooms).running():
            controls = Controls(
                sessions=rooms.talks.sessions,
                agents=rooms.machinery.agents,
                records=rooms.ground.store,
                clock=rooms.ground.clock,
            )
            await _open(controls, WARM)
            before = psutil.Process().memory_info().rss
            await _open(controls, count)
            return (psutil.Process().memory_info().rss - before) / 1024 / count


async def _open(controls: Controls, count: int) -> None:
    for start in range(0, count, 100):
        threads = [str(uuid4()) for _ in range(min(100, count - start))]
        answers = await asyncio.gather(*(controls.open(DEV, thread) for thread in threads))
        await asyncio.gather(*(controls.settled(t, a.tx_id) for t, a in zip(threads, answers, strict=True)))


def main() -> int:
    figure = asyncio.run(kilobytes_per_session())
    print(f"open idle sessions: {figure:.2f} KB each over {COUNT:,} (target <= {TARGET_KB:.0f})")
    return 0 if figure <= TARGET_KB else 1


if __name__ == "__main__":
    sys.exit(main())
