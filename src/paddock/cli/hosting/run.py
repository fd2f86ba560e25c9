"""`paddock run my_agent.py`: a host for one file and a conversation with its agent, in one command.

The host is a process of its own that ends with this one, however this one ends. The conversation goes on where it
was left, as everything is kept in the data directory.
"""

import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from paddock.agent_program import load_program
from paddock.cli import presence
from paddock.cli.chatting.answers import colours_wanted
from paddock.cli.chatting.chat import Chat, converse, one_message
from paddock.cli.client import at, connect
from paddock.cli.output import USAGE, CommandError, as_sentence, command, fails_with
from paddock.confinement.private import private_directory, private_file
from paddock.host.agents.file import AgentsFileError
from paddock.settings import Settings

LOG = "host.log"
CONVERSATIONS = "conversations"
IN_USE = "is in use"
"""What `serve` says of a port that somebody else has."""
START_SECONDS = 30.0
STOP_SECONDS = 15.0
CHILD = "import sys; from paddock.cli.main import serve_while_watched; serve_while_watched(sys.argv[1:])"


def run(file: Path, settings: Settings, message: str | None, *, new: bool) -> int:
    """Returns the exit code."""
    with fails_with(AgentsFileError, says=as_sentence, exit_code=USAGE):  # before anything starts
        agent = load_program(file.absolute()).bindings[0].agent_id
    if message is not None and not message.strip():
        raise CommandError(f'There is nothing to say. Try: {command("run")} {_typed(file)} "hello"', exit_code=USAGE)
    if message is None and not sys.stdin.isatty():
        _serve(settings)
        return 0
    again = command(f"run {_typed(file)}", data=presence.data_flag(settings.data))
    with _host(file, settings):
        talk = Chat(
            connect=lambda: connect(None, settings.data),
            thread_id=_conversation(settings.data, agent, new=new),
            agent=agent,
            as_json=False,
            colours=colours_wanted(sys.stdout, os.environ),
            again=again,
            later=lambda _: again,
            another=lambda: _conversation(settings.data, agent, new=True),
            remark=lambda: _why_the_old(settings.data),
        )
        return converse(talk) if message is None else one_message(talk, message)


def _serve(settings: Settings) -> None:
    """Until somebody stops it; it says itself at which address."""
    from paddock.cli.hosting.starting import load_serve

    port = _port(settings)
    if port != settings.port:
        sys.stderr.write(f"Port {settings.port} is in use; any other free one will do.\n")
    load_serve()(settings.model_copy(update={"port": port}))


def _why_the_old(data: Path) -> str:
    with suppress(CommandError):  # a host that went away is told by the turn itself
        problem = connect(None, data).call("GET", at("agents")).get("problem")
        return f"the old version still answers: {problem}" if problem else ""
    return ""


def refuse_no_program(file: Path) -> None:
    """Said before the settings are read: they would call it what it is to them, an agents file."""
    if file.is_dir():
        raise CommandError(f"{file} is a directory; name the Python file with your agent in it.", exit_code=USAGE)
    if not file.is_file():
        raise CommandError(f"There is no file {file}. Write an agent into it first, or name another.", exit_code=USAGE)
    if file.suffix in (".yaml", ".yml"):
        raise CommandError(f"{file} names agents for: {command('serve')} --agents {_typed(file)}", exit_code=USAGE)
    if file.suffix != ".py":
        raise CommandError(f"{file} is no Python file; write the agent into one, such as my_agent.py.", exit_code=USAGE)


def _typed(file: Path) -> str:
    return shlex.quote(str(file))


def _conversation(data: Path, agent: str, *, new: bool) -> str:
    place = data / CONVERSATIONS / agent
    with suppress(OSError, ValueError):
        if not new:
            return str(uuid.UUID(place.read_text(encoding="ascii").strip()))
    private_directory(data)
    place.parent.mkdir(mode=0o700, exist_ok=True)
    private_file(place)
    thread = str(uuid.uuid4())
    place.write_text(thread + "\n", encoding="ascii")
    return thread


@contextmanager
def _host(file: Path, settings: Settings) -> Generator[None]:
    _refuse_another(file, settings.data)
    private_directory(settings.data)
    child = _ready(settings, _port(settings))
    try:
        yield
    finally:
        _stop(child)


def _ready(settings: Settings, port: int) -> "subprocess.Popen[bytes]":
    """A host that is ready. Somebody may take the port before it does; then it gets another, as if it had been taken
    before."""
    child = _started(settings, port)
    try:
        _until_ready(child, settings.data / LOG)
    except BaseException as error:
        _stop(child)
        if isinstance(error, CommandError) and IN_USE in str(error) and port and not _asked_for(settings):
            return _ready(settings, 0)
        raise
    return child


def _started(settings: Settings, port: int) -> "subprocess.Popen[bytes]":
    flags = ["--data", str(settings.data), "--agents", str(settings.agents), "--port", str(port)]
    private_file(settings.data / LOG)
    with (settings.data / LOG).open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-c", CHILD, *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for the conversation; the host is stopped when that is over
        )


def _asked_for(settings: Settings) -> bool:
    return "port" in settings.model_fields_set


def _port(settings: Settings) -> int:
    """The usual one, or any other when that is taken; one that was asked for is not exchanged."""
    if _asked_for(settings):
        return settings.port
    with socket.socket() as trying:
        trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trying.bind((settings.host, settings.port))
        except OSError:
            return 0
    return settings.port


def _refuse_another(file: Path, data: Path) -> None:
    there = presence.find(data)
    if there is None or not _alive(there.pid):
        return
    own = command(f"run {_typed(file)}", data=data.with_name(f"{data.name}-{file.stem}"))
    raise CommandError(
        f"A host serves {data} already ({there.url}), with the agents it was started with. Stop that one, give "
        f"{file.name} a directory of its own: {own}, or talk to the one that runs: {command('chat', data=data)}",
        exit_code=USAGE,
    )


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _until_ready(child: "subprocess.Popen[bytes]", log: Path) -> None:
    """Read what the host says until it is ready; what it says later is thrown away, so that it never waits for us."""
    assert child.stdout is not None
    ready = threading.Event()

    def read() -> None:
        for line in child.stdout or ():
            if b"ready at" in line:
                sys.stderr.write(f"{line.decode(errors='replace').strip()} (log: {log})\n")
                ready.set()

    threading.Thread(target=read, daemon=True).start()
    waited = 0.0
    while not ready.wait(0.05):
        waited += 0.05
        if child.poll() is not None or waited > START_SECONDS:
            raise CommandError(f"The host did not start: {_last_words(log)}")


def _last_words(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].removeprefix("paddock: ") if lines else f"see {log}"


def _stop(child: "subprocess.Popen[bytes]") -> None:
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)
    try:
        child.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait(STOP_SECONDS)
