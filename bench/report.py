"""What the measurements say: figures with ratios, targets met or missed, as a table and as JSON. Pure but for `print`.

A ratio is taken within a round, where both systems had the same neighbours, and the median over rounds is shown.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median

import msgspec

from bench import growth
from bench.growth import old_turns, young_turns
from bench.rounds import CONCURRENCIES, LOADED_AT, Memory, Round, Sample

FLOOR, BARE, HOST, PAIR = "floor", "bare", "ag-ui", "pair"
MB = 1_000_000
KIB = 1024
Reading = Callable[[Sample], float]
Measured = Mapping[str, Sequence[Round]]


class Target(msgspec.Struct, frozen=True):
    """What a figure must be: at least or at most some number."""

    at_least: float | None = None
    at_most: float | None = None
    of: str = "ratio"

    def met_by(self, value: float) -> bool:
        return value >= self.at_least if self.at_least is not None else value <= (self.at_most or 0.0)

    def __str__(self) -> str:
        return f">= {self.at_least:g}" if self.at_least is not None else f"<= {self.at_most:g}"


class Figure(msgspec.Struct, frozen=True):
    """One line of the report. `judged` is the number the target is about."""

    name: str
    unit: str
    floor: float | None = None
    host: float | None = None
    ratio: float | None = None
    target: Target | None = None

    @property
    def judged(self) -> float | None:
        return self.ratio if self.target is not None and self.target.of == "ratio" else self.host

    @property
    def verdict(self) -> str:
        if self.target is None:
            return ""
        if self.judged is None:
            return "not measured"
        return "met" if self.target.met_by(self.judged) else "MISSED"


SHORT_TARGET = Target(at_least=0.4)
DELTA_TARGET = Target(at_least=0.5)
FIRST_TARGET = Target(at_most=2.0)
GROWTH_TARGET = Target(at_most=1.1, of="host")
MEMORY_TARGET = Target(at_most=120.0, of="host")


def figures_of(measured: Measured, memory: Mapping[str, Memory]) -> list[Figure]:
    """Every figure the measured sections allow."""
    return [*_speed(measured), *_first(measured), *_growth(measured), *_memory(memory)]


def _speed(measured: Measured) -> Iterator[Figure]:
    for concurrency in CONCURRENCIES:
        rounds = measured.get(f"short@{concurrency}", [])
        target = SHORT_TARGET if concurrency > 1 else None
        yield from _compared(f"short runs @{concurrency}", "/s", rounds, _runs, target)
        yield from _compared(f"short runs @{concurrency}, POST + GET", "/s", rounds, _runs, door=PAIR)
        yield from _beside_bare(f"short runs @{concurrency}", "/s", rounds, _runs)
    rounds = measured.get(f"short@{LOADED_AT}", [])
    yield from _compared(f"CPU per short run @{LOADED_AT}", "ms", rounds, _cpu)
    yield from _compared(f"CPU per short run @{LOADED_AT}, POST + GET", "ms", rounds, _cpu, door=PAIR)
    yield from _beside_bare(f"CPU per short run @{LOADED_AT}", "ms", rounds, _cpu)
    for concurrency in CONCURRENCIES:
        rounds = measured.get(f"deltas@{concurrency}", [])
        target = DELTA_TARGET if concurrency > 1 else None
        yield from _compared(f"deltas @{concurrency}", "/s", rounds, _deltas, target)
    yield from _compared(f"CPU per 200 deltas @{LOADED_AT}", "ms", measured.get(f"deltas@{LOADED_AT}", []), _cpu)


def _first(measured: Measured) -> Iterator[Figure]:
    for name, place, target in (("first@1", "@1", FIRST_TARGET), ("first@half", "at half load", None)):
        rounds = measured.get(name, [])
        yield from _compared(f"first event {place}, p50", "ms", rounds, lambda s: s.outcome.first_event.p50, target)
        yield from _beside_bare(f"first event {place}, p50", "ms", rounds, lambda s: s.outcome.first_event.p50)
        yield from _compared(f"first event {place}, p99", "ms", rounds, lambda s: s.outcome.first_event.p99)
        yield from _compared(f"first text {place}, p50", "ms", rounds, lambda s: s.outcome.first_text.p50)
    yield from _compared("offered at half load", "runs/s", measured.get("first@half", []), _runs)


def _growth(measured: Measured) -> Iterator[Figure]:
    rounds = [seen for seen in measured.get("growth", []) if all(map(_is_whole, seen.values()))]
    yield from _compared("turns 2-51 of a thread", "ms", rounds, lambda s: young_turns(s.outcome.turns_ms))
    yield from _compared("turns 451-500 of a thread", "ms", rounds, lambda s: old_turns(s.outcome.turns_ms))
    for figure in _compared("growth over 500 turns", "x", rounds, _growth_in, GROWTH_TARGET):
        yield msgspec.structs.replace(figure, ratio=None)


def _is_whole(sample: Sample) -> bool:
    return len(sample.outcome.turns_ms) == growth.RUNS


def _growth_in(sample: Sample) -> float:
    return old_turns(sample.outcome.turns_ms) / young_turns(sample.outcome.turns_ms)


def _memory(memory: Mapping[str, Memory]) -> Iterator[Figure]:
    floor, host = memory.get(FLOOR), memory.get(HOST)
    if not floor and not host:
        return

    def row(name: str, unit: str, read: Callable[[Memory], float], target: Target | None = None) -> Figure:
        return Figure(name, unit, read(floor) if floor else None, read(host) if host else None, None, target)

    yield row("RSS idle, server alone", "MB", lambda m: m.idle.root_bytes / MB)
    yield row("RSS idle, with one runner", "MB", lambda m: m.idle.tree_bytes / MB, MEMORY_TARGET)
    yield row("RSS after 2,000 threads, server alone", "MB", lambda m: m.full.root_bytes / MB)
    yield row("RSS after 2,000 threads, with runner", "MB", lambda m: m.full.tree_bytes / MB)
    yield row("kept per thread, all 2,000", "KiB", lambda m: (m.full.root_bytes - m.idle.root_bytes) / KIB / 2000)
    yield row("kept per thread, second 1,000", "KiB", lambda m: (m.full.root_bytes - m.half.root_bytes) / KIB / 1000)


def _compared(
    name: str, unit: str, rounds: Sequence[Round], read: Reading, target: Target | None = None, door: str = HOST
) -> Iterator[Figure]:
    """A figure of the floor and of one of the host's doors, if that door was measured (the floor alone otherwise)."""
    floor = [read(seen[FLOOR]) for seen in rounds if FLOOR in seen]
    host = [read(seen[door]) for seen in rounds if door in seen]
    if not host and (door == PAIR or not floor):
        return
    both = [(read(seen[door]), read(seen[FLOOR])) for seen in rounds if door in seen and FLOOR in seen]
    ratios = [of_host / of_floor for of_host, of_floor in both if of_floor]
    yield Figure(name, unit, _middle(floor), _middle(host), _middle(ratios), target)


def _beside_bare(name: str, unit: str, rounds: Sequence[Round], read: Reading) -> Iterator[Figure]:
    """The same beside the floor that answers past Starlette, where that was measured too: shown, without a target."""
    seen = [{FLOOR: every[BARE], HOST: every[HOST]} for every in rounds if BARE in every and HOST in every]
    if seen:
        yield from _compared(f"{name}, the floor past Starlette", unit, seen, read)


def _middle(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def _runs(sample: Sample) -> float:
    return sample.outcome.runs_per_second


def _deltas(sample: Sample) -> float:
    return sample.outcome.deltas_per_second


def _cpu(sample: Sample) -> float:
    return sample.cpu_ms_per_run


def table_of(figures: Sequence[Figure]) -> str:
    """The figures as a Markdown table."""
    rows = [("measure", "floor", "paddock", "ratio", "target", "")]
    rows += [_row(figure) for figure in figures]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def _row(figure: Figure) -> tuple[str, ...]:
    target = (
        "" if figure.target is None else f"{figure.target}{' ' + figure.unit if figure.target.of == 'host' else ''}"
    )
    return (
        f"{figure.name} [{figure.unit}]",
        _shown(figure.floor),
        _shown(figure.host),
        _shown(figure.ratio),
        target,
        figure.verdict,
    )


def _shown(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value < 1 else f"{value:.2f}"
