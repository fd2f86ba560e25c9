"""What a host answers was written by somebody: on a terminal it is words and nothing else."""

import json
import os
from pathlib import Path

import warm
from paddock.cli.output import harmless
from walk.hosts import HostProcess

STEERS = "\x1b]0;taken over\x07\x1b[2J\x9b31m\u202e\u2066\r\b\x7f"


def test_no_name_that_somebody_gave_steers_the_terminal_of_whoever_lists_it(tmp_path: Path) -> None:
    host = HostProcess(tmp_path / "data").start()
    with host.client() as client:
        base = {"kbId": "notes", "name": f"notes{STEERS}", "description": STEERS}
        assert client.post("/api/v1/knowledge", json=base).is_success
        agent = {"runner": "plugin:paddock/echo/default", "label": f"helper{STEERS}", "description": STEERS}
        assert client.put("/api/v1/agents/helper", json=agent).is_success
        job = {"name": f"job{STEERS}", "prompt": STEERS, "cron": "0 9 * * 1-5", "enabled": False}
        made = client.post("/api/v1/automations", json=job).json()
        document = {"name": f"page{STEERS}.txt", "text": f"word {STEERS}"}
        client.post("/api/v1/knowledge/notes/documents", json=document)
    asked = [
        ["knowledge", "list"],
        ["knowledge", "search", "notes", "word"],
        ["agents", "list"],
        ["automations", "list"],
        ["automations", "run", f"no{STEERS}"],
        ["keys", "list"],
        ["approvals", "list"],
        ["deliveries", "list"],
    ]
    for words in asked:
        said = warm.run([*words, "--data", host.data], env=os.environ)
        text = said.stdout + said.stderr
        assert harmless(text) == text, words
    for_programs = warm.run(["automations", "list", "--json", "--data", host.data], env=os.environ).stdout
    assert json.loads(for_programs)[0]["name"] == made["name"] == f"job{STEERS}"
    host.stop()


MANIFEST = """
[plugin]
author = "test"
name = "loud"
command = ["python", "runner.py"]
"""
RUNNER = """
import json, sys

STEERS = {steers!r}
ONE = {{"id": "plugin:test/loud/default", "name": "default"}}
ONE |= {{"label": {{}}, "capabilities": {{}}, "permissions": {{}}, "context": {{}}}}


def say(**frame):
    print(json.dumps({{"jsonrpc": "2.0", **frame}}), flush=True)


for line in sys.stdin:
    asked = json.loads(line)
    run = asked["params"].get("context", {{}}).get("run_id")
    answers = {{"initialize": {{"protocol_version": "1"}}, "run_agent": {{"run_id": run}}}}
    answers["list_agent_runners"] = {{"runners": [ONE]}}
    say(id=asked["id"], result=answers.get(asked["method"], {{}}))
    if run:
        say(method="run_result", params={{"run_id": run, "type": "x" + STEERS, "data": {{}}}})
        say(method="x" + STEERS)
        failed = {{"code": "c" + STEERS, "message": "m" + STEERS}}
        say(method="run_result", params={{"run_id": run, "type": "run.failed", "data": failed}})
"""


def test_no_runner_steers_the_terminal_of_whoever_talks_to_it_or_of_whoever_reads_the_log(tmp_path: Path) -> None:
    plugin = tmp_path / "plugins" / "loud"
    plugin.mkdir(parents=True)
    (plugin / "paddock-plugin.toml").write_text(MANIFEST)
    (plugin / "runner.py").write_text(RUNNER.format(steers=STEERS))
    host = HostProcess(tmp_path / "data", plugins=(plugin.parent,)).start()
    said = warm.run(["chat", "hello", "--agent", "loud", "--data", host.data], env=os.environ)
    assert said.returncode == 1
    assert harmless(said.stdout + said.stderr) == said.stdout + said.stderr
    assert host.says("runner.unknown_result", "taken over")
    assert host.says("runner.unknown_notification", "taken over")
    log = "".join(host.output)
    assert harmless(log) == log
    host.stop()
