"""The floor's agent: reads runs as JSON lines, answers each with its tokens and an end. Standard library only.

Output is buffered as in any Python program (whatever PYTHONUNBUFFERED says) and flushed when all that was read is
answered: a burst of runs costs few writes, and no answer waits for the next question.
"""

import json
import os
from collections.abc import Iterator

from bench.scripts import TOKEN, deltas_asked

CHUNK_BYTES = 65536
BUFFER_BYTES = 8192


def answer(line: bytes) -> Iterator[dict[str, object]]:
    """The messages one run is answered with."""
    order = json.loads(line)
    for _ in range(deltas_asked(order["text"])):
        yield {"run": order["run"], "delta": TOKEN}
    yield {"run": order["run"], "end": True}


def main() -> None:
    """Answer until standard input ends."""
    rest = b""
    with open(1, "wb", buffering=BUFFER_BYTES) as out:
        while chunk := os.read(0, CHUNK_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                out.writelines(json.dumps(message).encode() + b"\n" for message in answer(line))
            out.flush()


if __name__ == "__main__":
    main()
