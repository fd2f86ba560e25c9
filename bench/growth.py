"""Does a turn get slower as its thread gets longer? Which turns are taken, in which order, and how they compare. Pure.

Growth = median of turns 451-500 over median of turns 2-51. Two threads take turns: while the old one is at 451-500, the
young one is at 2-51, so that a noisy neighbour slows both and cancels out.
"""

from collections.abc import Sequence
from statistics import median

HEAD_START = 450
PAIRS = 50
RUNS = HEAD_START + 1 + 2 * PAIRS
"""Turns 1-450 of the old thread, turn 1 of the young one, then fifty of each by turns."""


def is_old(run: int) -> bool:
    """Whether the run with that number, from 0, belongs to the old thread."""
    return run < HEAD_START or (run - HEAD_START) % 2 == 1


def young_turns(times: Sequence[float]) -> float:
    """Median of the young thread's turns 2-51."""
    return median(times[HEAD_START + 2 :: 2])


def old_turns(times: Sequence[float]) -> float:
    """Median of the old thread's turns 451-500."""
    return median(times[HEAD_START + 1 :: 2])
