"""`make mutate`: put small wrongs into the gate, one at a time, and see whether its tests notice.

A mutant lives in the memory of a process of its own, which has everything loaded that does not depend on it; no file is
changed anywhere. Exit code 1 when fewer than `--at-least` of a hundred are noticed.
"""

import argparse
import contextlib
import importlib
import importlib.util
import io
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from mutation.mutants import Mutant, mutants

ROOT = Path(__file__).resolve().parents[2]
TESTS = ("test_checks.py", "test_at_work.py", "test_order.py", "test_refusal_matrix.py")
MODULES = {
    "paddock.rules.access.gate": "",
    "paddock.host.calls.host_calls": "_decide",
    "paddock.host.calls.watched_stream": "",
}
"""What is mutated, and the function in which the order of statements is a promise."""
LOADED = ("anyio.pytest_plugin", "host.scripted", "gate.house", "contracts.conftest", "runners.house")
DEPEND = (
    "paddock.rules.access.explain",
    "paddock.host.runs.lookup",
    "paddock.http_api",
    "paddock.compose",
    "host.scripted",
)
"""Modules that hold something of the mutated ones: forgotten before the tests, so that they are loaded with the mutant.
Those of the tests' own folders are too."""
SECONDS = 180.0


@dataclass(slots=True)
class Trial:
    """One mutant on its way through the tests."""

    where: str
    child: int
    end: float

    def verdict(self) -> bool | None:
        """True when it was noticed (also by never ending), False when not, None when that is open."""
        pid, status = os.waitpid(self.child, os.WNOHANG)
        if pid:
            return status != 0
        if time.monotonic() < self.end:
            return None
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)
        return True


def begin(module: str, mutant: Mutant | None) -> Trial:
    child = os.fork()
    if child == 0:
        os._exit(_run(module, mutant))
    where = f"{module}:{mutant.line}: {mutant.what}" if mutant else "nothing"
    return Trial(where, child, time.monotonic() + SECONDS)


def _run(module: str, mutant: Mutant | None) -> int:
    """In the child: put the mutant where the module was, and run the tests until the first that fails."""
    options = [
        "-x",
        "-q",
        "-p",
        "no:xdist",
        "-k",
        "not frames and not sqlite and not postgres and not very_matrix",
        f"--rootdir={ROOT}",
    ]
    wanted = [str(ROOT / "tests" / "gate" / name) for name in TESTS]
    with (
        Path(os.devnull).open("w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        try:
            _forget()
            if mutant is not None:
                _install(module, mutant.source)
            return int(pytest.main([*options, *wanted]))
        except BaseException:  # noqa: BLE001 - what cannot even be loaded is noticed
            return 1


def _forget() -> None:
    for name in list(sys.modules):
        if name in MODULES or name.startswith((*DEPEND, "gate.", "gate")) or name == "gate":
            del sys.modules[name]


def _install(module: str, source: str) -> None:
    spec = importlib.util.find_spec(module)
    assert spec is not None
    fresh = importlib.util.module_from_spec(spec)
    sys.modules[module] = fresh
    exec(compile(source, str(spec.origin), "exec"), fresh.__dict__)


def all_mutants(modules: Sequence[str], every: int) -> Iterator[tuple[str, Mutant]]:
    for module in modules:
        source = (ROOT / "src" / Path(*module.split("."))).with_suffix(".py").read_text()
        found = list(mutants(source, ordered=MODULES[module]))
        yield from ((module, mutant) for mutant in found[::every])


def judge(modules: Sequence[str], every: int, jobs: int) -> tuple[int, list[str]]:
    """How many mutants there were, and those nobody noticed."""
    count, left, running = 0, list[str](), list[Trial]()
    waiting = all_mutants(modules, every)
    while True:
        while len(running) < jobs and (one := next(waiting, None)) is not None:
            running.append(begin(*one))
            count += 1
            if count % 25 == 0:
                print(f"  {count} begun, {len(left)} survived", flush=True)
        if not running:
            return count, left
        time.sleep(0.02)
        for trial in list(running):
            if (noticed := trial.verdict()) is not None:
                running.remove(trial)
                if not noticed:
                    left.append(trial.where)
                    print(f"  survived {trial.where}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m mutation", description="Mutation test of the gate.")
    parser.add_argument("--every", type=int, default=1, help="judge every n-th mutant only")
    parser.add_argument("--only", choices=list(MODULES), action="append", help="of these modules; all unless given")
    parser.add_argument("--jobs", type=int, default=2, help="how many at once")
    parser.add_argument("--at-least", type=float, default=95.0, help="how many of a hundred must be noticed")
    options = parser.parse_args()
    os.chdir(ROOT)
    for name in LOADED:
        importlib.import_module(name)
    trial = begin("", None)
    while (noticed := trial.verdict()) is None:
        time.sleep(0.02)
    if noticed:
        print("the tests fail without any mutant; nothing can be judged", file=sys.stderr)
        return 2
    start = time.monotonic()
    count, left = judge(options.only or list(MODULES), options.every, options.jobs)
    noticed_ones = 100 * (count - len(left)) / count
    print(f"{count} mutants, {count - len(left)} noticed ({noticed_ones:.1f} %), {time.monotonic() - start:.0f} s")
    return 0 if noticed_ones >= options.at_least else 1


if __name__ == "__main__":
    sys.exit(main())
