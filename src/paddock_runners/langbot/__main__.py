"""`python -m paddock_runners.langbot`: started by a host in the directory of an installed LangBot plugin."""

from pathlib import Path

from paddock_runners.langbot.about import About
from paddock_runners.langbot.processes import Processes
from paddock_runners.langbot.runner import runners_of
from paddock_sdk import serve

HERE = Path.cwd()
COMMAND = (str(HERE / ".venv" / "bin" / "python"), "-m", "langbot_plugin.cli", "run", "--stdio", "--prod")

try:
    about = About.read(HERE)
except (OSError, ValueError, KeyError) as problem:
    raise SystemExit(f"{HERE} holds no installed LangBot plugin: {problem}") from None
serve(*runners_of(about, Processes(COMMAND, HERE)))
