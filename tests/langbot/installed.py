"""A LangBot plugin installed as a person would, with the SDK from the registry. Building its environment takes half a
minute, so it is kept beside the checkout and made anew when the plugin or Python changes.
"""

import fcntl
import os
import shutil
import sys
from pathlib import Path

from needs import not_run
from paddock.runners.packages import InstalledPlugins, PackageError, read_package

ROOT = Path(__file__).parents[2]
TALKER = Path(__file__).parent / "plugins" / "talker"
KEPT = ROOT / ".tools" / "langbot"
PLUGIN = "acme/talker"


def a_data_directory(place: Path) -> Path:
    """A host's data directory in which the plugin is installed; its environment is shared, nothing else is."""
    built = _built()
    shutil.copytree(built / "plugins", place / "plugins", ignore=shutil.ignore_patterns(".venv", "__pycache__"))
    own = InstalledPlugins(place).directory(PLUGIN) / ".venv"
    own.symlink_to(InstalledPlugins(built).directory(PLUGIN) / ".venv")
    return place


def _built() -> Path:
    """Where it is kept, built first when it is not there. One test process at a time looks."""
    KEPT.mkdir(parents=True, exist_ok=True)
    package = read_package(TALKER)
    kept = KEPT / f"{sys.version_info.major}.{sys.version_info.minor}-{package.contents.sha256[:16]}"
    with (KEPT / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (kept / "whole").exists():
            _build(kept)
    return kept


def _build(kept: Path) -> None:
    for old in KEPT.glob("*-*"):
        shutil.rmtree(old, ignore_errors=True)
    os.environ["PIP_NO_COMPILE"] = "1"  # Python compiles what is really imported, which is a small part of it
    try:
        InstalledPlugins(kept).install(read_package(TALKER))
    except PackageError as problem:
        not_run(f"a LangBot plugin with its published SDK, because that cannot be installed: {problem}")
    finally:
        del os.environ["PIP_NO_COMPILE"]
    (kept / "whole").touch()
