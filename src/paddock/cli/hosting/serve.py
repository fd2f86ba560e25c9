"""Run the host until somebody stops it: lock the data directory, take the port, build the house, serve, leave cleanly.

What the host does is decided elsewhere; here is only how its process starts and ends.
"""

import asyncio
import errno
import gc
import os
import resource
import signal
import socket
import sys
from collections.abc import Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import structlog
import uvicorn
import uvloop
from starlette.types import ASGIApp

from paddock import compose
from paddock.cli import presence
from paddock.cli.hosting import logs
from paddock.cli.hosting.process import hanging, use_large_pages
from paddock.cli.hosting.run_socket import Server, run_socket
from paddock.cli.output import USAGE, CommandError, as_sentence, command, fails_with, with_advice
from paddock.host.agents.file import AgentsFileError
from paddock.host.platforms.platforms import PlatformError
from paddock.http_api.edge.bounds import Crowd
from paddock.http_api.edge.connection import served
from paddock.models.loading import ModelSettingsError
from paddock.rules.errors import FilesUnavailableError, StorageUnavailableError
from paddock.settings import EMBEDDED, Settings
from paddock.storage.chosen import store_at
from paddock.storage.files.lock import DataDirectory, DataDirectoryInUseError
from paddock.telemetry.loop_watch import LoopWatch
from paddock.tools.functions import ToolDefinitionError

BACKLOG = 2048
THREADS = "paddock-loop"
MIB = 1024 * 1024
FILES_BESIDE = 1000
"""Open files that are no connections: the store, pipes of runners, files that are read."""
MAX_MESSAGE_BYTES = 4 * 1024 * 1024
"""One runner frame; the WebSocket door takes nothing longer."""
NAMED = 6
"""So many models are named when the host is ready."""
GRACE_SECONDS = 3
"""How long open answers may go on after the house has stopped; by then every stream has had its last event."""

log = structlog.get_logger(__name__)


YOUNG_OBJECTS = 20_000
SETTLED_AFTER = (5.0, 60.0, 600.0)
"""Seconds after which memory is looked at, each counted from the look before."""


def _collect_rarely() -> None:
    """Collect garbage less often: loaded code stays for good, and values are never part of cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 20, 50)


async def _settle_in() -> None:
    """Use large pages when the first runs have loaded late modules, and again when the caches are full."""
    for seconds in SETTLED_AFTER:
        await asyncio.sleep(seconds)
        pages = await asyncio.to_thread(use_large_pages)
        log.debug("memory is in large pages", action="memory.large_pages", pages=pages)


def serve(settings: Settings) -> None:
    """Serve until SIGINT or SIGTERM; return when everything is down."""
    logs.configure(settings.log_level, settings.log_format)
    _refuse_half_a_cluster(settings)
    with _only_host_of(settings.data):
        with _reachable_store(settings):
            _refuse_strangers(settings)
        with _listening(settings.host, settings.port) as listener, _reachable_store(settings):
            _run(_serve(settings, listener))


@contextmanager
def _reachable_store(settings: Settings) -> Generator[None]:
    """A database or a bucket that is not there, or not ours, is a wrong setting: one sentence that says which."""
    try:
        yield
    except StorageUnavailableError as error:
        if settings.store == EMBEDDED and not isinstance(error, FilesUnavailableError):
            raise
        raise CommandError(
            f"{settings.of_whom(error)} cannot be used: {with_advice(error)}", exit_code=USAGE
        ) from error


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run it to its end. A thread of the loop that hangs by then is left behind: closing the loop would wait for it."""
    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    threads = ThreadPoolExecutor(thread_name_prefix=THREADS)
    runner.get_loop().set_default_executor(threads)
    try:
        runner.run(work)
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        if not hanging(THREADS):
            runner.close()


@contextmanager
def _only_host_of(data: Path) -> Generator[None]:
    in_use = "{}: one host at a time. Stop that one, or use another --data.".format
    with ExitStack() as held:
        with (
            fails_with(StorageUnavailableError, says="{}. Choose another with --data.".format, exit_code=USAGE),
            fails_with(DataDirectoryInUseError, says=in_use, exit_code=USAGE),
        ):
            held.enter_context(DataDirectory.lock(data))
        yield


def _refuse_half_a_cluster(settings: Settings) -> None:
    """A bus between hosts that share no store would look like a cluster and be none."""
    if settings.bus != EMBEDDED and settings.store == EMBEDDED:
        raise CommandError(
            f"bus = {settings.shown_bus} joins hosts that share a store, and the embedded store is this host's alone. "
            "Set store to postgresql://... as well, or leave bus out.",
            exit_code=USAGE,
        )


def _refuse_strangers(settings: Settings) -> None:
    """Without a key everybody who reaches the port would be somebody: allowed on loopback only."""
    if settings.on_loopback or settings.takes_tokens or asyncio.run(_any_key(settings)):
        return
    create = command("keys create --user NAME --role admin", data=presence.data_flag(settings.data))
    raise CommandError(
        f"Listening on {settings.host} lets other machines in, and no API key exists yet. Create one first: {create}",
        exit_code=USAGE,
    )


async def _any_key(settings: Settings) -> bool:
    store = store_at(settings.store, settings.data)
    await store.open()
    try:
        return await store.any_key()
    finally:
        await store.close()


@contextmanager
def _listening(host: str, port: int) -> Generator[socket.socket]:
    """Take the port before anything is built. Callers that come early wait in the backlog until the house stands."""
    try:
        family, _, _, _, address = _resolve(host, port)
        listener = socket.socket(family, socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise CommandError(
            f"{host} is no address of this machine ({error.strerror}). Choose another with --host.", exit_code=USAGE
        ) from error
    with listener:
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError as error:
            raise CommandError(_why_not(error, host, port), exit_code=USAGE) from error
        yield listener


def _resolve(host: str, port: int) -> tuple[int, int, int, str, tuple[str, int] | tuple[str, int, int, int]]:
    found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return min(found, key=lambda one: one[0] != socket.AF_INET)  # pyright: ignore[reportReturnType]


def _why_not(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is in use. Stop what uses it, or choose another with --port (0: any free one)."
    if error.errno == errno.EACCES:
        return f"Port {port} needs rights this user does not have. Choose one above 1023 with --port."
    return f"Cannot listen on {host}, port {port}: {error.strerror}. Choose another address with --host."


async def _serve(settings: Settings, listener: socket.socket) -> None:
    token = presence.new_token()
    url = _url(settings.host, listener)
    with fails_with(
        AgentsFileError, ToolDefinitionError, ModelSettingsError, PlatformError, says=as_sentence, exit_code=USAGE
    ):
        house = compose.build(settings, local_token=token, url=_by_name(url))
    _collect_rarely()
    stop = asyncio.Event()
    house.run_endpoints.address = house.run_endpoints.address or _reachable(url)
    server = Server(_uvicorn(house.app, _crowd(settings)), on_started=lambda: _say_ready(settings, url, house))
    with _signals(stop, house.loop_watch), presence.announced(settings.data, url=_reachable(url), token=token):
        async with run_socket(house.run_door, house.run_endpoints, settings.data), house.running():
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            settling = asyncio.create_task(_settle_in())
            serving.add_done_callback(lambda _: stop.set())
            await stop.wait()
            await house.ending.drain()
            server.should_exit = True  # no new callers from now on
            settling.cancel()
        await serving  # the house is down and every stream has had its last event: there is only the rest to flush


def _crowd(settings: Settings) -> Crowd:
    """Return the set number of connections, or as many as this process may have files open for."""
    wanted = settings.max_connections + FILES_BESIDE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    most = max(1, min(settings.max_connections, allowed - FILES_BESIDE))
    if most < settings.max_connections:
        log.warning("fewer connections than max_connections: raise the limit of open files", action="serve", most=most)
    return Crowd(most, settings.unfinished_mib * MIB)


def _uvicorn(app: ASGIApp, crowd: Crowd) -> uvicorn.Config:
    return served(
        app,
        crowd,
        ws=_web_socket,
        ws_max_size=MAX_MESSAGE_BYTES,
        ws_per_message_deflate=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


def _web_socket(**about: Any) -> asyncio.Protocol:
    """The protocol of a connection that became a web socket. Few hosts ever have one, so its library is loaded then."""
    from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

    return WebSocketsSansIOProtocol(**about)


@contextmanager
def _signals(stop: asyncio.Event, watch: LoopWatch) -> Generator[None]:
    """The first signal asks to stop; a second one does not wait. Runner processes end with us either way.

    A loop that is held up hears no signal. Python itself does, between two of its steps, so the watch is told there: a
    host that answers nothing is ended, and a second signal ends it at once.
    """
    loop = asyncio.get_running_loop()
    asked = False

    def on_signal() -> None:
        _say("Stopping. Press Ctrl-C again to stop at once.")
        stop.set()

    def in_any_case(_: int, __: object) -> None:
        nonlocal asked
        if asked:
            _leave_at_once("Stopping at once.")
        asked = True
        watch.expect_stop(partial(_leave_at_once, "Stopping at once: the event loop does not answer."))

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
        signal.signal(number, in_any_case)  # the loop goes on hearing of it by its own way
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def _leave_at_once(why: str) -> None:
    with suppress(OSError):
        os.write(1, f"{why}\n".encode())  # not by way of `sys.stdout`: whoever was interrupted may be writing there
    os._exit(130)


def _url(host: str, listener: socket.socket) -> str:
    name = f"[{host.strip('[]')}]" if ":" in host else host
    return f"http://{name}:{listener.getsockname()[1]}"


def _by_name(url: str) -> str:
    """Return the address for other machines: one that listens everywhere is called by its host name."""
    name = socket.gethostname()
    return url.replace("//0.0.0.0:", f"//{name}:").replace("//[::]:", f"//{name}:")


def _reachable(url: str) -> str:
    """Listening everywhere includes this machine; the address to call is then loopback."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def _say_ready(settings: Settings, url: str, house: compose.House) -> None:
    _say(f"Paddock is ready at {url}")
    _say(f"  data  {settings.data}")
    if settings.store != EMBEDDED:
        _say(f"  store {settings.shown_store}")
    if settings.bus != EMBEDDED:
        _say(f"  bus   {settings.shown_bus}")
    _say(f"  models  {_named(house)}")
    _say(f'  chat  {command("chat", data=presence.data_flag(settings.data))} "hello"')


def _named(house: compose.House) -> str:
    """The models this host offers, the first few by name."""
    names = [info.model_id for info in house.models.list(compose.HOME)]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    only = " (built in, needs no key)" if names == ["demo"] else ""
    return ", ".join(names[:NAMED]) + more + only


def _say(text: str) -> None:
    with suppress(OSError):  # nobody may be reading, and the host is needed all the same
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
