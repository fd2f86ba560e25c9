"""What a client was told, written down by the client itself, and whether the cluster kept its word. Knows no host."""

from collections.abc import Mapping
from dataclasses import dataclass, field

TERMINAL = {"RUN_FINISHED", "RUN_ERROR"}
ENDED = {"completed", "failed", "cancelled"}


@dataclass
class Told:
    """One run as its client saw it."""

    label: str
    thread: str
    text: str
    tasks: set[str] = field(default_factory=set)
    """Every taskId that was acknowledged for it: there must be one."""
    heard: list[tuple[str, str, str]] = field(default_factory=list)
    """(cursor, type, words) of every event, in the order they came, over all reconnections."""

    @property
    def task(self) -> str:
        return next(iter(self.tasks))

    @property
    def words(self) -> str:
        return "".join(words for _, _, words in self.heard)

    @property
    def ends(self) -> int:
        return sum(kind in TERMINAL for _, kind, _ in self.heard)


@dataclass
class Truth:
    """The same run as it is on record when everything is quiet again."""

    status: str
    words: str
    ends: int
    code: str = ""
    """Why it failed, if it did."""


def broken_promises(told: Mapping[str, Told], truth: Mapping[str, Truth | None]) -> list[str]:
    """Every way in which the cluster did not keep its word, in one sentence each."""
    found: list[str] = []
    for run in told.values():
        if not run.tasks:
            continue  # never acknowledged: nothing was promised
        if len(run.tasks) > 1:
            found.append(f"{run.label} was acknowledged as {len(run.tasks)} runs")
        record = truth.get(run.task)
        if record is None:
            found.append(f"{run.label} was acknowledged and is lost")
            continue
        found += _differences(run, record)
    return found


def _differences(run: Told, record: Truth) -> list[str]:
    found: list[str] = []
    if record.status not in ENDED:
        found.append(f"{run.label} is stuck: {record.status}")
    if record.ends != 1:
        found.append(f"{run.label} has {record.ends} ends on record")
    if run.ends > 1:
        found.append(f"{run.label} was told its end {run.ends} times")
    cursors = [cursor for cursor, _, _ in run.heard]
    if len(set(cursors)) != len(cursors):
        found.append(f"{run.label} was told the same event twice")
    if run.ends and run.words != record.words:
        found.append(f"{run.label} has a gap: {len(run.words)} of {len(record.words)} characters were told")
    if not run.ends and record.status in ENDED:
        found.append(f"{run.label} was never told its end")
    if not run.ends and not record.words.startswith(run.words):
        found.append(f"{run.label} was told words that are not on record")
    return found
