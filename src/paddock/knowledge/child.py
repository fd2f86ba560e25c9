"""The child half of reading: one file on standard input, its sections on standard output, then gone.

It limits itself before it looks at a single byte.
"""

import sys

import msgspec

from paddock.confinement.limits import hold_still
from paddock.knowledge.formats import media_type_of, sections_of
from paddock.knowledge.reading import Extracted, UnreadableError

CPU_SECONDS = 60
MEMORY_BYTES = 1024 * 1024 * 1024


def main(name: str) -> None:
    hold_still(memory_bytes=MEMORY_BYTES, cpu_seconds=CPU_SECONDS)
    content = sys.stdin.buffer.read()
    try:
        media_type = media_type_of(name, content)
        found = Extracted(media_type, tuple(sections_of(media_type, content)))
    except UnreadableError as error:
        found = Extracted(problem=str(error))
    except (MemoryError, RecursionError):
        found = Extracted(problem="it is built in a way that no reader can follow")
    sys.stdout.buffer.write(msgspec.json.encode(found))


if __name__ == "__main__":
    main(sys.argv[1])
