"""Writes to eight sessions at once for as long as it lives and prints a line for each acknowledged batch."""

import sys
from pathlib import Path

import anyio

from contracts.builders import Owner, said
from paddock.ports import Store
from paddock.storage.chosen import store_at


async def keep_writing(store: Store, session_id: str) -> None:
    owner = await Owner.of(store, session_id)
    while True:
        await owner.write(said("a"), said("b"), snapshot=str(owner.head.seq).encode())
        print(session_id, owner.head.seq, flush=True)


async def main() -> None:
    address, directory = sys.argv[1:]
    store = store_at(address, Path(directory))
    await store.open()
    async with anyio.create_task_group() as tasks:
        for n in range(8):
            tasks.start_soon(keep_writing, store, f"session-{n}")


if __name__ == "__main__":
    anyio.run(main)
