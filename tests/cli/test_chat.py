"""`paddock chat`: one message, a conversation, and what happens when something is in the way."""

import json
import os
import signal
import stat
import subprocess
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

import loopback
from cli.conftest import AGENTS
from cli.cutting_proxy import cutting_proxy
from cli.package_makers import a_directory
from cli.terminals import CALLED, CTRL_C, CTRL_D, PADDOCK, UP, Person
from paddock.cli.chatting import chat
from paddock.rules.run import input as run_input
from paddock.runners.packages import InstalledPlugins, read_package
from patience import at_most
from walk.hosts import NASTY, HostProcess, wait_until
from warm import Command

People = Callable[..., Person]


def test_a_message_gets_its_answer(served: HostProcess, paddock: Command) -> None:
    said = paddock("chat", "--data", served.data, "hello, is anybody there?  北京")
    assert (said.returncode, said.stdout, said.stderr) == (0, "hello, is anybody there?  北京\n", "")


def test_the_host_is_found_by_its_address_too(served: HostProcess, paddock: Command) -> None:
    assert paddock("chat", "--url", served.url, "one").stdout == "one\n"
    assert paddock("chat", "two", env={"PADDOCK_URL": served.url + "/"}).stdout == "two\n"
    assert paddock("chat", "three", env={"PADDOCK_DATA": str(served.data)}).stdout == "three\n"


def test_json_prints_the_events_and_nothing_else(served: HostProcess, paddock: Command) -> None:
    said = paddock("chat", "--data", served.data, "--json", "hi there")
    events = [json.loads(line) for line in said.stdout.splitlines()]
    types = [event["type"] for event in events]
    assert types[0] == "RUN_STARTED"
    assert types[-1] == "RUN_FINISHED"
    assert "".join(event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT") == "hi there"
    assert said.stderr == ""


def test_a_message_can_come_through_a_pipe(served: HostProcess, paddock: Command) -> None:
    assert paddock("chat", "--data", served.data, input="from a pipe\n").stdout == "from a pipe\n"
    empty = paddock("chat", "--data", served.data, input="\n")
    assert (empty.returncode, empty.stdout) == (1, "")
    assert "nothing to say" in empty.stderr


def test_a_conversation_goes_on_under_its_id(served: HostProcess, paddock: Command) -> None:
    thread = str(uuid.uuid4())
    for expected in ("1 0\n", "2 2\n"):
        said = paddock("chat", "--data", served.data, "--agent", "slow", "--thread", thread, "remember")
        assert said.stdout == expected


def test_a_run_that_fails_is_said_on_the_side_with_exit_code_1(served: HostProcess, paddock: Command) -> None:
    said = paddock("chat", "--data", served.data, "--agent", "slow", "crash")
    assert (said.returncode, said.stdout) == (1, "half a \n")
    assert said.stderr.startswith("The run failed: ")
    assert "(runner.crashed)" in said.stderr


def test_what_the_host_refuses_is_its_own_sentence(served: HostProcess, paddock: Command) -> None:
    unknown = paddock("chat", "--data", served.data, "--agent", "nobody", "hi")
    assert unknown.returncode == 1
    assert "nobody" in unknown.stderr
    assert unknown.stderr.count("\n") == 1
    thread = paddock("chat", "--data", served.data, "--thread", "x", "hi")
    assert (thread.returncode, thread.stdout) == (1, "")
    assert thread.stderr == "paddock: There is no conversation 'x'. Without --thread a new one begins.\n"
    key = paddock("chat", "--url", served.url, "hi", env={"PADDOCK_API_KEY": "pdk_wrong"})
    assert key.returncode == 1
    assert "this key is not known here" in key.stderr


def test_without_a_host_it_says_how_to_start_one(paddock: Command, tmp_path: Path) -> None:
    said = paddock("chat", "--url", "http://127.0.0.1:9", "hi")
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr == f"paddock: No host answers at http://127.0.0.1:9. Start one with: {CALLED} serve\n"
    here = paddock("chat", "--data", tmp_path / "d", "--url", "http://127.0.0.1:9", "hi")
    assert f"{CALLED} serve --data {tmp_path / 'd'}" in here.stderr
    wrong = paddock("chat", "--url", "nonsense", "hi")
    assert wrong.returncode == 2
    assert "must look like http://127.0.0.1:8484" in wrong.stderr


@pytest.mark.parametrize("cut_after", [900, 2500])
def test_a_connection_that_breaks_again_and_again_loses_nothing(
    served: HostProcess, paddock: Command, cut_after: int
) -> None:
    with cutting_proxy(served.url, cut_after, most=4) as proxy:
        said = paddock("chat", "--url", proxy.address, "--agent", "slow", "count 3000 0")  # more than four times that
    assert proxy.cuts == 4
    assert said.returncode == 0
    assert said.stdout == "".join(f"{number} " for number in range(3000)) + "\n"


def test_a_host_that_comes_back_is_found_again(tmp_path: Path, person: People) -> None:
    first = HostProcess(tmp_path / "data", agents=AGENTS, plugins=(NASTY,)).start()
    talking = person("chat", "--data", first.data, "--agent", "slow", "count 100000 0.01")
    talking.sees("5 6 7 ")
    first.kill()
    second = HostProcess(tmp_path / "data", agents=AGENTS, plugins=(NASTY,)).start()
    try:
        talking.sees("connection lost, trying again")
        talking.sees("host_restarted")
        assert talking.leaves() == 1
    finally:
        second.stop()


def test_ctrl_c_cancels_the_turn_at_the_host(served: HostProcess, person: People) -> None:
    talking = person("chat", "--data", served.data, "--agent", "slow", "count 100000 0.01")
    talking.sees("5 6 7 ")
    talking.press(CTRL_C)
    talking.sees("[stopping; Ctrl-C again leaves]")
    talking.sees("[cancelled]")
    assert talking.leaves() == 130


def test_a_second_ctrl_c_leaves_at_once(tmp_path: Path, person: People) -> None:
    host = HostProcess(tmp_path / "data", agents=AGENTS, plugins=(NASTY,)).start()  # its runner will be stuck
    try:
        talking = person("chat", "--data", host.data, "--agent", "slow", "block 60")
        talking.sees("blocking")
        started = time.monotonic()
        talking.press(CTRL_C)
        talking.sees("[stopping; Ctrl-C again leaves]")
        host.send_signal(signal.SIGSTOP)  # no end of the turn can be heard any more
        talking.press(CTRL_C)
        assert talking.leaves() == 130
        assert time.monotonic() - started < at_most(2.4)
    finally:
        host.send_signal(signal.SIGCONT)
        host.stop()


def test_a_conversation_at_a_terminal(served: HostProcess, person: People, tmp_path: Path) -> None:
    talking = person("chat", "--data", served.data)
    talking.sees("> ")
    talking.press("good morning\n")
    talking.sees("good morning\r\n")  # the echo of the keys
    talking.sees("good morning\r\n")  # the answer
    talking.press(UP)
    talking.sees("good morning")
    talking.press("!\n")
    talking.sees("!\r\ngood morning!\r\n")
    talking.sees("> ")
    talking.press("/new\n")
    talking.sees("/new\r\n")
    talking.sees("> ")
    talking.press(CTRL_D)
    talking.sees(f"To go on later: {CALLED} chat --data {served.data} --thread ")
    assert talking.leaves() == 0
    kept = tmp_path / "state" / "paddock" / "chat_history"
    assert kept.read_text().splitlines()[-3:] == ["good morning", "good morning!", "/new"]
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_a_command_that_does_not_exist_is_not_said_to_the_agent(served: HostProcess, person: People) -> None:
    talking = person("chat", "--data", served.data)
    talking.sees("> ")
    talking.press("/invte echo\n")
    talking.sees("/invte is no command, so nothing was sent; /help says which there are.")
    talking.sees("> ")
    talking.press("/etc/hosts is a file\n")
    talking.sees("file\r\n/etc/hosts is a file\r\n")
    talking.press(CTRL_D)
    assert talking.leaves() == 0


def test_ctrl_c_twice_at_the_prompt_leaves(served: HostProcess, person: People) -> None:
    talking = person("chat", "--data", served.data)
    talking.sees("> ")
    talking.press(CTRL_C)
    talking.sees("(Ctrl-C again or Ctrl-D leaves)")
    talking.sees("> ")
    talking.press(CTRL_C)
    talking.sees(f"To go on later: {CALLED} chat --data {served.data} --thread ")
    assert talking.leaves() == 0


def test_ctrl_c_in_a_conversation_stops_the_answer_and_not_the_conversation(
    served: HostProcess, person: People
) -> None:
    talking = person("chat", "--data", served.data, "--agent", "slow")
    talking.sees("> ")
    talking.press("count 100000 0.01\n")
    talking.sees("3 4 5 ")
    talking.press(CTRL_C)
    talking.sees("[cancelled]")
    talking.sees("> ")
    talking.press("still here\n")
    talking.sees("still here\r\nstill here\r\n")
    talking.press("/quit\n")
    assert talking.leaves() == 0


def test_a_terminal_gets_colours_unless_it_asked_not_to(served: HostProcess, person: People) -> None:
    plain = person("chat", "--data", served.data, "--agent", "slow", "crash")
    plain.sees("The run failed")
    plain.leaves()
    assert "\x1b[" not in plain.screen
    coloured = person("chat", "--data", served.data, "--agent", "slow", "crash", NO_COLOR="")
    coloured.sees("\x1b[31mThe run failed")


def test_cancelling_reaches_the_record(served: HostProcess, person: People) -> None:
    thread = str(uuid.uuid4())
    talking = person("chat", "--data", served.data, "--agent", "slow", "--thread", thread, "--json", "hang")
    talking.sees("RUN_STARTED")
    label = json.loads(talking.screen.splitlines()[0])["runId"]
    talking.press(CTRL_C)
    talking.leaves()
    run = f"{served.url}/api/v1/agent/runs/{label}"
    wait_until(lambda: loopback.get(run).json()["status"] == "cancelled", 30, "the run being cancelled")


# --- which host, and who is asking ----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["flag", "environment"])
def test_whoever_names_a_data_directory_never_talks_to_another_host(
    served: HostProcess, paddock: Command, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "empty"
    (tmp_path / ".paddock").symlink_to(served.data)  # the host that would be found without being asked for another
    assert paddock("chat", "hi").stdout == "hi\n"
    flags = ("--data", empty) if way == "flag" else ()
    env = {"PADDOCK_DATA": str(empty)} if way == "environment" else {"PADDOCK_URL": served.url}
    said = paddock("chat", *flags, "hi", env=env)
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr == (
        f"paddock: No host serves the data directory {empty}. Start one with: {CALLED} serve --data {empty}\n"
    )


def test_a_host_that_took_the_address_of_a_killed_one_is_not_taken_for_it(
    served: HostProcess, paddock: Command, tmp_path: Path
) -> None:
    (tmp_path / "serve.json").write_text(json.dumps({"url": served.url, "pid": 1}))
    (tmp_path / "local-token").write_text("pdl_of_the_killed_one\n")
    said = paddock("chat", "--data", tmp_path, "hi")
    assert (said.returncode, said.stdout) == (1, "")
    assert f"It does not serve {tmp_path} (any more); start one with: {CALLED} serve --data {tmp_path}" in said.stderr


def test_from_another_directory_it_says_how_to_be_let_in(paddock: Command, tmp_path: Path) -> None:
    host = HostProcess(tmp_path / "data").start()
    try:
        assert paddock("keys", "create", "--data", host.data, "--user", "ann").returncode == 0
        (tmp_path / "elsewhere").mkdir()
        said = paddock("chat", "--url", host.url, "hi", cwd=tmp_path / "elsewhere")
    finally:
        host.stop()
    assert said.returncode == 1
    assert "add --data DIR" in said.stderr
    assert "PADDOCK_API_KEY" in said.stderr


# --- what cannot be said ----------------------------------------------------------------------------------------------


def test_too_long_a_message_is_refused_with_its_length_before_anything_is_sent(paddock: Command) -> None:
    said = paddock("chat", "--url", "http://127.0.0.1:9", input="x" * 12_345)
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr == "paddock: That is 12,345 characters; a message may have at most 10,000. Say it in parts.\n"
    assert chat.MAX_TEXT == run_input.MAX_TEXT


@pytest.mark.parametrize("way", ["pipe", "argument"])
def test_what_is_no_text_is_a_sentence(served: HostProcess, clean_env: dict[str, str], way: str) -> None:
    argument, piped = ([b"caf\xe9"], b"") if way == "argument" else ([], b"caf\xe9")
    command = [os.fsencode(PADDOCK), b"chat", b"--url", served.url.encode(), *argument]
    said = subprocess.run(command, capture_output=True, check=False, timeout=60, env=clean_env, input=piped)
    assert (said.returncode, said.stdout) == (1, b"")
    assert (
        said.stderr
        == b"paddock: What you say must be text in UTF-8, and this is not. Save it as UTF-8 and try again.\n"
    )


@pytest.mark.parametrize("json_lines", [(), ("--json",)])
def test_an_answer_that_cannot_be_written_is_a_sentence(
    served: HostProcess, clean_env: dict[str, str], json_lines: tuple[str, ...]
) -> None:
    with Path("/dev/full").open("w") as full:
        command = [PADDOCK, "chat", "--data", served.data, *json_lines, "hi"]
        said = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60, env=clean_env
        )
    sentence = "paddock: Cannot write to standard output: No space left on device.\n"
    assert (said.returncode, said.stderr) == (1, sentence)


def test_a_single_message_at_a_terminal_says_how_to_go_on(
    served: HostProcess, person: People, paddock: Command
) -> None:
    talking = person("chat", "--data", served.data, "--agent", "slow", "remember")
    talking.sees("1 0\r\n")
    talking.sees(f"To go on later: {CALLED} chat --data {served.data} --thread ")
    assert talking.leaves() == 0
    thread = talking.screen.split("--thread ")[1].strip()
    assert paddock("chat", "--data", served.data, "--thread", thread, "--agent", "slow", "remember").stdout == "2 2\n"


def test_a_conversation_that_an_ag_ui_client_named_is_gone_on_with_by_its_name(
    served: HostProcess, paddock: Command
) -> None:
    body = {"threadId": "demo", "runId": "1", "messages": [{"id": "m1", "role": "user", "content": "remember"}]}
    httpx.post(f"{served.url}/api/v1/agent/ag-ui/slow", json=body, timeout=30).raise_for_status()
    assert paddock("chat", "--data", served.data, "--thread", "demo", "remember").stdout == "2 2\n"
    missing = paddock("chat", "--data", served.data, "--thread", "nobody-knows", "hi")
    sentence = "paddock: There is no conversation 'nobody-knows'. Without --thread a new one begins.\n"
    assert (missing.returncode, missing.stderr) == (1, sentence)


def test_an_agent_that_is_not_there_is_told_with_what_is_known_of_it(paddock: Command, tmp_path: Path) -> None:
    host = HostProcess(tmp_path / "data", agents="agents:\n  echo: {runner: 'plugin:paddock/echo/default'}\n").start()
    try:
        unknown = paddock("chat", "--data", host.data, "--agent", "demo", "hi")
        InstalledPlugins(host.data).install(read_package(a_directory(tmp_path / "s")))
        installed = paddock("chat", "--data", host.data, "--agent", "demo", "hi")
    finally:
        host.stop()
    assert (unknown.returncode, installed.returncode) == (1, 1)
    assert unknown.stderr == (
        "paddock: there is no agent 'demo'; known are: echo. "
        f"If you are writing it, `{CALLED} runner dev` says whether it is attached.\n"
    )
    assert "known are: echo. The plugin me/demo is installed: a host takes it up within seconds, " in installed.stderr


# --- several agents ---------------------------------------------------------------------------------------------------


def test_agents_are_invited_asked_switched_to_and_removed(served: HostProcess, person: People) -> None:
    talking = person("chat", "--data", served.data)
    talking.sees("> ")
    talking.press("hello\n")
    talking.sees("hello\r\nhello\r\n")
    talking.press("/invite slow\n")
    talking.sees("[here are: echo (active), slow]")
    talking.press("@slow remember\n")
    talking.sees("[slow speaks]")
    talking.press("/who\n")
    talking.sees("[here are: echo, slow (active)]")
    talking.press("/switch echo\n")
    talking.sees("[here are: echo (active), slow]")
    talking.press("back\n")
    talking.sees("[echo speaks]")
    talking.press("/remove slow\n")
    talking.sees("[here are: echo (active)]")
    talking.press("/switch slow\n")
    talking.sees("is not in this session; here are: echo. /invite slow brings it in.")
    talking.press("/switch nobody\n")
    talking.sees("there is no agent 'nobody'; known are: ")
    talking.press("/invite\n")
    talking.sees("Name an agent: /invite NAME")
    talking.press("/invite nobody\n")
    talking.sees("there is no agent 'nobody'; known are: ")
    talking.press("/handover\n")
    talking.sees("[no handover waits for an answer]")
    talking.press("/quit\n")
    assert talking.leaves() == 0


def test_whoever_comes_back_is_told_when_another_agent_speaks_than_before(
    paddock: Command, person: People, tmp_path: Path
) -> None:
    two = "default_agent: echo\nagents:\n  echo: {runner: 'plugin:paddock/echo/default'}\n"
    gone = "  parrot: {runner: 'plugin:paddock/echo/default'}\n"
    thread = str(uuid.uuid4())
    host = HostProcess(tmp_path / "data", agents=two + gone).start()
    try:
        said = paddock("chat", "--data", host.data, "--thread", thread, "--agent", "parrot", "first")
        assert (said.stdout, said.stderr) == ("first\n", "")
        assert paddock("chat", "--data", host.data, "--thread", thread, "second").stderr == "", "nobody else speaks"
        host.agents_file.write_text(two)
        wait_until(lambda: "parrot" not in loopback.get(f"{host.url}/api/v1/agents").text, 30, "parrot leaving")
        said = paddock("chat", "--data", host.data, "--thread", thread, "third")
        assert (said.stdout, said.stderr) == ("third\n", "[echo speaks]\n")
        thread = str(uuid.uuid4())
        host.agents_file.write_text(two + gone)
        wait_until(lambda: "parrot" in loopback.get(f"{host.url}/api/v1/agents").text, 30, "parrot coming back")
        paddock("chat", "--data", host.data, "--thread", thread, "--agent", "parrot", "first")
        talking = person("chat", "--data", host.data, "--thread", thread)
        talking.sees("> ")
        talking.press("@echo hello\n")
        talking.sees("[echo speaks]")
        talking.press(CTRL_D)
        assert talking.leaves() == 0
    finally:
        host.stop()


def test_a_person_is_asked_before_another_agent_takes_over(served: HostProcess, person: People) -> None:
    talking = person("chat", "--data", served.data, "--agent", "slow")
    talking.sees("> ")
    talking.press("handover echo\n")
    talking.sees("That is not for me.")
    talking.sees("[slow would like echo to go on. not my trade]")
    talking.sees("Hand over to echo? [y/N] ")
    talking.press("y\n")
    talking.sees("[echo takes over]")
    talking.sees("That is not for me.")  # the echo of what was handed over
    talking.sees("> ")
    talking.press("handover echo\n")
    talking.sees("Hand over to echo? [y/N] ")
    talking.press("n\n")
    talking.sees("> ")
    talking.press("/quit\n")
    assert talking.leaves() == 0
