"""What the figures say, from made-up measurements whose answers are known."""

import re

import pytest

from bench import growth
from bench.jobs import Outcome, Spread
from bench.report import Figure, Target, figures_of, table_of
from bench.rounds import Memory, Sample
from bench.scripts import TOKEN
from bench.servers import ROOT, Usage


def sample(runs: int = 100, *, cpu: float = 1.0, turns: list[float] | None = None) -> Sample:
    spread = Spread(1.0, 2.0)
    outcome = Outcome(
        runs=runs,
        deltas=runs * 200,
        seconds=1.0,
        errors=0,
        problems=[],
        first_event=spread,
        first_text=spread,
        whole_run=spread,
        turns_ms=turns or [],
    )
    return Sample(outcome, cpu)


def measured(**rounds: list[dict[str, Sample]]) -> dict[str, Figure]:
    named = {name.replace("_at_", "@"): seen for name, seen in rounds.items()}
    return {figure.name: figure for figure in figures_of(named, {})}


def test_a_ratio_is_taken_within_a_round_and_the_middle_one_is_shown() -> None:
    rounds = [
        {"floor": sample(1000), "ag-ui": sample(500)},
        {"ag-ui": sample(60), "floor": sample(100)},  # a noisy moment that hit both
        {"floor": sample(1000), "ag-ui": sample(700)},
    ]
    figure = measured(short_at_16=rounds)["short runs @16"]
    assert (figure.floor, figure.host, figure.ratio, figure.verdict) == (1000, 500, 0.6, "met")


@pytest.mark.parametrize(("host", "verdict"), [(400, "met"), (399, "MISSED")])
def test_a_target_is_met_at_its_very_number_and_missed_below(host: int, verdict: str) -> None:
    figures = measured(short_at_64=[{"floor": sample(1000), "ag-ui": sample(host)}])
    assert figures["short runs @64"].verdict == verdict


def test_what_has_to_stay_small_is_missed_above_its_number() -> None:
    assert Target(at_most=2.0).met_by(2.0)
    assert not Target(at_most=2.0).met_by(2.01)


def test_growth_compares_turns_451_to_500_of_one_thread_with_turns_2_to_51_of_another() -> None:
    times, turns = [], {True: 0, False: 0}
    for run in range(growth.RUNS):
        old = growth.is_old(run)
        turns[old] += 1
        times.append(3.0 if old and turns[old] > 450 else 2.0 if not old and turns[old] > 1 else 99.0)
    assert turns == {True: 500, False: 51}
    figure = measured(growth=[{"ag-ui": sample(turns=times)}])["growth over 500 turns"]
    assert (figure.host, figure.verdict) == (1.5, "MISSED")


def test_a_thread_that_did_not_get_to_its_end_gives_no_growth() -> None:
    assert "growth over 500 turns" not in measured(growth=[{"ag-ui": sample(turns=[1.0] * 80)}])


def test_the_floor_alone_is_reported_without_verdicts() -> None:
    figures = measured(short_at_16=[{"floor": sample(1000)}])
    assert figures["short runs @16"].verdict == "not measured"
    assert not any("POST + GET" in name for name in figures)


def test_the_bare_floor_is_shown_beside_the_floor_and_judges_nothing() -> None:
    rounds = [{"floor": sample(1000), "bare": sample(2000), "ag-ui": sample(500)}]
    figures = measured(short_at_16=rounds)
    assert (figures["short runs @16"].ratio, figures["short runs @16"].verdict) == (0.5, "met")
    bare = figures["short runs @16, the floor past Starlette"]
    assert (bare.floor, bare.ratio, bare.verdict) == (2000, 0.25, "")


def test_memory_is_judged_by_the_whole_tree() -> None:
    memory = Memory(
        idle=Usage(0, 80_000_000, 121_000_000),
        half=Usage(0, 81_024_000, 122_000_000),
        full=Usage(0, 82_048_000, 123_000_000),
    )
    figures = {figure.name: figure for figure in figures_of({}, {"ag-ui": memory})}
    assert figures["RSS idle, with one runner"].verdict == "MISSED"
    assert figures["kept per thread, second 1,000"].host == 1.0
    assert figures["kept per thread, all 2,000"].host == 1.0


def test_the_table_is_as_wide_in_every_line() -> None:
    figures = measured(short_at_16=[{"floor": sample(1000), "ag-ui": sample(500), "pair": sample(300)}])
    lines = table_of(list(figures.values())).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert len(lines) == 2 + len(figures)


def test_the_runner_says_the_token_the_client_waits_for() -> None:
    source = (ROOT / "bench" / "runner" / "runner.py").read_text()
    assert re.findall(r'^TOKEN = "(.*)"$', source, re.MULTILINE) == [TOKEN]
