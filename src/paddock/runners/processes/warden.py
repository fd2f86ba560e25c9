"""Stands between the host and one runner process so that a dead host leaves no live child. A program of its own.

    python -I -S warden.py CONTROL_FD COMMAND [ARGUMENT ...]

It adopts every orphan below it (subreaper), starts the command with the very stdin, stdout and stderr it was given, and
watches the control socket, whose other end only the host holds. When that end closes (the host let go, or died by
whatever means) or the command exits, every descendant is killed and reaped, and the warden exits with the command's
status. Data never passes through here, and nothing of Paddock is imported: it must stay small and quick to start.

From the host: `T` asks the command's process group to end (TERM), `K` kills all. To the host: `pid N`, `exit N`, where
N is negative for a signal.
"""

import _ctypes  # with _signal below: half the start time and 1.2 MB less than the modules that wrap them
import os
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 36, 38
LANDLOCK_CREATE, LANDLOCK_RESTRICT = 444, 446
SANDBOX = "bwrap"
RESCAN_SECONDS = 0.01


def prctl(option: int, value: int) -> None:
    """Ask the kernel. Elsewhere than on Linux there is nobody to ask: a weaker place, and the guide says so."""
    if sys.platform != "linux":
        return
    function = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # pyright: ignore[reportArgumentType] - None is ourselves
    if _ctypes.call_function(function, (option, value, 0, 0, 0)) != 0:
        raise OSError(0, f"prctl({option}) was refused")


def scope_abstract_sockets() -> None:
    """Keep a confined process from abstract sockets of others, which belong to the network and not to the file system.

    With Landlock, where the kernel has its sixth version; where it has not, the filter of calls knows no such sockets.
    """
    syscall = _ctypes.dlsym(_ctypes.dlopen(None, 0), "syscall")  # pyright: ignore[reportArgumentType] - as above
    rules = _ctypes.call_function(syscall, (LANDLOCK_CREATE, bytes(16) + b"\1" + bytes(7), 24, 0))
    if rules >= 0:
        _ctypes.call_function(syscall, (LANDLOCK_RESTRICT, rules, 0))
        os.close(rules)


def run_command(argv: list[str], warden: int) -> None:
    """In the child: become the leader of an own session, tie our life to the warden's, turn into the command."""
    try:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        if argv[0] == SANDBOX:
            scope_abstract_sockets()
        if os.getppid() != warden:
            os._exit(1)
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(argv[0], argv)  # noqa: S606 - the command is the plugin's own, no shell reads it
    except OSError as problem:
        os.write(2, f"cannot start {argv[0]}: {problem.strerror}\n".encode())
    os._exit(127)


def descendants() -> list[int]:
    """Everybody below us now, by the parent each process in /proc names."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib would double the size of the warden
        if name.isdigit() and (parent := parent_of(name)):
            children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    frontier = [os.getpid()]
    while frontier:
        below = children.get(frontier.pop(), [])
        found += below
        frontier += below
    return found


def parent_of(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:  # noqa: PTH123 - as above
            return int(stat.read().rpartition(b")")[2].split()[1])
    except OSError:
        return 0


def kill_all(command: int) -> None:
    """Kill and reap until nobody is left.

    A process that forks and ends all the time is gone whenever everybody was looked through. But what it leaves becomes
    our own child, so from the second look on only those are looked at, without a pause as long as they change.
    """
    pids, seen = descendants() if sys.platform == "linux" else [-command], [0]
    while True:
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue  # gone already
        if not reap(command)[1]:
            return
        if pids == seen:
            select.select([], [], [], RESCAN_SECONDS)
        seen, pids = pids, children() if sys.platform == "linux" else pids


def children() -> list[int]:
    """Our own children; on a kernel that does not list them, everybody below us."""
    pid = os.getpid()
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as listed:  # noqa: PTH123 - as above
            return [int(child) for child in listed.read().split()]
    except OSError:
        return descendants()


def reap(command: int) -> tuple[int | None, bool]:
    """Collect the dead: (wait status of the command if it is among them, whether anybody is still alive)."""
    status = None
    while True:
        try:
            pid, how = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status, False
        if pid == 0:
            return status, True
        if pid == command:
            status = how


def watch(control: int, wake: int, command: int) -> int | None:
    """Wait until the command exits (its wait status) or the host wants an end (None)."""
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(wake, select.POLLIN)
    while True:
        ready = {fd for fd, _ in poll.poll()}
        if wake in ready:
            if signal.SIGTERM in os.read(wake, 4096):
                return None
            status, _ = reap(command)
            if status is not None:
                return status
        if control in ready:
            wish = os.read(control, 64)
            if not wish or b"K" in wish:
                return None
            ask_to_end(command)


def ask_to_end(command: int) -> None:
    try:
        os.killpg(command, signal.SIGTERM)
    except OSError:
        return  # it ended meanwhile, and the next wake-up says so


def note(number: int, frame: object) -> None:
    """A signal we wait for: the wake-up pipe already carries its number."""


def tell(control: int, line: str) -> None:
    try:
        os.write(control, line.encode())
    except OSError:
        return  # the host is gone: nobody to tell


def main() -> None:
    control, argv = int(sys.argv[1]), sys.argv[2:]
    os.set_inheritable(control, False)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    wake, ring = os.pipe()
    os.set_blocking(ring, False)
    signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, note)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    warden = os.getpid()
    command = os.fork()
    if command == 0:
        run_command(argv, warden)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    tell(control, f"pid {command}\n")
    status = watch(control, wake, command)
    code = -signal.SIGKILL if status is None else os.waitstatus_to_exitcode(status)
    if status is not None:
        tell(control, f"exit {code}\n")
    kill_all(command)
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
