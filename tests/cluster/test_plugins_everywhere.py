"""A plugin installed with the data directory of one host answers at another, is replaced there, and goes there."""

from pathlib import Path

import pytest

from cluster.conftest import Hosts
from walk.hosts import HostProcess, start_together, text_of, wait_until
from walk.test_plugins_come_and_go import PATIENT, a_plugin, paddock

pytestmark = pytest.mark.long

AGENTS = 'agents:\n  versioned: {runner: "plugin:me/versioned/default"}\n'


def said(host: HostProcess) -> str:
    return text_of(host.events(host.post("hi", agent="versioned").json()["taskId"]))


def test_a_plugin_installed_at_one_host_is_at_all(new_host: Hosts, tmp_path: Path) -> None:
    here, there = hosts = new_host("here"), new_host("there")
    for host in hosts:
        host.agents = AGENTS
    start_together(hosts)

    installed = paddock(here, "runner", "install", a_plugin(tmp_path / "one", "1.0"), "--yes", env=here.env)
    assert "All hosts on the same store" in installed.stdout, installed.stderr
    for host in (there, here):
        wait_until(lambda host=host: said(host) == "1.0 begins, 1.0 ends", PATIENT, "the plugin answering")
    assert "me/versioned  1.0  ok" in paddock(there, "runner", "list").stdout

    other = a_plugin(tmp_path / "two", "2.0")
    refused = paddock(here, "runner", "install", other, "--yes", env=here.env)
    assert "--replace" in refused.stderr
    assert paddock(here, "runner", "install", other, "--yes", "--replace", env=here.env).returncode == 0
    wait_until(lambda: said(there) == "2.0 begins, 2.0 ends", PATIENT, "the new version answering")

    removed = paddock(there, "runner", "remove", "me/versioned", env=there.env)
    again = paddock(here, "runner", "remove", "me/nobody", env=here.env)
    assert (again.returncode, "No plugin me/nobody" in again.stderr) == (1, True)
    assert "All hosts on the same store" in removed.stdout, removed.stderr
    wait_until(lambda: said(there) == "", PATIENT, "the plugin being gone")
    assert paddock(there, "runner", "list").stdout.startswith("No plugins are installed.")
