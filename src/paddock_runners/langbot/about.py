"""Description of a LangBot plugin, written when it was installed: its runners in our words, and which settings are the
plugin's own. Read once, at the start.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddock_runners.toolkit.values import listing, mapping

ABOUT_FILE = "paddock-langbot.json"


@dataclass(frozen=True, slots=True)
class AboutRunner:
    name: str
    kind: str
    """`Runner` or `AgentRunner`: which dialect it was written for."""
    manifest: Mapping[str, Any]
    """Label, description, capabilities, permissions and settings form, as our own manifests have them."""


@dataclass(frozen=True, slots=True)
class About:
    runners: tuple[AboutRunner, ...]
    settings: Mapping[str, Any]
    """Settings of the plugin, given to its process when it starts, and their defaults; the others are its runners'."""

    @classmethod
    def read(cls, directory: Path) -> "About":
        """Raises OSError or ValueError: a damaged installation is not served."""
        said = mapping(json.loads((directory / ABOUT_FILE).read_text("utf-8")))
        return cls(tuple(map(_runner, listing(said.get("runners")))), mapping(said.get("settings")))


def _runner(said: object) -> AboutRunner:
    told = mapping(said)
    return AboutRunner(str(told["name"]), str(told["kind"]), mapping(told["manifest"]))
