"""Real harnesses at isolation L1: a user of their own, their own directories, and still the host's tools."""

import shutil
import subprocess
import uuid
from pathlib import Path

import httpx
import pytest
import yaml

from harness.clis import NATIVE, REAL, WORK
from harness.stages import Stage, results
from model_server import Says, model_server
from needs import not_run
from paddock.runners.processes.isolation import active_level
from walk.hosts import PADDOCK, HostProcess, text_of

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("real-harnesses"), pytest.mark.timeout(900)]


class WithKey(HostProcess):
    """A host that somebody has made a key for, and whoever talks to it has it."""

    key = ""

    def make_key(self) -> None:
        command = [PADDOCK, "keys", "create", "--user", "ann", "--data", self.data]
        self.key = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0]

    def client(self, **more: object) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=40, headers={"Authorization": f"Bearer {self.key}"})


@pytest.mark.parametrize("name", ["claude-code", "codex"])
def test_it_works_as_a_user_of_its_own_with_the_hosts_tools_and_sees_no_other_conversation(name: str) -> None:
    if active_level().level != "L1":
        not_run(f"{name} at isolation L1 ({active_level().why})")
    real, place = REAL[name], WORK / uuid.uuid4().hex
    real.path()
    home = place / "data" / "homes" / "paddock" / name
    home.mkdir(parents=True)
    program = Path(shutil.copy(next(NATIVE.glob(real.native)), home))
    with model_server() as model:
        agent = real.agent(model.url, on_permission="allow", command=str(program))
        agents = {"agents": {"free": {**agent, "isolation": "L1", "tools": ["calculate"]}}}
        host = WithKey(place / "data", agents=yaml.safe_dump(agents))
        host.make_key()
        try:
            stage = Stage(real, host.start(), model, str(uuid.uuid4()))
            calls = (real.host_tool("calculate", {"expression": "2 + 3"}), real.shell(f"id -u; ls {place.parents[1]}"))
            events = stage.said("look around", *(Says("", calls=(call,)) for call in calls), Says("Seen."))
            assert text_of(events) == "Seen."
            assert "5" in results(events)[0]
            assert results(events)[1].split()[:1] != ["0"], "not the host's user"
            assert "package.json" not in results(events)[1], "nothing of the host's files"

            look = real.shell(f"ls {home}/conversations | wc -l; grep -rl 'look [a]round' {home}/conversations; true")
            again = stage.said("and now?", Says("", calls=(look,)), Says("Still here."))
            assert text_of(again) == "Still here."
            assert "look around" in stage.asked(), "the session went on"
            assert str(home) in results(again)[0], "what it kept of it lies there"
            other = stage.said("what is there?", Says("", calls=(look,)), Says("Nothing."), thread=str(uuid.uuid4()))
            assert text_of(other) == "Nothing."
            assert results(other)[0].split() == ["1"], "nothing of another conversation"
        finally:
            host.stop()
            shutil.rmtree(place, ignore_errors=True)
