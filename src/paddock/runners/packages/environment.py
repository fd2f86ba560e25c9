"""A virtual environment of a plugin's own: its requirements and the SDK, the very copy that this host uses."""

import importlib.metadata
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import paddock_sdk
from paddock.runners.packages.contents import PackageError

BUILD_SECONDS = 600
SDK = "paddock-sdk"


def python_of(environment: Path) -> Path:
    return environment / "bin" / "python"


def build(environment: Path, requirements: Sequence[str]) -> None:
    """Make the environment or leave nothing behind. Runs the installer, so only after a person said yes."""
    try:
        pip = _make(environment)
        _add_sdk(environment)
        wanted = [*_sdk_requirements(), *requirements]
        _run(
            [*pip, "install", "--quiet", "--disable-pip-version-check", "--", *wanted],
            f"install {', '.join(requirements)}",
        )
    except BaseException:
        shutil.rmtree(environment, ignore_errors=True)
        raise


def _make(environment: Path) -> list[str]:
    """An empty environment and the installer to fill it with: ours if we have one, which saves seconds."""
    ours = find_spec("pip") is not None
    options = ["--without-pip"] if ours else []
    _run([sys.executable, "-m", "venv", *options, str(environment)], "make a virtual environment")
    python = str(python_of(environment))
    return [sys.executable, "-m", "pip", "--python", python] if ours else [python, "-m", "pip"]


def _add_sdk(environment: Path) -> None:
    """Copy the SDK instead of asking an index for it: a stranger's package of that name must not get in."""
    [packages] = environment.glob("lib/python*/site-packages")
    source = Path(paddock_sdk.__file__).parent
    shutil.copytree(source, packages / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    installed = importlib.metadata.distribution(SDK)
    record = packages / f"{SDK.replace('-', '_')}-{installed.version}.dist-info"
    record.mkdir()
    (record / "METADATA").write_text(installed.read_text("METADATA") or "", encoding="utf-8")
    (record / "INSTALLER").write_text("paddock\n", encoding="utf-8")


def _sdk_requirements() -> list[str]:
    return [line for line in importlib.metadata.requires(SDK) or [] if "extra ==" not in line]


def _run(command: Sequence[str], what: str) -> None:
    try:
        subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=BUILD_SECONDS, stdin=subprocess.DEVNULL
        )
    except subprocess.CalledProcessError as error:
        lines = str(error.stderr or error.stdout or "").strip().splitlines()
        raise PackageError(f"Could not {what}: {lines[-1] if lines else f'exit code {error.returncode}'}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PackageError(f"Could not {what}: {error}") from error
