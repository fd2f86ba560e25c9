"""The command line: which commands there are and what they take. The work is in one module per command,
imported when that command runs, so that asking a question never waits for the parts that answer it.
"""

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from paddock.cli.failures import FAILED, USAGE, CommandError

app = typer.Typer(
    name="paddock",
    help="An agent host: agents plug in as runners; conversations, keys and permissions are kept in one place.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
keys = typer.Typer(help="API keys: who may call this host.", no_args_is_help=True, rich_markup_mode=None)
approvals = typer.Typer(help="Actions that wait for your approval.", no_args_is_help=True, rich_markup_mode=None)
runner = typer.Typer(help="Runners: write, try, install and remove them.", no_args_is_help=True, rich_markup_mode=None)
agents_group = typer.Typer(help="Agents: see them, check their file.", no_args_is_help=True, rich_markup_mode=None)
knowledge = typer.Typer(
    help="Knowledge bases: documents that agents can search.", no_args_is_help=True, rich_markup_mode=None
)
admin = typer.Typer(
    help="Look after the data: check, rebuild, back up, restore, delete, erase.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(admin, name="admin")
app.add_typer(keys, name="keys")
app.add_typer(knowledge, name="knowledge")
app.add_typer(approvals, name="approvals")
app.add_typer(agents_group, name="agents")
app.add_typer(runner, name="runner")


def option(*names: str, says: str, env: str = "", metavar: str = "") -> Any:
    """An option whose help also names the environment variable that sets the same thing."""
    text = f"{says}  [env: {env}]" if env else says
    return typer.Option(*names, help=text, metavar=metavar or None, show_default=False)


Data = Annotated[
    Path | None, option("--data", says="Data directory; .paddock unless set.", env="PADDOCK_DATA", metavar="DIR")
]
Url = Annotated[
    str | None, option("--url", says="The host to talk to; found by itself.", env="PADDOCK_URL", metavar="URL")
]


Config = Annotated[
    Path | None,
    option(
        "--config",
        says="TOML file with settings; <data>/paddock.toml if there is one.",
        env="PADDOCK_CONFIG",
        metavar="FILE",
    ),
]


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def everything(
    debug: Annotated[bool, option("--debug", says="Show tracebacks of failures.", env="PADDOCK_DEBUG")] = False,
    version: Annotated[  # noqa: ARG001 - its callback has done the work
        bool,
        typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    if debug:
        os.environ["PADDOCK_DEBUG"] = "1"


@app.command()
def version() -> None:
    """Print the version."""
    from importlib.metadata import version as version_of

    from paddock.cli.output import write

    write(version_of("paddock") + "\n")


@app.command()
def serve(  # noqa: PLR0917 - one parameter for each option is how typer is told of them
    data: Data = None,
    host: Annotated[
        str | None,
        option("--host", says="Address to listen on; 127.0.0.1 unless set.", env="PADDOCK_HOST", metavar="H"),
    ] = None,
    port: Annotated[
        str | None,
        option("--port", says="Port to listen on; 8484 unless set, 0 = any free one.", env="PADDOCK_PORT", metavar="N"),
    ] = None,
    agents: Annotated[
        str | None, option("--agents", says="YAML file that names the agents.", env="PADDOCK_AGENTS", metavar="FILE")
    ] = None,
    plugins: Annotated[
        list[str] | None,
        option(
            "--plugins",
            says="Directory holding plugin directories; may be repeated.",
            env="PADDOCK_PLUGINS",
            metavar="DIR",
        ),
    ] = None,
    store: Annotated[
        str | None,
        option(
            "--store",
            says="embedded, or postgresql://... (a password is better kept in the environment or a file).",
            env="PADDOCK_STORE",
            metavar="ADDRESS",
        ),
    ] = None,
    config: Config = None,
    log_level: Annotated[
        str | None,
        option("--log-level", says="debug, info, warning or error.", env="PADDOCK_LOG_LEVEL", metavar="LEVEL"),
    ] = None,
    log_format: Annotated[
        str | None, option("--log-format", says="text or json.", env="PADDOCK_LOG_FORMAT", metavar="FORM")
    ] = None,
    isolation: Annotated[
        str | None,
        option(
            "--isolation",
            says="How runners are kept apart: L0 (same user) or L1 (bubblewrap).",
            env="PADDOCK_ISOLATION",
            metavar="LEVEL",
        ),
    ] = None,
    run_deadline_seconds: Annotated[
        str | None,
        option(
            "--run-deadline-seconds",
            says="How long a run may take; 300 unless set.",
            env="PADDOCK_RUN_DEADLINE_SECONDS",
            metavar="S",
        ),
    ] = None,
    env_allow: Annotated[
        list[str] | None,
        option(
            "--env-allow",
            says="Variable that runners may see; may be repeated.",
            env="PADDOCK_ENV_ALLOW",
            metavar="NAME",
        ),
    ] = None,
) -> None:
    """Start the host. Ctrl-C stops it.

    What is set here wins over the environment, the environment over the TOML file, the file over the defaults.
    """
    flags = {
        "data": data,
        "host": host,
        "port": port,
        "agents": agents,
        "plugins": plugins,
        "store": store,
        "log_level": log_level,
        "log_format": log_format,
        "isolation": isolation,
        "run_deadline_seconds": run_deadline_seconds,
        "env_allow": env_allow,
    }
    from paddock import settings

    loaded = settings.load(flags, config=config)
    for warning in settings.unknown_variables():
        typer.echo(f"paddock: {warning}", err=True)
    from paddock.cli.serve import serve as serve_until_stopped

    serve_until_stopped(loaded)


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="A Python file with an Agent in it.")],
    message: Annotated[str | None, typer.Argument(help="What to say; without it, a conversation.")] = None,
    data: Data = None,
    port: Annotated[
        str | None,
        option("--port", says="Port to listen on; 8484 or any free one unless set.", env="PADDOCK_PORT", metavar="N"),
    ] = None,
    config: Config = None,
    new: Annotated[bool, option("--new", says="Start another conversation.")] = False,
) -> None:
    """Start a host for the agent in a Python file and talk to it. Everything said is kept.

    The conversation goes on where it was left. Without a terminal and without a message it only serves.
    """
    from paddock import settings
    from paddock.cli.run import run as run_file

    loaded = settings.load({"data": data, "agents": file, "port": port}, config=config)
    sys.exit(run_file(file, loaded, message, new=new))


@app.command()
def chat(
    message: Annotated[str | None, typer.Argument(help="What to say; without it, a conversation.")] = None,
    agent: Annotated[str | None, option("--agent", says="Which agent to talk to.", metavar="A")] = None,
    url: Url = None,
    data: Data = None,
    thread: Annotated[str | None, option("--thread", says="Go on with this conversation.", metavar="ID")] = None,
    as_json: Annotated[bool, option("--json", says="Print the events (AG-UI), one JSON object per line.")] = False,
) -> None:
    """Talk to an agent of a running host.

    A key for a host on another machine is read from PADDOCK_API_KEY.
    """
    from paddock.cli.chat import chat as talk

    sys.exit(talk(message, agent=agent, url=url, data=data, thread=thread, as_json=as_json))


@app.command()
def doctor(
    data: Data = None,
    config: Config = None,
) -> None:
    """Say what works on this machine, what does not, and what to do about it."""
    from paddock import settings
    from paddock.cli.answers import colours_wanted
    from paddock.cli.doctor import doctor as examine

    loaded = settings.load({"data": data}, config=config)
    sys.exit(examine(loaded, colours=colours_wanted(sys.stdout, os.environ)))


@app.command()
def explain(
    run: Annotated[str, typer.Argument(help="The run: its taskId, or your runId.")],
    action: Annotated[str, typer.Argument(help="The host call, such as history.page.")],
    resource: Annotated[str, typer.Argument(help="What it is about: a tool, a model, a state scope.")] = "",
    url: Url = None,
    data: Data = None,
    as_json: Annotated[bool, option("--json", says="Print the answer as JSON.")] = False,
) -> None:
    """Say why a run may, or may not, make a host call."""
    from paddock.cli.explain import explain as tell

    sys.exit(tell(run, action, resource, url=url, data=data, as_json=as_json))


@approvals.command("list")
def approvals_list(
    url: Url = None,
    data: Data = None,
    status: Annotated[
        str | None, option("--status", says="pending, granted, denied or expired; all unless set.", metavar="S")
    ] = None,
    as_json: Annotated[bool, option("--json", says="Print them as JSON.")] = False,
) -> None:
    """Show what your agents asked for, newest first."""
    from paddock.cli.approvals import show

    sys.exit(show(status, url=url, data=data, as_json=as_json))


Approval = Annotated[str, typer.Argument(help="The id that `paddock approvals list` shows.")]


@approvals.command("grant")
def approvals_grant(approval: Approval, url: Url = None, data: Data = None) -> None:
    """Approve an action. It is done once, now."""
    from paddock.cli.approvals import decide

    sys.exit(decide(approval, "grant", url=url, data=data))


@approvals.command("deny")
def approvals_deny(approval: Approval, url: Url = None, data: Data = None) -> None:
    """Refuse an action. It is never done."""
    from paddock.cli.approvals import decide

    sys.exit(decide(approval, "deny", url=url, data=data))


@keys.command("create")
def keys_create(
    user: Annotated[str, option("--user", says="Who acts with it.", metavar="U")],
    workspace: Annotated[
        str, option("--workspace", says="The workspace it opens; default unless set.", metavar="W")
    ] = "default",
    role: Annotated[str, option("--role", says="user, or admin to administer the host.", metavar="R")] = "user",
    data: Data = None,
    config: Config = None,
) -> None:
    """Make an API key and print it, once."""
    from paddock import settings
    from paddock.cli.keys import create

    store = settings.load({"data": data}, config=config).store
    sys.exit(create(workspace=workspace, user=user, role=role, data=data, store=store))


@keys.command("list")
def keys_list(url: Url = None, data: Data = None) -> None:
    """Show who has keys, and which of them were revoked."""
    from paddock.cli.client import connect
    from paddock.cli.keys import show

    sys.exit(show(connect(url, data)))


@keys.command("revoke")
def keys_revoke(
    key: Annotated[str, typer.Argument(help="The id that `paddock keys list` shows.")],
    url: Url = None,
    data: Data = None,
) -> None:
    """Let nobody in with a key any more."""
    from paddock.cli.client import connect
    from paddock.cli.keys import revoke

    sys.exit(revoke(connect(url, data), key))


@agents_group.command("list")
def agents_list(url: Url = None, data: Data = None) -> None:
    """Agents of a running host, where each comes from, and whether it can answer."""
    from paddock.cli.agents import list_agents

    sys.exit(list_agents(url=url, data=data))


@agents_group.command("check")
def agents_check(
    file: Annotated[Path | None, typer.Argument(help="The agents file; the one in the settings unless named.")] = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Read an agents file as the host would, and say what is wrong with it."""
    from paddock import settings
    from paddock.cli.agents import check

    sys.exit(check(settings.load({"data": data}, config=config), file))


@agents_group.command("schema")
def agents_schema() -> None:
    """Print the JSON schema of the agents file, for editors."""
    from paddock.cli.agents import schema

    sys.exit(schema())


@runner.command("new")
def runner_new(
    name: Annotated[str, typer.Argument(help="Name of the plugin and of its directory.")],
    author: Annotated[str | None, option("--author", says="Author; your user name unless set.", metavar="A")] = None,
) -> None:
    """Write a plugin that works, with a test that passes."""
    from paddock.cli.scaffold import new

    sys.exit(new(name, author=author))


@runner.command("dev")
def runner_dev(
    path: Annotated[Path, typer.Argument(help="Directory of the plugin.")],
    url: Url = None,
    data: Data = None,
) -> None:
    """Run a plugin from its directory on a running host; it starts again when you save."""
    from paddock.cli.dev import dev

    sys.exit(dev(path, url=url, data=data))


@runner.command("install")
def runner_install(
    path: Annotated[Path, typer.Argument(help="Directory, .zip or .tar.gz.")],
    yes: Annotated[bool, option("--yes", says="Agree to what it asks for without being asked.")] = False,
    replace: Annotated[bool, option("--replace", says="Put it in the place of an installed one.")] = False,
    data: Data = None,
) -> None:
    """Install a plugin, after showing what it asks for."""
    from paddock.cli.plugins import install

    sys.exit(install(path, data=data, yes=yes, replace=replace))


@runner.command("list")
def runner_list(data: Data = None) -> None:
    """Installed plugins: version, hash, what they may do, and whether they are unchanged."""
    from paddock.cli.plugins import list_installed

    sys.exit(list_installed(data))


@runner.command("verify")
def runner_verify(data: Data = None) -> None:
    """Check installed plugins against what was agreed to."""
    from paddock.cli.plugins import verify

    sys.exit(verify(data))


@runner.command("remove")
def runner_remove(
    plugin: Annotated[str, typer.Argument(help="author/name")],
    data: Data = None,
) -> None:
    """Take an installed plugin out."""
    from paddock.cli.plugins import remove

    sys.exit(remove(plugin, data))


KnowledgeBase = Annotated[str, typer.Argument(metavar="BASE", help="Id of the knowledge base.")]


@knowledge.command("create")
def knowledge_create(
    base: KnowledgeBase,
    name: Annotated[str, option("--name", says="What people call it; its id unless set.", metavar="N")] = "",
    description: Annotated[str, option("--description", says="What is in it.", metavar="TEXT")] = "",
    model: Annotated[
        str, option("--embedding-model", says="Search by meaning too, with this model's vectors.", metavar="M")
    ] = "",
    url: Url = None,
    data: Data = None,
) -> None:
    """Make an empty knowledge base."""
    from paddock.cli.knowledge import create

    sys.exit(create(base, name=name, description=description, model=model, url=url, data=data))


@knowledge.command("list")
def knowledge_list(
    base: Annotated[str | None, typer.Argument(metavar="[BASE]", help="List its documents.")] = None,
    url: Url = None,
    data: Data = None,
) -> None:
    """Knowledge bases, or the documents of one."""
    from paddock.cli.knowledge import list_bases, list_documents

    sys.exit(list_bases(url=url, data=data) if base is None else list_documents(base, url=url, data=data))


@knowledge.command("add")
def knowledge_add(
    base: KnowledgeBase,
    files: Annotated[list[Path], typer.Argument(help="Text, Markdown, HTML, PDF or DOCX.")],
    url: Url = None,
    data: Data = None,
) -> None:
    """Bring documents in, or new versions of them; waits until they can be found."""
    from paddock.cli.knowledge import add

    sys.exit(add(base, files, url=url, data=data))


@knowledge.command("search")
def knowledge_search(
    base: KnowledgeBase,
    query: Annotated[str, typer.Argument(help="What to look for.")],
    top: Annotated[int, option("--top", says="How many passages; 5 unless set.", metavar="N")] = 5,
    url: Url = None,
    data: Data = None,
) -> None:
    """Passages that answer a question, with the place each stands at."""
    from paddock.cli.knowledge import search

    sys.exit(search(base, query, top=top, url=url, data=data))


@knowledge.command("delete")
def knowledge_delete(
    base: KnowledgeBase,
    document: Annotated[
        str | None, typer.Argument(metavar="[DOCUMENT]", help="Name or id of one document; everything unless given.")
    ] = None,
    url: Url = None,
    data: Data = None,
) -> None:
    """Delete a knowledge base, or one of its documents."""
    from paddock.cli.knowledge import delete

    sys.exit(delete(base, document, url=url, data=data))


@admin.command("verify")
def admin_verify(data: Data = None) -> None:
    """Check every conversation's log and every stored file. May run beside a host."""
    from paddock.cli.admin import verify_all

    sys.exit(verify_all(data))


@admin.command("rebuild")
def admin_rebuild(
    data: Data = None,
    check: Annotated[bool, option("--check", says="Only compare; may run beside a host.")] = False,
) -> None:
    """Make runs and transcripts anew from the log, and say what was different."""
    from paddock.cli.admin import rebuild_all

    sys.exit(rebuild_all(data, only_check=check))


@admin.command("backup")
def admin_backup(
    target: Annotated[Path, typer.Argument(help="A new directory, or a new file ending in .tar.")],
    data: Data = None,
) -> None:
    """Back up a data directory. The host may go on meanwhile."""
    from paddock.cli.admin import back_up

    sys.exit(back_up(target, data))


@admin.command("restore")
def admin_restore(
    backup: Annotated[Path, typer.Argument(help="What `paddock admin backup` made.")],
    data: Data = None,
) -> None:
    """Make a new data directory of a backup, after checking every file of it."""
    from paddock.cli.admin import restore

    sys.exit(restore(backup, data))


Thread = Annotated[str, typer.Argument(help="The conversation: its threadId.")]


@admin.command("delete-thread")
def admin_delete_thread(thread: Thread, url: Url = None, data: Data = None) -> None:
    """Delete a conversation with everything that belongs to it."""
    from paddock.cli.admin import delete_thread

    sys.exit(delete_thread(thread, url=url, data=data))


@admin.command("erase")
def admin_erase(
    thread: Thread,
    item: Annotated[str, typer.Argument(help="The message: its item id, such as 0198...-....1")],
    files: Annotated[bool, option("--files", says="Also forget the files it refers to.")] = False,
    url: Url = None,
    data: Data = None,
) -> None:
    """Erase the words of one message; the log still verifies."""
    from paddock.cli.admin import erase

    sys.exit(erase(thread, item, files=files, url=url, data=data))


def main() -> None:
    """Run a command; whatever a person can cause ends in a sentence and an exit code."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        _silence_stdout()
        sys.exit(FAILED)
    except Exception as error:  # the last line of defence: a person sees a sentence, a developer asks for more
        if os.environ.get("PADDOCK_DEBUG"):
            raise
        _fail(error)


def _fail(error: Exception) -> None:
    typer.echo(f"paddock: {_sentence(error)}", err=True)
    _forget_output()
    sys.exit(_exit_code(error))


def _sentence(error: Exception) -> str:
    if _is_known(error):
        return str(error)
    return f"{type(error).__name__}: {error} (this should not happen; paddock --debug shows where)"


def _is_known(error: Exception) -> bool:
    from paddock.rules.errors import HostError, StorageUnavailableError

    return isinstance(error, CommandError | HostError | StorageUnavailableError) or _is_settings_error(error)


def _is_settings_error(error: Exception) -> bool:
    """Asked without importing the settings: a command that never read them cannot have failed in them."""
    module = sys.modules.get("paddock.settings")
    return module is not None and isinstance(error, module.SettingsError)


def _exit_code(error: Exception) -> int:
    if isinstance(error, CommandError):
        return error.exit_code
    return USAGE if _is_settings_error(error) else FAILED


def _forget_output() -> None:
    """What still waits and cannot be written must not end in a second complaint when Python leaves."""
    try:
        sys.stdout.flush()
    except OSError:
        _silence_stdout()


def _silence_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
