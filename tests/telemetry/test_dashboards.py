"""The dashboard and the alerts ask for numbers that a host really tells."""

import json
import re
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from grants import a_grant
from paddock.telemetry.metrics import Metrics, Now

DEPLOY = Path(__file__).parents[2] / "deploy"
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "paddock.json").read_text())
RULES: list[dict[str, Any]] = yaml.safe_load((DEPLOY / "prometheus" / "paddock.rules.yaml").read_text())["groups"][0][
    "rules"
]
ASKED = {
    **{panel["title"]: [target["expr"] for target in panel["targets"]] for panel in DASHBOARD["panels"]},
    **{rule["alert"]: [rule["expr"]] for rule in RULES},
}
FUNCTIONS = {"sum", "rate", "min", "max", "count", "increase", "by", "and", "on", "topk", "histogram_quantile"}


def told() -> dict[str, set[str]]:
    """Every number of a host that has worked a little, with its labels."""
    metrics = Metrics("1")
    now = Now(
        runs=lambda _: 1,
        sessions=lambda: 1,
        runners=lambda: {"ready": 1},
        store_healthy=lambda: True,
        capacity=lambda: 1,
        waiting=lambda _: 1,
        turned_away=lambda: 1,
        hosts=lambda: 1,
        bus_healthy=lambda: True,
        came=lambda: {"bus": 1},
        stalls=lambda: 1,
        worst_stall=lambda: 1.0,
    )
    metrics.run_started(a_grant(run_id="r"), 1.0)
    metrics.run_ended("r", "failed", 2.0)
    metrics.host_call("r", "tools.call", "", "allowed", 1.0, 2.0)
    found: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^(\w+)(?:{(.*)})? ", metrics.page(now=now).decode(), re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r"(\w+)=", labels))
    return found


@pytest.mark.parametrize("title", ASKED)
def test_every_question_is_about_numbers_and_labels_there_are(title: str) -> None:
    numbers = told()
    for expr in ASKED[title]:
        plain = re.sub(r'"[^"]*"', '""', expr)
        names = set(re.findall(r"paddock_\w+", plain))
        assert names
        assert names <= set(numbers)
        labels = set(re.findall(r"(\w+)!?=", plain)) | set(re.findall(r"by \(([^)]*)\)", plain)[:1])
        known = {"job", "instance", *(label for name in names for label in numbers[name])}
        assert {label.strip() for listed in labels for label in listed.split(",")} <= known
        assert set(re.findall(r"(\w+)\s*\(", plain)) <= FUNCTIONS


@pytest.mark.parametrize("title", ASKED)
def test_every_question_is_one_that_prometheus_understands(title: str) -> None:
    for expr in ASKED[title]:
        promql_parser.parse(expr)  # raises ValueError with the place


def test_every_number_has_its_place_in_the_dashboard_and_in_the_guide() -> None:
    guide = (DEPLOY.parent / "docs" / "guides" / "operating.md").read_text()
    shown = " ".join(expr for panel in DASHBOARD["panels"] for expr in (t["expr"] for t in panel["targets"]))
    families = {re.sub(r"_(bucket|count|sum|created)$", "", name) for name in told()}
    for family in families - {name for name in families if name.endswith("_created")}:
        assert family in shown, family
        assert family in guide, family


def test_panels_have_names_of_their_own_and_do_not_overlap() -> None:
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    taken = set[tuple[int, int]]()
    for place in (panel["gridPos"] for panel in DASHBOARD["panels"]):
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not taken & cells
        taken |= cells
        assert place["x"] + place["w"] <= 24


def test_alerts_say_what_to_do() -> None:
    assert all({"summary", "do"} <= set(rule["annotations"]) and rule["for"] for rule in RULES)


def test_a_host_that_has_no_neighbours_is_not_said_to_miss_its_bus() -> None:
    [away] = [rule for rule in RULES if rule["alert"] == "PaddockBusIsAway"]
    assert "max by (instance) (paddock_hosts) > 1" in away["expr"]
