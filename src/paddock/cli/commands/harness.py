"""`paddock harness doctor`: which coding harnesses are installed, in which version, and how to get the others."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from paddock.cli.commands.options import argument, family
from paddock.cli.output import FAILED, USAGE, CommandError, Finding, State, print_findings

ASK_SECONDS = 20.0
LOCAL = tuple(Path(name) for name in ("harnesses/node_modules/.bin", "harnesses/acp/node_modules/.bin"))
"""Where `make harnesses` and `make harnesses-acp` put them in a checkout of Paddock. Runs look on the PATH alone."""
NUMBER = re.compile(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})")


@dataclass(frozen=True, slots=True)
class Known:
    """A harness we drive: its program, the package that brings it, and the version we are tested with."""

    program: str
    package: str
    tested: str
    runner: str
    node: tuple[int, int] | None = None

    @property
    def install(self) -> str:
        return f"npm install --global {self.package}@{self.tested}"


HARNESSES: Mapping[str, Known] = {
    "claude-code": Known("claude", "@anthropic-ai/claude-code", "2.1.325", "claude-code"),
    "codex": Known("codex", "@openai/codex", "0.166.0", "codex"),
    "kimi-code": Known("kimi", "@moonshot-ai/kimi-code", "2.1.0", "acp, preset kimi-code", node=(22, 19)),
    "opencode": Known("opencode", "opencode-ai", "1.18.33", "acp, preset opencode"),
    "gemini": Known("gemini", "@google/gemini-cli", "0.61.0", "acp, preset gemini", node=(20, 0)),
    "claude-acp": Known(
        "claude-agent-acp", "@agentclientprotocol/claude-agent-acp", "0.99.1", "acp, preset claude", node=(22, 0)
    ),
    "codex-acp": Known("codex-acp", "@agentclientprotocol/codex-acp", "2.6.0", "acp, preset codex", node=(20, 0)),
}

harness = family("Coding harnesses: what is installed here.")


@harness.command("doctor")
@argument("names", says="Only these; exit 1 unless all of them are usable.", many=True, required=False)
def harness_doctor(names: list[str] | None) -> int:
    """Say which harnesses are installed, in which version, and how to install the others."""
    if strange := [name for name in names or () if name not in HARNESSES]:
        raise CommandError(f"There is no harness {strange[0]!r}; known are {', '.join(HARNESSES)}.", exit_code=USAGE)
    findings = [examine(name, HARNESSES[name]) for name in names or HARNESSES]
    print_findings(findings, width=12)
    bad: set[State] = {"fail", "none"} if names else {"fail"}
    return FAILED if any(finding.state in bad for finding in findings) else 0


def examine(name: str, known: Known) -> Finding:
    """Look for one harness on the PATH and in this directory."""
    beside = next((place.absolute() for place in LOCAL if (place / known.program).exists()), None)
    path = os.environ.get("PATH", os.defpath)
    on_path = shutil.which(known.program, path=path)
    if beside is not None and on_path is None:
        path = f"{beside}{os.pathsep}{path}"
    program = shutil.which(known.program, path=path)
    if program is None:
        return Finding(name, "none", f"not installed ({known.runner})", _remedy(known))
    version = _version(program, path)
    if version is None:
        return Finding(name, "fail", f"{program} does not tell its version", _remedy(known))
    state, why = judge(version, known)
    says = f"{version} at {program} ({known.runner}): {why}"
    if on_path is None:
        said = f"{says}, and not on the PATH, where a run looks for it"
        return Finding(name, "note", said, f'PATH="{beside}:$PATH" paddock serve, or name it in config.command')
    return Finding(name, state, says, known.install if state != "ok" else "")


def judge(version: str, known: Known) -> tuple[State, str]:
    """Compare with the tested release: one that shares its first two numbers is expected to work."""
    if version == known.tested:
        return "ok", "the tested version"
    found, tested = _numbers(version), _numbers(known.tested)
    if found[:2] == tested[:2]:
        return "ok", f"within the tested range, {tested[0]}.{tested[1]}.x (tested: {known.tested})"
    age = "older" if found < tested else "newer"
    return "note", f"{age} than the tested range, {tested[0]}.{tested[1]}.x; it may work, nobody has tried"


def _version(program: str, path: str | None = None) -> str | None:
    try:
        asked = subprocess.run(
            [program, "--version"],
            capture_output=True,
            text=True,
            timeout=ASK_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PATH": path} if path is not None else None,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = NUMBER.search(asked.stdout or asked.stderr)
    return found[0] if found and asked.returncode == 0 else None


def _remedy(known: Known) -> str:
    if known.node is None:
        return known.install
    here = _version("node") if shutil.which("node") else None
    if here is not None and _numbers(here)[:2] >= known.node:
        return known.install
    least = ".".join(map(str, known.node))
    return f"{known.install}  (it needs Node {least} or newer; here is {here or 'none'})"


def _numbers(version: str) -> tuple[int, ...]:
    found = NUMBER.search(version)
    return tuple(map(int, found.groups())) if found else (0, 0, 0)
