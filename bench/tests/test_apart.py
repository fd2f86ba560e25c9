"""What is measured apart is told with the same targets as everything else."""

from pathlib import Path

import pytest

from bench import apart, history, host_calls
from bench.report import Figure
from paddock.settings import EMBEDDED

TRIP = {"echo": [0.0001, 0.0002], "state.get": [0.0002, 0.0004]}


def test_writes_are_judged_by_their_rate_and_by_their_share_of_the_bare_writer() -> None:
    rounds = [{"gate": (4_999.0, 80.0), "bare": (9_998.0, 40.0)}]
    found = {"trips": [TRIP], "rounds": rounds, "wire": 1000.0, "target": 5_000.0}
    figures = {figure.name: figure for figure in host_calls.figures_of(found, "SQLite")}
    assert figures["state.set, 32 producers, durable, SQLite"].verdict == "MISSED"
    assert figures["state.set over the same rows without the gate, SQLite"].verdict == "met"
    assert figures["state.get over an echo, p50, SQLite"].ratio == pytest.approx(2.0)


def test_a_turn_is_compared_with_a_short_run_when_both_were_measured() -> None:
    step = Figure("step, messages on one core", "/s", host=50_000.0)
    short = Figure("CPU per short run @16", "ms", host=1.0)
    [share] = apart.machine_in_a_short_run([step, short])
    assert (share.ratio, share.verdict) == (pytest.approx(0.1), "met")
    assert apart.machine_in_a_short_run([step]) == apart.machine_in_a_short_run([short]) == []


def test_history_is_measured_through_a_real_store(tmp_path: Path) -> None:
    told = history.found(1, 2, EMBEDDED, tmp_path, length=400)
    figures = history.figures_of(told, 400, "SQLite")
    assert len(figures) == len(told) == 8
    assert {str(figure.target) for figure in figures} == {"<= 3", "<= 5"}
    assert told[history.PAGE][3] == 200


def test_every_part_can_be_asked_for() -> None:
    assert set(apart.PARTS) == {"machine", "host-calls", "history"}
