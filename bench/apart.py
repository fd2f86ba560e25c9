"""What is measured apart, without servers and the floor: the stores, the gate and the session machine.

In these figures the column of the floor holds what a figure is compared with, where there is such a thing: an echo
through the same connection, the same rows by the same writer without the gate, the CPU of a short run.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from bench import history, host_calls, sessions, step
from bench.report import Figure, Target
from bench.rounds import LOADED_AT, say
from paddock.settings import EMBEDDED

STORES = {"SQLite": EMBEDDED, "PostgreSQL": "new"}
MACHINE_TARGET = Target(at_most=0.1)

Part = Callable[[bool, Path | None], list[Figure]]


def measure_host_calls(quick: bool, directory: Path | None) -> list[Figure]:
    """What the gate costs, on both stores."""
    figures: list[Figure] = []
    for name, at in STORES.items():
        say(f"host calls on {name}")
        figures += host_calls.figures_of(host_calls.found(quick=quick, directory=directory, store=at), name)
    return figures


def measure_history(quick: bool, directory: Path | None) -> list[Figure]:
    """Pages and searches in long conversations, on both stores. Quick has one of them, else there are ten."""
    conversations = 1 if quick else history.CONVERSATIONS
    figures: list[Figure] = []
    for name, at in STORES.items():
        say(f"history on {name}")
        told = history.found(conversations, 100, at, directory)
        figures += history.figures_of(told, conversations * history.LENGTH, name)
    return figures


def measure_machine(quick: bool, directory: Path | None) -> list[Figure]:
    """The session machine by itself, and conversations that are open and idle."""
    del quick, directory
    say("the session machine")
    rate = max(step.messages_per_second() for _ in range(3))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:  # memory freed before would hide growth
        kilobytes = fresh.submit(_idle_sessions).result()
    return [
        Figure("step, messages on one core", "/s", host=rate, target=Target(at_least=step.TARGET, of="host")),
        Figure(
            f"an open idle session, of {sessions.COUNT:,}",
            "KB",
            host=kilobytes,
            target=Target(at_most=sessions.TARGET_KB, of="host"),
        ),
    ]


def _idle_sessions() -> float:
    return asyncio.run(sessions.kilobytes_per_session())


PARTS: Mapping[str, Part] = {
    "machine": measure_machine,
    "host-calls": measure_host_calls,
    "history": measure_history,
}


def machine_in_a_short_run(figures: Sequence[Figure]) -> list[Figure]:
    """The share of the session machine in the CPU of a short run, when both were measured in this run."""
    rates = [figure.host for figure in figures if figure.name.startswith("step, ") and figure.host]
    runs = [figure.host for figure in figures if figure.name == f"CPU per short run @{LOADED_AT}" and figure.host]
    if not rates or not runs:
        return []
    turn_ms, run_ms = len(step.turn(0)) / median(rates) * 1000, median(runs)
    return [
        Figure("a turn through the machine, in a short run", "ms", run_ms, turn_ms, turn_ms / run_ms, MACHINE_TARGET)
    ]
