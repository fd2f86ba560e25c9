"""`paddock doctor`: what works on this machine, what does not, and what to do about it.

Every check is one function that returns one finding and never raises; a check that breaks is itself a finding.
"""

import asyncio
import importlib.metadata
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from paddock.cli.hosting import logs
from paddock.cli.hosting.doctor_host import agents, data_directory, defined_by, port, runners
from paddock.cli.output import Finding, print_findings, write
from paddock.rules.cluster import ClusterSecret
from paddock.rules.errors import EXTRAS, StorageUnavailableError
from paddock.settings import EMBEDDED, Settings
from paddock.storage.files import cluster_secret
from paddock_sdk.causes import cause_of

MIN_FREE_BYTES = 500 * 1024 * 1024
LOST = "Set it again, or run `paddock keys adopt-secret` and write the settings of agents made over the API again."
EARLIEST_CLOCK = 1_735_689_600
"""1 January 2025: a clock before that is wrong for certain."""


def doctor(settings: Settings, *, colours: bool) -> int:
    """Print every finding; 1 when something that the host needs does not work."""
    logs.configure("error", "text")  # what is wrong is said below, once
    findings = [_guarded(check, settings) for check in CHECKS]
    print_findings(findings, colours=colours)
    bad = [finding for finding in findings if finding.state == "fail"]
    write(f"{len(bad)} problem(s) to solve.\n" if bad else "Everything the host needs works here.\n")
    return 1 if bad else 0


def _guarded(check: Callable[[Settings], Finding], settings: Settings) -> Finding:
    try:
        return check(settings)
    except Exception as error:  # noqa: BLE001 - one broken check must not hide the others
        return Finding(check.__name__.strip("_"), "fail", f"the check itself failed: {cause_of(error)}")


def _python(_: Settings) -> Finding:
    says = f"{platform.python_version()} ({platform.python_implementation()}) on {platform.platform(terse=True)}"
    return Finding("python", "ok", says)


def _paddock(_: Settings) -> Finding:
    names = ("paddock", "paddock-sdk", "uvicorn", "starlette", "pydantic")
    return Finding("packages", "ok", ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names))


def _extras(_: Settings) -> Finding:
    missing = sorted({extra for package, extra in EXTRAS.items() if find_spec(package) is None})
    if not missing:
        return Finding("extras", "ok", f"all installed: {', '.join(sorted(set(EXTRAS.values())))}")
    return Finding("extras", "ok", f"not installed: {', '.join(missing)} (pip install 'paddock[{missing[0]}]')")


def _store(settings: Settings) -> Finding:
    if settings.store == EMBEDDED:
        import apsw

        says = f"embedded: SQLite {apsw.sqlite_lib_version()} through apsw {apsw.apsw_version()}"
        return Finding("store", "ok", says)
    from paddock.storage.postgres.commands import examine

    state, says, remedy = asyncio.run(examine(settings.store))
    return Finding("store", state, says, remedy)


def _bus(settings: Settings) -> Finding:
    if settings.bus == EMBEDDED:
        return Finding("bus", "ok", "embedded: this host rings nobody else")
    problem = asyncio.run(_not_reached(settings.bus))
    if problem is None:
        return Finding("bus", "ok", f"NATS at {settings.shown_bus}")
    remedy = "Start NATS, or set bus to another. Hosts work without it; what one says reaches others late."
    why = f": {problem}" if problem else ""
    return Finding("bus", "fail", f"{settings.shown_bus} cannot be used{why}", remedy)


async def _not_reached(address: str) -> str | None:
    from paddock.bus import bus_at

    bus = bus_at(address)
    await bus.open()
    try:
        return None if bus.healthy() else bus.problem
    finally:
        await bus.close()


def _artifacts(settings: Settings) -> Finding:
    if settings.artifacts == EMBEDDED:
        return Finding("artifacts", "ok", f"embedded: files in {settings.data / 'blobs'}, for this host alone")
    from paddock.rules.errors import FilesUnavailableError
    from paddock.storage.files.s3 import S3Blobs

    try:
        asyncio.run(S3Blobs(settings.artifacts, beside=settings.data).reach())
    except FilesUnavailableError as error:
        remedy = "Start it, make the bucket, or look at AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        return Finding("artifacts", "fail", f"{settings.shown_artifacts}: {error}", remedy)
    return Finding("artifacts", "ok", f"{settings.shown_artifacts} can be read")


def _secret(settings: Settings) -> Finding:
    """Check that the cluster's secret is there, and is the one the data were last used with."""
    if not cluster_secret.is_there(settings.data):
        return Finding("secret", "ok", f"made in {settings.data} at the first start")
    try:
        found = cluster_secret.find(settings.data)
    except StorageUnavailableError as error:
        return Finding("secret", "fail", str(error), f"Set {cluster_secret.VARIABLE}, or restore the file.")
    if settings.store != EMBEDDED:
        return _shared(found)
    if (known := _last_used(settings.data)) is not None and known not in found.marks:
        return Finding("secret", "fail", f"{found.mark} ({found.source}) is not {known}, which was used before", LOST)
    return Finding("secret", "ok", f"{found.mark} ({found.source}), kept apart from backups")


def _shared(found: ClusterSecret) -> Finding:
    says = f"{found.mark} ({found.source})"
    if found.source == cluster_secret.VARIABLE:
        return Finding("secret", "ok", f"{says}: every host needs the same")
    return Finding(
        "secret", "note", f"{says} is this host's alone", f"Several hosts need the same {cluster_secret.VARIABLE}."
    )


def _last_used(data: Path) -> str | None:
    import apsw

    from paddock.storage.sqlite.connection import open_reader

    try:
        connection = open_reader(data)
    except apsw.Error:
        return None
    try:
        row = connection.execute("select mark from cluster_secret").fetchone()
    except apsw.Error:  # written by an older version
        return None
    finally:
        connection.close()
    return row[0] if row else None


def _disk_space(settings: Settings) -> Finding:
    place = next(one for one in (settings.data, *settings.data.parents) if one.exists())
    free = shutil.disk_usage(place).free
    says = f"{free / 1024**3:.1f} GiB free for {settings.data}"
    if free < MIN_FREE_BYTES:
        return Finding("disk space", "note", says, "Make room.")
    return Finding("disk space", "ok", says)


def _clock(_: Settings) -> Finding:
    says = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    if time.time() < EARLIEST_CLOCK:
        return Finding("clock", "fail", f"{says} is in the past", "Set the clock: deadlines and keys depend on it.")
    return Finding("clock", "ok", says)


def _processes(_: Settings) -> Finding:
    if sys.platform != "linux":
        remedy = "A runner that starts processes of its own may leave some behind if the host is killed."
        return Finding("processes", "note", f"{sys.platform} cannot adopt what runners leave behind", remedy)
    if _can_be_subreaper():
        return Finding("processes", "ok", "nothing a runner starts outlives the host (child subreaper)")
    return Finding(
        "processes", "fail", "this system does not let us adopt what runners leave behind", "Use Linux 3.4 or newer."
    )


def _can_be_subreaper() -> bool:
    """Tried in a child: once set, it cannot be unset for this process's tree without a trace."""
    code = "import ctypes, sys; sys.exit(ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0) != 0)"
    return subprocess.run([sys.executable, "-I", "-S", "-c", code], check=False, timeout=10).returncode == 0


def _isolation(settings: Settings) -> Finding:
    from paddock.runners.processes.isolation import active_level

    level, why = active_level()
    says = f"this machine offers {level} ({why}); the host is set to {settings.isolation}"
    if settings.isolation == "L1" and level != "L1":
        return Finding("isolation", "fail", says, "Install bubblewrap, or set isolation to L0.")
    if settings.isolation == "L0":
        return Finding("isolation", "note", says, "L0 guards against mistakes, not malice: run only plugins you trust.")
    return Finding("isolation", "ok", says)


def _tools(_: Settings) -> Finding:
    found = {name: shutil.which(name) for name in ("node", "bwrap", "setpriv")}
    missing = [name for name, path in found.items() if path is None]
    says = ", ".join(f"{name} {'found' if path else 'missing'}" for name, path in found.items())
    wanted = {"node": "runners in JavaScript", "bwrap": "isolation L1", "setpriv": "isolation L1 as root"}
    remedy = "Only needed for " + "; ".join(f"{wanted[name]} ({name})" for name in missing) + "." if missing else ""
    return Finding("programs", "note" if missing else "ok", says, remedy)


def _plugins(settings: Settings) -> Finding:
    from paddock.runners.packages import InstalledPlugins

    plugins = InstalledPlugins(settings.data)
    entries = plugins.list()
    problems = [problem for entry in entries if (problem := plugins.problem(entry))]
    if problems:
        return Finding("plugins", "fail", problems[0], "paddock runner verify lists all of them.")
    return Finding(
        "plugins", "ok", f"{len(entries)} installed, all as they were agreed to" if entries else "none installed"
    )


def _mcp_servers(settings: Settings) -> Finding:
    from paddock.host.agents.file import AgentsFileError

    servers = dict(settings.mcp_servers)
    with suppress(AgentsFileError):  # said above
        servers |= defined_by(settings.agents).resources.mcp_servers if settings.agents else {}
    commands = {name: spec.command for name, spec in sorted(servers.items()) if spec.command}
    missing = [f"{name}: there is no program {one}" for name, one in commands.items() if shutil.which(one) is None]
    if missing:
        return Finding("mcp servers", "note", "; ".join(missing), "Install it; until then their tools are not offered.")
    return Finding("mcp servers", "ok", f"{len(servers)} named" if servers else "none named")


def _echo(_: Settings) -> Finding:
    started = time.monotonic()
    answer = _ask_echo()
    took = (time.monotonic() - started) * 1000
    if answer:
        return Finding("runner", "ok", f"the echo runner starts and answers ({took:.0f} ms)")
    return Finding("runner", "fail", "the echo runner did not answer", "Reinstall paddock and paddock-sdk.")


def _ask_echo() -> bool:
    """Take the first steps of the protocol with the echo runner: handshake, its list of runners, shutdown."""
    import json

    handshake: dict[str, object] = {
        "protocol_version": "1",
        "host": {"name": "paddock", "version": importlib.metadata.version("paddock")},
        "host_time": time.time(),
        "plugin": {"author": "paddock", "name": "echo"},
        "limits": {"max_frame_bytes": 4194304, "max_result_bytes": 1048576, "run_credit": 256, "call_credit": 64},
    }
    asked: Sequence[tuple[str, dict[str, object]]] = (
        ("initialize", handshake),
        ("list_agent_runners", {}),
        ("shutdown", {}),
    )
    frames = (
        {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        for number, (method, params) in enumerate(asked, 1)
    )
    lines = "".join(json.dumps(frame) + "\n" for frame in frames)
    command = [sys.executable, "-m", "paddock_runners.echo"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False, timeout=20)
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    runners = [one["id"] for answer in answers if answer.get("id") == 2 for one in answer["result"]["runners"]]
    return done.returncode == 0 and "plugin:paddock/echo/default" in runners


CHECKS: tuple[Callable[[Settings], Finding], ...] = (
    _python,
    _paddock,
    _extras,
    _store,
    _bus,
    _artifacts,
    data_directory,
    _secret,
    _disk_space,
    port,
    _clock,
    _processes,
    _isolation,
    _tools,
    _plugins,
    agents,
    runners,
    _mcp_servers,
    _echo,
)
