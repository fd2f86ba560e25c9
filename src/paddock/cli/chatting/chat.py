"""Talk to an agent from the terminal: one message and its answer, or a conversation."""

import os
import re
import sys
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from paddock.cli import presence
from paddock.cli.chatting.answers import (
    BOLD,
    DIM,
    PLAIN,
    RED,
    AnswerPrinter,
    JsonPrinter,
    TurnEnding,
    colours_wanted,
    ending,
    painted,
)
from paddock.cli.chatting.members import HELP as MEMBERS_HELP
from paddock.cli.chatting.members import Members, Speakers, agent_names, who_spoke
from paddock.cli.chatting.turns import ChatTurn
from paddock.cli.client import NOT_FOUND, SESSIONS, HostClient, RefusedError, at, connect
from paddock.cli.output import FAILED, CommandError, command, fails_with


def about(agent: str, host: HostClient, data: Path | None) -> str:
    directory = presence.data_directory(data).absolute()
    here = presence.find(directory)
    plugin = _installed(agent, directory) if here is not None and here.url == host.url else ""
    if plugin:
        return (
            f"The plugin {plugin} is installed: a host takes it up within seconds, and one with an agents file has it "
            "under the names given there."
        )
    return f"If you are writing it, `{command('runner dev')}` says whether it is attached."


def _installed(name: str, directory: Path) -> str:
    from paddock.runners.packages import InstalledPlugins, PackageError

    with suppress(PackageError, ValueError, OSError):
        for one in InstalledPlugins(directory).list():
            if one.plugin.partition("/")[2] == name:
                return one.plugin
    return ""


try:
    import readline
except ImportError:  # Python can be built without it; typing still works
    readline = None

KEPT_LINES = 1000


def history_file(environ: Mapping[str, str]) -> Path:
    state = environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "paddock" / "chat_history"


class LineInput:
    def __init__(self, *, colours: bool) -> None:
        self._prompt = f"\001{BOLD}\002>\001{PLAIN}\002 " if colours and readline else "> "
        self._file = history_file(os.environ)
        if readline is not None:
            with suppress(OSError):
                readline.read_history_file(self._file)

    def next(self) -> str | None:
        """The next line; None when the person wants to leave (Ctrl-D, or Ctrl-C twice in a row)."""
        for _ in range(2):
            try:
                return input(self._prompt)
            except EOFError:
                sys.stdout.write("\n")
                return None
            except UnicodeDecodeError:
                return "\udcff"  # refused where everything that is no text is, with the same sentence
            except KeyboardInterrupt:
                sys.stdout.write("\n(Ctrl-C again or Ctrl-D leaves)\n")
        return None

    def save(self) -> None:
        """Write the lines to a file that only this user may read; failing to is ignored."""
        if readline is None:
            return
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file.touch(mode=0o600)
            readline.set_history_length(KEPT_LINES)
            readline.write_history_file(self._file)


INTERRUPTED = 130
MAX_TEXT = 10_000
"""What a host takes as one message, in characters."""
NOT_TEXT = "What you say must be text in UTF-8, and this is not. Save it as UTF-8 and try again."
HELP = "/new starts another conversation, /quit leaves. Ctrl-C stops an answer, arrow-up brings back what you typed."
MAX_COMMAND_WORDS = 2
ASKS_TO_HAND_OVER = "paddock.handover.prompt"


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation at the terminal: the host, the thread, the agent, and how answers are shown."""

    connect: Callable[[], HostClient]
    thread_id: str
    agent: str | None
    as_json: bool
    colours: bool
    again: str
    """The command that comes back to this host."""
    later: Callable[[str], str]
    """The command that goes on with a conversation, by its id."""
    another: Callable[[], str] = lambda: str(uuid.uuid4())
    """The id of another conversation."""
    about: Callable[[str], str] = lambda _: ""
    """What is known of an agent that the host does not have."""
    remark: Callable[[], str] = lambda: ""
    """What is to be known before an answer, if anything."""
    goes_on: bool = False
    """Somebody may have spoken in it before."""

    def printer(self) -> AnswerPrinter | JsonPrinter:
        return JsonPrinter() if self.as_json else AnswerPrinter(colours=self.colours)


def chat(
    message: str | None, *, agent: str | None, url: str | None, data: Path | None, thread: str | None, as_json: bool
) -> int:
    """Returns the exit code."""
    again = command("chat", url=url, data=data)
    talk = Chat(
        connect=lambda: connect(url, data),
        thread_id=_conversation(thread, lambda: connect(url, data)),
        agent=agent,
        as_json=as_json,
        colours=colours_wanted(sys.stdout, os.environ),
        again=again,
        later=lambda thread_id: f"{again} --thread {thread_id}",
        about=lambda absent: about(absent, connect(url, data), data),
        goes_on=thread is not None,
    )
    if message is None and sys.stdin.isatty():
        return converse(talk)
    with fails_with(UnicodeDecodeError, says=lambda _: NOT_TEXT):
        text = sys.stdin.buffer.read().decode("utf-8") if message is None else message
    code = one_message(talk, text)
    if sys.stderr.isatty():
        _say_how_to_go_on(talk)
    return code


def _conversation(named: str | None, reach: Callable[[], HostClient]) -> str:
    """A new one, one by its id, or one by the name that an AG-UI client gave it."""
    if named is None:
        return str(uuid.uuid4())
    try:
        return str(uuid.UUID(named))
    except ValueError:
        pass
    try:
        return str(reach().call("GET", at(*SESSIONS, named))["threadId"])
    except RefusedError as refused:
        if refused.status != NOT_FOUND:
            raise
        raise CommandError(f"There is no conversation {named!r}. Without --thread a new one begins.") from refused


def one_message(talk: Chat, text: str) -> int:
    """Say it, show the answer; returns the exit code."""
    return _report(talk, say(talk, text, _speakers(talk) if talk.goes_on else None))


def _speakers(talk: Chat) -> Speakers:
    return who_spoke(talk.connect(), talk.thread_id) if talk.goes_on else Speakers()


def _say_how_to_go_on(talk: Chat) -> None:
    _aside(painted(f"To go on later: {talk.later(talk.thread_id)}", DIM, on=talk.colours))


def say(talk: Chat, text: str, speakers: Speakers | None = None) -> TurnEnding:
    """One turn. Ctrl-C cancels it and waits for its end; a second Ctrl-C leaves at once."""
    _check(text, talk)
    printer = talk.printer()
    turn = ChatTurn(
        talk.connect, talk.thread_id, text, talk.agent, on_lost=lambda: printer.note("connection lost, trying again")
    )
    _start(turn, talk)
    if remark := talk.remark():
        printer.note(remark)
    if speakers is not None:
        speakers.announce(turn, printer)
    return _watch(turn, printer)


def _start(turn: ChatTurn, talk: Chat) -> None:
    try:
        turn.start()
    except RefusedError as refused:
        if talk.agent is None or refused.status != NOT_FOUND or talk.agent in agent_names(talk.connect()):
            raise
        raise CommandError(f"{refused}. {talk.about(talk.agent)}".strip()) from refused


def _watch(turn: ChatTurn, printer: AnswerPrinter | JsonPrinter) -> TurnEnding:
    try:
        return _follow(turn, printer)
    except KeyboardInterrupt:
        printer.note("stopping; Ctrl-C again leaves")
        turn.cancel()
        return _follow(turn, printer)


def _check(text: str, talk: Chat) -> None:
    if not text.strip():
        raise CommandError(f'There is nothing to say. Try: {talk.again} "hello"')
    if len(text) > MAX_TEXT:
        raise CommandError(
            f"That is {len(text):,} characters; a message may have at most {MAX_TEXT:,}. Say it in parts."
        )
    with fails_with(UnicodeEncodeError, says=lambda _: NOT_TEXT):  # bytes that came as an argument and were no text
        text.encode("utf-8")


def _follow(turn: ChatTurn, printer: AnswerPrinter | JsonPrinter) -> TurnEnding:
    end, asked = TurnEnding(), False
    for event in turn.events():
        printer.show(event)
        asked = asked or event.get("name") == ASKS_TO_HAND_OVER
        end = ending(event) or end
    return replace(end, asks_to_hand_over=asked)


def _report(talk: Chat, end: TurnEnding) -> int:
    if end.failure:
        _aside(painted(end.failure, RED, on=talk.colours))
        return FAILED
    if end.cancelled:
        _aside(painted("[cancelled]", DIM, on=talk.colours))
        return INTERRUPTED
    return 0


def converse(talk: Chat) -> int:
    """Turn after turn until /quit, Ctrl-D, or Ctrl-C twice at the prompt."""
    talk.connect().call("GET", "/readyz")
    _aside(painted(HELP, DIM, on=talk.colours))
    lines, speakers = LineInput(colours=talk.colours), _speakers(talk)
    try:
        while (text := lines.next()) is not None:
            match text.strip():
                case "/quit" | "/exit":
                    break
                case "/new":
                    talk = replace(talk, thread_id=talk.another())
                case "/help":
                    _aside(painted(f"{HELP}\n{MEMBERS_HELP}", DIM, on=talk.colours))
                case "":
                    pass
                case command if _members(talk).handles(command):
                    _obey(talk, command, speakers)
                case unknown if _looks_like_a_command(unknown):
                    sorry = f"{unknown.split()[0]} is no command, so nothing was sent; /help says which there are."
                    _aside(painted(sorry, RED, on=talk.colours))
                case _:
                    _answer(talk, text, speakers)
    finally:
        lines.save()
    _say_how_to_go_on(talk)
    return 0


def _looks_like_a_command(text: str) -> bool:
    """A slash and a word: a path, or a sentence that begins with one, is something to say."""
    word = text.split(maxsplit=1)[0]
    return re.fullmatch(r"/[a-z]+", word) is not None and len(text.split()) <= MAX_COMMAND_WORDS


def _members(talk: Chat) -> Members:
    return Members(talk.connect, talk.thread_id, talk.colours)


def _obey(talk: Chat, command: str, speakers: Speakers) -> None:
    try:
        _go_on(talk, _members(talk).obey(command), speakers)
    except CommandError as error:
        _aside(painted(str(error), RED, on=talk.colours))


def _go_on(talk: Chat, task_id: str | None, speakers: Speakers) -> None:
    """Follow the turn of whoever took over."""
    if task_id is None:
        return
    printer = talk.printer()
    turn = ChatTurn(talk.connect, talk.thread_id, "", task_id=task_id)
    speakers.announce(turn, printer)
    end = _watch(turn, printer)
    _report(talk, end)
    if end.asks_to_hand_over:
        _go_on(talk, _members(talk).answer_handover(), speakers)


def _answer(talk: Chat, text: str, speakers: Speakers) -> None:
    """A refusal or a lost host ends the turn, not the conversation."""
    try:
        end = say(talk, text, speakers)
        _report(talk, end)
        if end.asks_to_hand_over:
            _go_on(talk, _members(talk).answer_handover(), speakers)
    except CommandError as error:
        _aside(painted(str(error), RED, on=talk.colours))


def _aside(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
