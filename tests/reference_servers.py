"""The reference MCP servers from npm, installed once per version of the lock file."""

import shutil
import subprocess
import tempfile
from hashlib import sha256
from pathlib import Path

from needs import not_run

HERE = Path(__file__).parent
TOOLS = HERE.parent / ".tools"


def installed() -> Path:
    """Where their programs are. Skips the test where npm is not."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        not_run("the reference MCP servers of npm: node and npm are not installed")
    files = [HERE / "tools" / "js" / name for name in ("package.json", "package-lock.json")]
    place = TOOLS / f"mcp-servers-{sha256(b''.join(file.read_bytes() for file in files)).hexdigest()[:16]}"
    if not place.exists():
        TOOLS.mkdir(exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=TOOLS))
        for file in files:
            shutil.copy(file, fresh)
        command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--omit-lockfile-registry-resolved"]
        installed = subprocess.run(command, cwd=fresh, capture_output=True, text=True, timeout=240, check=False)
        if installed.returncode != 0:
            shutil.rmtree(fresh)
            not_run(f"the reference MCP servers of npm: npm ci failed: {installed.stderr[-500:]}")
        try:
            fresh.rename(place)
        except OSError:  # another worker was faster
            shutil.rmtree(fresh)
    return place / "node_modules" / ".bin"
