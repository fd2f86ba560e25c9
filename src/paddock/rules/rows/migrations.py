"""Decide which migrations a database still needs, or why it must be left alone. Pure; each store carries it out."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

_STAY = re.compile(r"-- Hosts that know step (\d+) may stay\.")


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered step of a schema. Once released, its text never changes."""

    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return sha256(self.sql.encode()).hexdigest()

    @property
    def goes_with(self) -> int:
        """A program that knows the schema up to this step may go on when this one is there; its first line says so."""
        found = _STAY.match(self.sql)
        return int(found[1]) if found else self.number


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason this program must not touch the database, in one sentence for the operator."""

    sentence: str


def pending(
    available: Sequence[Migration], applied: Mapping[int, str], goes_with: Mapping[int, int] | None = None
) -> Sequence[Migration] | Refusal:
    """The steps to apply, in order. `applied` maps the numbers in the database to the checksums recorded then,
    `goes_with` to what those of a newer program said of older ones."""
    known = {migration.number: migration for migration in available}
    newest, reached = max(known, default=0), max(applied, default=0)
    if any((goes_with or {}).get(number, number) > newest for number in applied if number > newest):
        return Refusal(f"the database is at schema {reached}, this Paddock knows up to {newest}: start a newer Paddock")
    for number, checksum in sorted(applied.items()):
        if number > newest:
            continue
        if number not in known or known[number].checksum != checksum:
            return Refusal(f"schema step {number} in the database is not the one this Paddock knows: restore a backup")
    return [known[number] for number in sorted(known) if number not in applied]
