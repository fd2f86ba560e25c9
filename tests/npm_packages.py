"""What tests need from npm, installed once per version of the lock file, however many workers ask for it at once."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from needs import not_run

TOOLS = Path(__file__).parents[1] / ".tools"
INSTALL = ("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--omit-lockfile-registry-resolved")


def installed(name: str, files: Sequence[Path], *, what: str) -> Path:
    """The directory with these files and the packages that they name; `what` says what is not run without npm."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        not_run(f"{what}: node and npm are not installed")
    place = TOOLS / f"{name}-{sha256(b''.join(file.read_bytes() for file in files)).hexdigest()[:16]}"
    if not place.exists():
        _install(place, files, what)
    return place


def _install(place: Path, files: Sequence[Path], what: str) -> None:
    TOOLS.mkdir(exist_ok=True)
    fresh = Path(tempfile.mkdtemp(dir=TOOLS))
    for file in files:
        shutil.copy(file, fresh)
    seen = subprocess.run(INSTALL, cwd=fresh, capture_output=True, text=True, timeout=240, check=False)
    if seen.returncode != 0:
        shutil.rmtree(fresh)
        not_run(f"{what}: npm ci failed: {seen.stderr[-500:]}")
    try:
        fresh.rename(place)
    except OSError:  # another worker was faster
        shutil.rmtree(fresh)
