"""Whose clock counts, and which day it is there; whatever zone the machine itself is in."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.rules.schedule.time_zones import day_of, day_start

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Oslo", date(2026, 3, 29), 23),
        ("Europe/Oslo", date(2026, 10, 25), 25),
        ("Africa/Cairo", date(2024, 4, 26), 23),  # clocks go from 00:00 to 01:00
        ("America/Havana", date(2023, 11, 5), 25),  # 00:00 to 01:00 comes twice
        ("Australia/Lord_Howe", date(2026, 4, 5), 24.5),
        ("America/St_Johns", date(2010, 11, 7), 25),  # clocks went back across midnight
        ("Pacific/Apia", date(2011, 12, 30), 0),  # a day that never was
        ("Asia/Kathmandu", date(2026, 1, 1), 24),
    ],
)
def test_days_on_which_clocks_change_have_the_hours_they_have(zone: str, day: date, hours: float) -> None:
    there = ZoneInfo(zone)
    assert (day_start(day + timedelta(days=1), there) - day_start(day, there)) / 3600 == hours


@pytest.mark.parametrize("zone", ["America/St_Johns", "America/Sao_Paulo", "Pacific/Apia", "Europe/Oslo", "UTC"])
@given(moment=st.integers(0, 4_000_000_000))
def test_every_moment_lies_in_the_day_it_belongs_to(zone: str, moment: int) -> None:
    there = ZoneInfo(zone)
    day = day_of(moment, there)
    assert day_start(day, there) <= moment < day_start(day + timedelta(days=1), there)


def test_an_hour_that_comes_twice_around_midnight_stays_with_the_day_that_has_begun() -> None:
    there = ZoneInfo("America/St_Johns")
    again = datetime(2010, 11, 6, 23, 30, fold=1, tzinfo=there).timestamp()
    assert day_of(again, there) == date(2010, 11, 7)


ABOUT_TIME = (
    "rules/test_time_zones.py",
    "rules/test_schedule.py",
    "rules/test_calendar.py",
    "http_api/test_history.py",
    "http_api/test_calendar.py",
    "http_api/test_automations.py",
    "http_api/test_validation_table.py",
    "host/test_platforms.py",
)
WHOLE = ("rules", "protocol", "contracts", "host", "http_api", "models", "tools", "knowledge", "keeping", "telemetry")
"""All that does not start hosts; what it leaves out reads clocks through what it runs."""
HERE = "UTC" if (time.timezone, time.daylight) == (0, 0) else ""
"""What the tests around this one prove already."""
ZONES = pytest.mark.parametrize("zone", [one for one in ("UTC", "Asia/Kathmandu", "America/St_Johns") if one != HERE])


def assert_true_elsewhere(zone: str, places: Sequence[str], *more: str, seconds: float) -> None:
    command = [sys.executable, "-m", "pytest", *(f"tests/{place}" for place in places), "-q", "-x", *more]
    environment = {**os.environ, "TZ": zone}
    ran = subprocess.run(
        [*command, "-k", "not zone_of_the_machine and not very_long"],  # what is long there is the same everywhere
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-3000:]


@pytest.mark.timeout(300)
def test_nothing_depends_on_the_zone_of_the_machine() -> None:
    """The tests about time, whole, on a machine that lives elsewhere: half an hour off, and with summer time. The long
    set has three zones."""
    assert_true_elsewhere("America/St_Johns", ABOUT_TIME, "-p", "no:xdist", seconds=280)


@ZONES
@pytest.mark.long
@pytest.mark.timeout(1800)
def test_nothing_at_all_depends_on_the_zone_of_the_machine(zone: str) -> None:
    """The whole suite of rules, stores, host and doors."""
    assert_true_elsewhere(zone, WHOLE, "-m", "not long", seconds=1700)
