"""How much longer than promised a test lets something take: promises are made for a machine with nothing else to do."""

import os

SLOWNESS = float(os.environ.get("PADDOCK_TEST_SLOWNESS", "4"))


def at_most(seconds: float) -> float:
    """What a promise of so many seconds may take on a busy machine; what it must not take is a wait of another kind."""
    return seconds * SLOWNESS * _crowd()


def _crowd() -> float:
    """How many programs want each core: on a machine that has more to do, everything takes so much longer."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
